"""A host's inbox: when it is read, what becomes of its strings, and that nothing it does harms a run."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, field, frozen
from durable import until
from scenes import Scene, Worker, real_time, scene, virtual_time

from actors import INHERIT, Agent, ConfigError, Limits, Receipt, StoreError, UserItem, UserMessage, handle
from actors.agent._record import Draft
from actors.models import ScriptedModel, call, calls, fail, say
from actors.store.sqlite import SQLiteStore
from supervision import SessionRef, run

pytestmark = virtual_time


@define
class Host:
    """Gives out what was put in, once; `read` counts the drains, `readers` whom they were for."""

    strings: list[str] = field(factory=list)
    readers: list[str] = field(factory=list)
    read: int = 0

    def reader(self, agent: str) -> Callable[[], Sequence[str]]:
        self.readers.append(agent)
        return self._drain

    def _drain(self) -> Sequence[str]:
        self.read += 1
        found, self.strings = self.strings, []
        return found


@define
class Foreign:
    """Gives out what it likes."""

    drained: Any

    def reader(self, _agent: str) -> Callable[[], Any]:
        return lambda: self.drained() if callable(self.drained) else self.drained


def mail_of(here: Scene, number: int) -> list[str]:
    """The bodies of the mail in the last user item of this request."""
    item = [each for each in here.request(number).transcript if isinstance(each, UserItem)][-1]
    return [envelope.body.text for envelope in item.mail]


# ------------------------------------------------------------------ the boundaries
async def test_what_waits_after_a_tool_round_is_one_message_behind_all_results() -> None:
    """Several strings are joined by a blank line; blanks are dropped."""
    host = Host(["  first ", "", "   ", "second\n"])
    async with scene(calls(call("work"), call("work")), say("ok"), inbox=host) as here:
        await here.session.ask("go")
        assert (here.asked, here.results(1), here.words(1)) == (2, ["worked", "worked"], "first\n\nsecond")
        assert (here.words(0), host.readers) == ("go", ["Worker"])


async def test_what_waits_after_an_empty_turn_replaces_the_nudge() -> None:
    """The host's words are better than ours."""
    async with scene(say(""), say("ok"), inbox=Host(["look at staging"])) as here:
        await here.session.ask("go")
        assert mail_of(here, 1) == ["go", "look at staging"]
        assert here.events("continuing") == []


async def test_what_waits_after_a_final_answer_adds_a_round() -> None:
    """The answer stands; the run goes on."""
    async with scene(say("done"), say("really done"), inbox=Host(["one more thing"])) as here:
        await here.session.send("go")
        assert await here.session.wait_answer() == "really done"
        assert mail_of(here, 1) == ["one more thing"]
        assert len(here.events("run_started")) == 1


@pytest.mark.parametrize("strings", [[], [""], ["  ", "\n\t"]])
async def test_blanks_are_nothing(strings: list[str]) -> None:
    """They add no round."""
    async with scene(say("done"), inbox=Host(strings)) as here:
        await here.session.ask("go")
        await here.idle()
        assert here.asked == 1


async def test_what_comes_in_the_last_round_is_still_delivered() -> None:
    """Before the wrap-up it is read once more, and restarts the count."""
    host = Host()
    async with scene(call("work", seconds=5), say("ok"), inbox=host, max_rounds=1) as here:
        await here.session.send("go")
        await trio.sleep(3)
        host.strings.append("mind the time")
        await here.idle()
        assert (mail_of(here, 1), here.events("continuing")) == (["mind the time"], [])


async def test_it_is_not_read_before_the_first_request_nor_idle_nor_paused() -> None:
    """Only a run in progress asks its host."""
    host = Host(["later"])
    async with scene(call("work", seconds=5), say("ok"), inbox=host) as here:
        await trio.sleep(5)
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.pause()
        await trio.sleep(10)
        assert (host.read, here.words(0)) == (0, "go")
        await here.session.resume()
        await here.idle()
        assert (host.read, here.words(1)) == (2, "later")


async def test_it_is_read_once_at_each_boundary() -> None:
    """A run that waits for a detached call is at none."""
    host = Host()
    async with scene(call("background", seconds=5), say("wait"), say("ok"), inbox=host) as here:
        await here.session.send("go")
        await trio.sleep(3)
        assert host.read == 2
        await here.session.cancel_calls("nobody")
        await here.settled()
        assert host.read == 2
        await here.idle()
        assert (host.read, here.asked) == (3, 3)


