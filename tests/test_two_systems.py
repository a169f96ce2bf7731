"""Several systems in one process, and refs where they do not belong: they fail clearly, or work as what they are."""

import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trio
from cast import Add, Worker
from hands import Do, Hand, napping
from trio.testing import MockClock

from actors import Actor, ActorRef, ActorsError, AskRefused, AskTimeout, Limits, RecipientStopped, Stopped, UnknownRecipient
from supervision import ChildSpec, SessionRef, System, open_system


# ------------------------------------------------------------------ side by side
async def test_one_name_in_two_systems_is_two_actors(autojump_clock: MockClock) -> None:
    """Each ref leads where it was made; their addresses are equal, their actors are not."""
    async with open_system() as one, open_system() as two:
        refs = [await system.spawn(Worker, name="w") for system in (one, two)]
        assert [await ref.ask(Add(amount)) for ref, amount in zip(refs, (1, 20), strict=True)] == [1, 20]
        assert await refs[0].stop() == Stopped("stop")
        assert await refs[1].ask(Add(1)) == 21


async def test_a_pickled_ref_means_the_system_that_uses_it_first(autojump_clock: MockClock) -> None:
    """It is an address on paper; crossed over, it leads to whoever has that address there, or to nobody."""
    async with open_system() as one, open_system() as two:
        ref = await one.spawn(Worker, name="only")
        inner, outer = await one.spawn(Hand), await two.spawn(Hand)
        paper = pickle.dumps(ref)

        async def use(_actor: Actor) -> Any:
            return await pickle.loads(paper).ask(Add(1))

        assert await inner.ask(Do(use)) == 1
        with pytest.raises(Exception, match="nobody has the address 'only'") as caught:
            await outer.ask(Do(use))
        assert isinstance(caught.value, UnknownRecipient)


async def test_an_actor_cannot_watch_into_another_system(autojump_clock: MockClock) -> None:
    """The address would mean somebody else there: it is refused, not watched in silence."""
    refused: list[str] = []
    async with open_system() as one, open_system() as two:
        ref = await one.spawn(Worker, name="w")
        await two.spawn(Worker, name="w")
        hand = await two.spawn(Hand)

        async def watch(actor: Actor) -> None:
            for act in (actor.watch, actor.unwatch):
                with pytest.raises(ActorsError, match="w belongs to another system") as caught:
                    act(ref)
                refused.append(str(caught.value))

        await hand.ask(Do(watch))
        assert len(refused) == 2


async def test_a_session_has_no_parent_in_another_system(autojump_clock: MockClock) -> None:
    """Nor is one found by chance under the same id."""
    async with open_system() as one, open_system() as two:
        with pytest.raises(ActorsError, match="boss belongs to another system"):
            await two.open(Any, parent=SessionRef("boss", one._root))  # type: ignore[arg-type]


@pytest.mark.parametrize("what", ["ask", "wait", "stop"])
async def test_a_wait_into_another_system_has_an_end(what: str, autojump_clock: MockClock) -> None:
    """The two graphs do not see each other's edges, so a cycle across both is ended by its waiters' `max_wait`."""
    async with open_system() as one, open_system() as two:
        slow = await one.spawn(Hand, name="slow", shutdown=1000)
        slow.send_nowait(Do(shielded))
        hand = await two.spawn(Hand, limits=Limits(max_wait=7))
        acts: dict[str, Callable[[Actor], Any]] = {
            "ask": lambda _actor: slow.ask(napping(0), timeout=None),
            "wait": lambda _actor: slow.wait(),
            "stop": lambda _actor: slow.stop(),
        }
        with pytest.raises(AskTimeout, match="slow"):
            await hand.ask(Do(acts[what]), timeout=None)
        assert trio.current_time() == 7


async def shielded(_actor: Actor) -> None:
    """Be busy, deaf to any stop."""
    with trio.CancelScope(shield=True):
        await trio.sleep(100)


# ------------------------------------------------------------------ after the block
async def test_refs_of_a_system_that_is_over_say_so(autojump_clock: MockClock) -> None:
    """How each actor ended is remembered; nothing hangs, nothing is accepted."""
    async with open_system(name="main") as system:
        ref = await system.spawn(Worker, name="w")
    over = Stopped("the system stops")
    assert (await ref.wait(), await ref.stop(), str(ref.status)) == (over, over, "stopped")
    with pytest.raises(RecipientStopped, match="w ended for good"):
        await ref.send(1)
    with pytest.raises(AskRefused, match="w ended for good"):
        await ref.ask(1)
    with pytest.raises(ActorsError, match="the system 'main' is over; use refs inside its block"):
        system.ref("x").send_nowait(1)
    with pytest.raises(ActorsError, match="the system 'main' is over; use it inside its block"):
        await system.spawn(Worker)
    with pytest.raises(ActorsError, match="the system 'main' is over; use it inside its block"):
        await system.start(ChildSpec(Worker, name="x"))


