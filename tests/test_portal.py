"""The way in for foreign threads: as a person, in order, with the errors that a task would see."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import trio
from cast import Add, Boom, Crash, Refuse, Sleep, Worker

from actors import ActorCrashed, Agent, AskTimeout, Envelope, FromUser, Rejected, UnknownRecipient, events, handle
from actors.models import ScriptedModel, say
from supervision import Portal, System, open_system


class Heard(Worker):
    """Keeps its envelopes."""

    @handle
    async def hear(self, message: bytes) -> None:
        self.seen.append(self.mail)


class Quiet(Agent):
    """You answer briefly."""

    model = ScriptedModel([say("one"), say("two"), say("three")])


async def in_a_thread(system: System, act: Callable[[Portal], Any], owner: str | None = None) -> Any:
    """What a thread that trio does not know gets from a portal."""
    portal, done = system.portal(owner), trio.Event()
    token = trio.lowlevel.current_trio_token()
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(act(portal))
        except Exception as error:  # noqa: BLE001  # the test's to look at
            results.append(error)
        token.run_sync_soon(done.set)

    threading.Thread(target=run).start()
    with trio.fail_after(10):
        await done.wait()
    return results[0]


async def test_a_portal_sends_as_its_person_in_order() -> None:
    """Two people of one host are two senders; each is heard in the order of speaking."""
    heard: list[Envelope] = []
    async with open_system() as system:
        await system.spawn(Heard, heard, name="ear")
        for owner in ("ann", "bob"):
            receipts = await in_a_thread(
                system, lambda portal: [portal.send("ear", b"%d" % n, id=f"w-{n}") for n in range(50)], owner
            )
            assert [receipt.duplicate for receipt in receipts] == [False] * 50
        await system.wait_idle()
    del heard[-1]  # its exit
    assert [envelope.sender for envelope in heard] == [FromUser("ann")] * 50 + [FromUser("bob")] * 50
    assert [envelope.body for envelope in heard] == [b"%d" % n for n in range(50)] * 2


@pytest.mark.parametrize(
    ("message", "wanted"),
    [(Add(2), 2), (Crash(Boom()), ActorCrashed), (Refuse("no"), Rejected), (Sleep(9), AskTimeout)],
)
async def test_a_portal_asks_and_gets_the_answer_or_the_error(message: object, wanted: Any) -> None:
    """As a task would."""
    async with open_system() as system:
        await system.spawn(Worker, name="worker")
        got = await in_a_thread(system, lambda portal: portal.ask("worker", message, timeout=0.5))
        assert got == wanted if wanted == 2 else isinstance(got, wanted)
        await system.ref("worker").stop("kill")


async def test_a_portal_to_nobody_is_told_so() -> None:
    """The errors are the same in every thread."""
    async with open_system() as system:
        got = await in_a_thread(system, lambda portal: portal.send("nobody", 1))
        assert isinstance(got, UnknownRecipient)


async def test_a_portal_opens_a_session_and_follows_a_run() -> None:
    """An asyncio host needs no more: it opens, asks, and shows what happens."""

    def act(portal: Portal) -> tuple[str, str, list[events.AnyEvent]]:
        session = portal.open(Quiet, session="s")
        return session, portal.ask(session, "first"), list(portal.stream(session, "second"))

    async with open_system() as system:
        session, answer, seen = await in_a_thread(system, act)
        assert (session, answer) == ("s", "one")
        assert [event.text for event in seen if isinstance(event, events.Answer)] == ["two"]
        assert isinstance(seen[-1], events.RunStopped)


async def test_a_stream_that_is_left_early_leaves_nothing_behind() -> None:
    """A browser that goes away is no reader any more."""
    async with open_system() as system:

        def act(portal: Portal) -> None:
            portal.open(Quiet, session="s")
            stream = portal.stream("s", "first")
            next(stream)
            stream.close()  # type: ignore[attr-defined]

        assert await in_a_thread(system, act) is None
        await system.wait_idle()
        assert system._root.hub._readers == []


async def test_in_the_trio_thread_a_portal_is_a_mistake() -> None:
    """It would wait for the very thread that it blocks."""
    async with open_system() as system:
        with pytest.raises(RuntimeError):
            system.portal().send("x", 1)


async def test_after_the_block_a_portal_says_that_the_system_is_over() -> None:
    """A host that lives longer gets an error, not silence."""
    async with open_system(name="main") as system:
        pass
    got = await in_a_thread(system, lambda portal: portal.send("x", 1))
    assert "the system 'main' is over" in str(got)


def test_after_the_run_a_portal_raises_run_finished() -> None:
    """Trio's own error: there is nobody to run it any more."""
    portals: list[Portal] = []

    async def main() -> None:
        async with open_system() as system:
            portals.append(system.portal())

    trio.run(main)
    with pytest.raises(trio.RunFinishedError):
        portals[0].send("x", 1)