async def test_it_is_left_alone_while_the_mailbox_has_no_room() -> None:
    """Nothing is taken that could not be kept."""
    host = Host(["later"])
    async with scene(call("work", seconds=5), call("work"), say("ok"), inbox=host, limits=Limits(max_unread=2)) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.send("full")
        await here.idle()
        assert (here.words(1), here.words(2)) == ("full", "later")


async def test_each_run_has_a_reader_of_its_own() -> None:
    """Made when it begins, so that it can tell what is new since then."""
    host = Host()
    async with scene(say("a"), say("b"), inbox=host) as here:
        await here.session.ask("1")
        await here.session.ask("2")
        await here.idle()
        assert host.readers == ["Worker", "Worker"]


# ------------------------------------------------------------------ its bound
@pytest.mark.parametrize("cap", [1, 2, 3, 4])
async def test_a_drain_that_never_runs_dry_restarts_the_count_so_often_and_the_run_ends(
    cap: int, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning; what it says is still delivered."""
    async with scene(*[call("work")] * 2 * cap, say("enough"), inbox=Foreign(["more"]), max_rounds=cap) as here:
        await here.session.send("go")
        await here.idle()
        assert here.asked == 2 * cap + 1
        assert [event.reason for event in here.events("run_stopped")] == ["limit"]
        assert mail_of(here, 2 * cap) == ["more"]
        assert [record.message for record in caplog.records if "inbox" in record.message] == [
            f"s: its inbox has restarted the count of rounds {cap} times, as often as it may in a run"
        ]


@pytest.mark.parametrize("cap", [1, 2, 3, 4])
async def test_without_mail_a_cap_of_n_means_n_requests_and_a_wrap_up(cap: int) -> None:
    """An inbox that holds nothing changes nothing."""
    async with scene(*[call("work")] * cap, say("enough"), inbox=Host(), max_rounds=cap) as here:
        await here.session.ask("go")
        assert here.asked == cap + 1


async def test_a_person_restarts_the_count_whatever_the_inbox_did() -> None:
    """Its bound is its own."""
    async with scene(*[call("work", seconds=2)] * 5, say("ok"), inbox=Foreign(["more"]), max_rounds=1) as here:
        await here.session.send("go")
        for _ in range(3):
            await trio.sleep(1)
            await here.session.send("go on")
            await trio.sleep(1)
        await here.idle()
        assert here.asked == 6


# ------------------------------------------------------------------ its failures
def _raising() -> None:
    raise OSError("gone")


@pytest.mark.parametrize(
    ("drained", "told", "delivered"),
    [
        (_raising, "could not be drained: OSError('gone')", None),
        (None, "returned None; a drain returns a list of strings", None),
        ("text", "returned 'text'; a drain returns a list of strings", None),
        (7, "returned 7; a drain returns a list of strings", None),
        (["good", 7, "too"], "returned 7 among its strings; it is left out", "good\n\ntoo"),
    ],
)
async def test_what_a_drain_does_wrong_is_logged_and_the_run_goes_on(
    drained: Any, told: str, delivered: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """The good elements are delivered."""
    async with scene(call("work"), say("ok"), say("ok"), inbox=Foreign(drained), max_rounds=1) as here:
        await here.session.send("go")
        await here.idle()
        assert f"the inbox of Worker {told}" in [record.message for record in caplog.records]
        assert (here.words(1) if delivered else None) == delivered
        assert here.events("run_stopped")[0].reason in {"answered", "limit"}


@pytest.mark.parametrize("reader", [lambda _agent: _raising(), lambda _agent: None])
async def test_a_reader_that_cannot_be_made_costs_nothing_else(reader: Any, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, once a run."""
    inbox = type("Broken", (), {"reader": staticmethod(reader)})()
    async with scene(call("work"), say("ok"), inbox=inbox) as here:
        assert await here.session.ask("go") == "ok"
        assert [record.levelno for record in caplog.records if "gave no reader" in record.message] == [logging.ERROR]


class _Deaf:
    def reader(self) -> Callable[[], Sequence[str]]:
        return list


@pytest.mark.parametrize("inbox", [_Deaf(), object(), "inbox"])
def test_a_reader_that_takes_no_name_is_refused_before_anything_runs(inbox: Any) -> None:
    """A mistake in the program, not of the moment."""

    class Clerk(Worker):
        model = ScriptedModel([])

    with pytest.raises(TypeError, match="reader"):
        run(Clerk, "go", inbox=inbox)


async def test_what_was_drained_before_a_failed_request_is_delivered_next() -> None:
    """It was accepted: a crash of the loop keeps it."""
    script = (call("work"), fail(RuntimeError("cut")), say("ok"))
    async with scene(*script, inbox=Host(["look"])) as here:
        assert await here.session.ask("go") == "ok"
        assert (here.words(2), here.asked) == ("look", 3)


async def test_what_a_store_could_not_accept_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host gave it out once: it is held until it was kept."""
    async with scene(call("work", seconds=5), say("ok"), inbox=Host(["first"])) as here:
        place = here.session._session()
        accept, tries = type(place).host_mail, 0

        async def refuse_once(self: Any, text: str) -> int:
            nonlocal tries
            tries += 1
            if tries == 1:
                raise StoreError("the disk is full")
            found: int = await accept(self, text)
            return found

        monkeypatch.setattr(type(place), "host_mail", refuse_once)
        assert await here.session.ask("go") == "ok"
        assert (here.words(1), here.asked, tries) == ("first", 2, 2)


# ------------------------------------------------------------------ whose it is
def test_a_run_overrides_what_its_class_names() -> None:
    """Absent: the class's; None: none."""
    mine, theirs = Host(["mine"]), Host(["theirs"])

    class Clerk(Agent):
        inbox = mine

    def asked(**given: Any) -> list[str]:
        model = ScriptedModel([say("a"), say("b")])
        run(Clerk, "go", model=model, **given)
        return [request.transcript[-1].text for request in model.requests]  # type: ignore[union-attr]

    assert asked(inbox=None) == ["go"]
    assert asked(inbox=theirs) == ["go", "theirs"]
    assert asked(inbox=INHERIT) == ["go", "mine"]


def test_only_an_agent_has_an_inbox() -> None:
    """A tree has nobody who would read it."""

    async def main(_system: object) -> None: ...

    with pytest.raises(ConfigError, match="only an Agent class is run with an inbox"):
        run(main, inbox=Host())


# ------------------------------------------------------------------ a store that takes its time
class Meanwhile(SQLiteStore):
    """Somebody else does something while the host's words are on their way into the mailbox."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.then: Callable[[], Awaitable[Any]] | None = None

    async def send(self, draft: Draft) -> Receipt:
        """Behind what was done meanwhile."""
        if self.then is not None and draft.body == UserMessage("from the host"):
            then, self.then = self.then, None
            await then()
        return await super().send(draft)


@frozen
class Note:
    """For the agent, not for its model."""


class Noting(Worker):
    """You work."""

    def __init__(self) -> None:
        self.noted = 0

    @handle
    def note(self, _note: Note) -> None:
        """Count it."""
        self.noted += 1


@asynccontextmanager
async def meanwhile(path: Path, then: Callable[[SessionRef], Awaitable[Any]], **options: Any) -> AsyncIterator[Scene]:
    """A session in whose first tool round this happens."""
    store, host = Meanwhile(path), Host(["from the host"])
    with trio.fail_after(20):
        async with scene(call("work"), say("so"), say("and so"), store=store, inbox=host, agent=Noting, **options) as here:
            store.then = partial(then, here.session)
            await here.session.send("go")
            await until(lambda: store.then is None)
            yield here


@real_time
async def test_an_order_that_comes_while_the_host_is_heard_is_obeyed(path: Path) -> None:
    """Its cursor must not be moved over it, with the host's words behind it."""
    async with meanwhile(path, SessionRef.pause) as here:
        await until(lambda: here.status() == "paused")
        await here.session.resume()
        assert await here.session.wait_answer() == "so"
        assert here.words(1) == "from the host"


@real_time
async def test_a_handled_message_that_comes_while_the_host_is_heard_is_handled(path: Path) -> None:
    """As it would be at any other moment."""
    async with meanwhile(path, lambda session: session.send(Note())) as here:
        await here.session.wait_answer()
        assert here.session._session().session.agent.noted == 1


@real_time
async def test_a_mailbox_that_is_full_by_then_makes_the_host_wait(path: Path) -> None:
    """The end of the call is one of the two that there is room for. Its words are told at the next boundary, and nothing crashes."""

    async def fill(session: SessionRef) -> None:
        await session.send("one")

    async with meanwhile(path, fill, limits=Limits(max_unread=2)) as here:
        await until(lambda: here.asked == 3)
        assert "from the host" in here.words(2)
        assert here.system.statistics().crashes == 0