def test_a_ref_that_outlived_its_run_says_so() -> None:
    """In the next run of trio, and in none."""

    async def left() -> ActorRef:
        async with open_system() as system:
            return await system.spawn(Worker, name="w")

    async def used() -> None:
        with pytest.raises(AskRefused, match="w ended for good"):
            await ref.ask(Add(1))

    ref = trio.run(left)
    trio.run(used)
    with pytest.raises(RecipientStopped, match="w ended for good"):
        ref.send_nowait(1)


# ------------------------------------------------------------------ a system of another thread
Foreign = tuple[System, ActorRef, SessionRef]


@pytest.fixture
def foreign() -> Iterator[Foreign]:
    """A system that runs in a thread of its own, and an actor of it."""
    made: list[Foreign] = []
    there, done = threading.Event(), threading.Event()

    async def host() -> None:
        async with open_system(name="far") as system:
            made.append((system, await system.spawn(Worker, name="far"), system.session("talk")))
            there.set()
            await trio.to_thread.run_sync(done.wait)

    thread = threading.Thread(target=trio.run, args=(host,))
    thread.start()
    there.wait()
    yield made[0]
    done.set()
    thread.join()


USES: dict[str, Callable[[System, ActorRef, SessionRef], Any]] = {
    "send_nowait": lambda _system, ref, _session: ref.send_nowait(1),
    "send": lambda _system, ref, _session: ref.send(1),
    "ask": lambda _system, ref, _session: ref.ask(Add(1)),
    "interrupt": lambda _system, ref, _session: ref.interrupt(1),
    "wait": lambda _system, ref, _session: ref.wait(),
    "stop": lambda _system, ref, _session: ref.stop(),
    "ask a session": lambda _system, _ref, session: session.ask("hello"),
    "write to a session": lambda _system, _ref, session: session.send("hello"),
    "its last answer": lambda _system, _ref, session: session.wait_answer(),
    "pause": lambda _system, _ref, session: session.pause(),
    "record": lambda _system, _ref, session: session.record(),
    "spawn": lambda system, _ref, _session: system.spawn(Worker),
    "start": lambda system, _ref, _session: system.start(ChildSpec(Worker, name="x")),
    "open": lambda system, _ref, _session: system.open(Worker),  # type: ignore[arg-type]
    "wait_idle": lambda system, _ref, _session: system.wait_idle(),
    "events": lambda system, _ref, _session: system.events(),
    "replay": lambda system, _ref, _session: system._root._resend(None),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("use", USES.values(), ids=USES)
async def test_a_system_of_another_thread_is_not_touched_from_here(use: Any, foreign: Foreign) -> None:
    """Two runs of trio on one state tear it: an answer that never comes, a wake-up of nobody. It is refused before."""
    with trio.fail_after(5), pytest.raises(RuntimeError, match=r"was used from a foreign thread; use send_from_thread there"):
        done = use(*foreign)
        if hasattr(done, "__await__"):
            await done


async def test_a_system_of_another_thread_takes_mail_that_is_brought_there(foreign: Foreign) -> None:
    """That is what `send_from_thread` is for."""
    _system, ref, _session = foreign
    await trio.to_thread.run_sync(ref.send_from_thread, Add(1))


ACTS: dict[str, Callable[[Actor], Any]] = {
    "finish": lambda actor: actor.finish(1),
    "reply": lambda actor: actor.reply(1, to=actor.mail),
    "send_after": lambda actor: actor.send_after(1, "x"),
    "watch": lambda actor: actor.watch(actor.ref),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
async def test_a_handlers_thread_changes_nothing_of_its_actor(act: Any) -> None:
    """It may write mail with `send_from_thread`; what belongs to the loop is refused there."""
    async with open_system() as system:
        ref = await system.spawn(Hand, name="hand")
        with pytest.raises(Exception, match="hand was used from a foreign thread"):
            await ref.ask(Do(lambda actor: trio.to_thread.run_sync(act, actor)))
