"""The block that everything lives in: how it is left, whatever happened inside and outside."""

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest
import trio
from cast import Boom, Crash, Sleep, Stubborn, Worker
from trio.testing import wait_all_tasks_blocked

from actors import ActorCrashed, ActorsError, ConfigError, Exit, RecipientStopped, handle
from supervision import ChildSpec, Supervisor, System, open_system

pytestmark = pytest.mark.virtual_time


class Slow(Worker):
    """Takes a second to say goodbye, and notes it."""

    async def on_stop(self, exit: Exit) -> None:
        await trio.sleep(1)
        self.seen.append(self.ref.address)


async def furnished(system: System, diary: list[Any]) -> None:
    """Two trees and two spawned actors, one with a child that is in its way."""
    await system.start(Supervisor(*(ChildSpec(Slow, diary, name=name) for name in "ab"), name="p"))
    await system.start(ChildSpec(Slow, diary, name="q"))
    for name in "xy":
        await system.spawn(Slow, diary, name=name)


IN_ORDER = ["q", "p/b", "p/a"]  # after the spawned ones, which go at once and in any order


async def fail(error: BaseException) -> None:
    raise error


async def forever(_system: System) -> None:
    await trio.sleep_forever()


# ------------------------------------------------------------------ leaving the block
async def test_leaving_the_block_stops_all_in_order() -> None:
    """What was spawned at once, then the trees in reverse."""
    diary: list[Any] = []
    async with open_system() as system:
        await furnished(system, diary)
    assert {*diary[:2]} == {"x", "y"}
    assert (diary[2:], trio.current_time()) == (IN_ORDER, 4)


async def block(diary: list[Any], act: Callable[[System], Any]) -> None:
    """A furnished system whose body does that."""
    async with open_system() as system:
        await furnished(system, diary)
        await act(system)


@pytest.mark.parametrize("error", [Boom("x"), ExceptionGroup("g", [Boom("x")]), SystemExit(3), KeyboardInterrupt()])
async def test_the_bodys_own_error_leaves_unchanged_after_the_stop(error: BaseException) -> None:
    """The very object, no group around it, its causes untouched."""
    error.__cause__ = cause = ValueError("why")
    diary: list[Any] = []
    with pytest.raises(type(error)) as caught:
        await block(diary, lambda _system: fail(error))
    assert caught.value is error
    assert error.__cause__ is cause
    assert diary[2:] == IN_ORDER


async def doomed(system: System, error: Exception, body: BaseException | None = None) -> None:
    """Start what fails for good; the body waits for its cancel, or raises as it is cancelled."""
    await system.start(ChildSpec(Worker, name="bad", restart="temporary"))
    system.ref("bad").send_nowait(Crash(error))
    try:
        await trio.sleep_forever()
    finally:
        if body is not None:
            raise body


async def test_an_escalation_cancels_the_body_stops_in_order_and_is_raised_bare() -> None:
    """With the causes that it had."""
    error, cause = Boom("tree"), ValueError("why")
    error.__cause__ = cause
    diary: list[Any] = []
    with pytest.raises(Boom) as caught:
        await block(diary, lambda system: doomed(system, error))
    assert (caught.value, error.__cause__, diary[2:]) == (error, cause, IN_ORDER)


async def test_an_error_of_both_is_a_group_of_both() -> None:
    """Neither hides the other."""
    tree, body = Boom("tree"), ValueError("body")
    diary: list[Any] = []
    with pytest.raises(BaseExceptionGroup, match="the body of open_system failed, and so did the tree") as caught:
        await block(diary, lambda system: doomed(system, tree, body))
    assert (caught.value.exceptions, diary[2:]) == ((body, tree), IN_ORDER)


async def test_a_body_that_raises_a_group_as_it_is_cancelled_is_stopped_all_the_same() -> None:
    """A nursery in the body wraps its error together with the cancel; the stop is not skipped, and the cancel is taken out."""
    tree, body = Boom("tree"), ValueError("body")
    diary: list[Any] = []

    async def nested(system: System) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            await doomed(system, tree, body)

    with pytest.raises(BaseExceptionGroup) as caught:
        await block(diary, nested)
    assert [type(leaf) for leaf in caught.value.split(Boom)[0].exceptions] == [Boom]  # type: ignore[union-attr]
    assert caught.group_contains(ValueError)
    assert not caught.group_contains(trio.Cancelled)
    assert diary[2:] == IN_ORDER


async def test_a_body_that_swallows_its_cancel_does_not_swallow_the_escalation() -> None:
    """The tree has failed, whatever the body thinks of it."""

    async def swallow(system: System) -> None:
        with pytest.raises(trio.Cancelled):
            await doomed(system, Boom("tree"))

    with pytest.raises(Boom, match="tree"):
        await block([], swallow)


# ------------------------------------------------------------------ cancelled from outside
@pytest.mark.parametrize("how", ["timeout", "nursery"])
async def test_an_outer_cancel_ends_the_body_and_stops_in_order(how: str) -> None:
    """It reaches no actor before the stop does: each has its goodbye, in its turn."""
    diary: list[Any] = []
    if how == "timeout":
        with trio.move_on_after(5) as scope:
            await block(diary, forever)
        assert scope.cancelled_caught
    else:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(block, diary, forever)
            await trio.sleep(5)
            nursery.cancel_scope.cancel()
    assert (diary[2:], trio.current_time()) == (IN_ORDER, 9)


async def test_an_outer_cancel_does_not_hide_what_failed() -> None:
    """A tree that fails as it is stopped from outside: the error is raised, bare, in place of the cancel."""
    with trio.move_on_after(5), pytest.raises(Boom, match="tree"):
        await block([], late_failure)


async def late_failure(system: System) -> None:
    """The tree fails in the very moment that the body is cancelled."""
    await system.start(ChildSpec(Worker, name="bad", restart="temporary"))
    try:
        await trio.sleep_forever()
    finally:
        system.ref("bad").send_nowait(Crash(Boom("tree")))
        with trio.CancelScope(shield=True):
            await trio.sleep(1)


async def test_an_outer_cancel_with_an_error_of_the_body_raises_that() -> None:
    """As it would without a system."""

    async def raise_late(_system: System) -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise Boom("late")

    with trio.move_on_after(5), pytest.raises(Boom, match="late"):
        await block([], raise_late)


# ------------------------------------------------------------------ what stops the whole
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), BaseExceptionGroup("g", [Boom(), KeyboardInterrupt()])])
@pytest.mark.parametrize("where", ["spawned", "in a tree"])
async def test_a_ctrl_c_in_an_actor_is_not_restarted_and_goes_to_the_root(error: BaseException, where: str) -> None:
    """The tree stops in order, then it is raised bare; no one-for-all, no second life."""
    diary: list[Any] = []
    made: list[str] = []

    class Counted(Worker):
        def __init__(self) -> None:
            super().__init__()
            made.append("life")

    async def interrupt(system: System) -> None:
        tree = Supervisor(ChildSpec(Counted, name="c", restart="permanent"), name="t", strategy="one_for_all")
        await (system.start(tree) if where == "in a tree" else system.spawn(Counted, name="c", restart="permanent"))
        system.ref("t/c" if where == "in a tree" else "c").send_nowait(Crash(error))
        await trio.sleep_forever()

    with pytest.raises((KeyboardInterrupt, SystemExit)):
        await block(diary, interrupt)
    assert (made, diary[-3:]) == (["life"], IN_ORDER)


async def test_an_actors_group_is_known_by_its_leaves() -> None:
    """A single error in a group is that error; a group of many stays one."""
    async with open_system() as system:
        for error, wanted in (
            (ExceptionGroup("g", [Boom("a")]), Boom),
            (ExceptionGroup("g", [Boom(), ValueError()]), ExceptionGroup),
        ):
            ref = await system.spawn(Worker, restart="temporary")
            with pytest.raises(ActorCrashed) as caught:
                await ref.ask(Crash(error))
            assert type(caught.value.error) is wanted


async def test_several_failures_are_all_told() -> None:
    """Two trees that fail at once."""
    with pytest.raises(BaseExceptionGroup, match="several parts of the system failed") as caught:
        await block([], two_failures)
    assert len(caught.value.exceptions) == 2


async def two_failures(system: System) -> None:
    """Both at once."""
    for name in ("bad", "worse"):
        await system.start(ChildSpec(Worker, name=name, restart="temporary"))
    for name in ("bad", "worse"):
        system.ref(name).send_nowait(Crash(Boom(name)))
    await trio.sleep_forever()


# ------------------------------------------------------------------ too late
async def test_nothing_starts_while_the_system_stops() -> None:
    """It would never be stopped; whoever tries is told, and the stop ends."""
    told: list[str] = []

    class Breeding(Worker):
        async def on_stop(self, exit: Exit) -> None:
            for start in (partial(system.spawn, Worker), partial(system.start, ChildSpec(Worker, name="n"))):
                try:
                    await start()
                except ActorsError as error:
                    told.append(str(error))

    async with open_system(name="main") as system:
        await system.spawn(Breeding)
    assert told == ["the system 'main' is stopping and starts nothing new"] * 2


async def test_after_the_block_refs_say_that_the_system_is_over() -> None:
    """And how the actor ended, if it was one."""
    async with open_system(name="main") as system:
        ref = await system.spawn(Worker, name="a")
    with pytest.raises(RecipientStopped, match="the system stops"):
        ref.send_nowait(1)
    with pytest.raises(ActorsError, match="the system 'main' is over"):
        system.ref("b").send_nowait(1)
    with pytest.raises(ActorsError, match="use it inside its block"):
        await system.spawn(Worker)


async def test_a_zombie_holds_the_block_until_its_task_ends() -> None:
    """Trio cannot kill a task; leaving it behind would be a lie."""
    async with open_system() as system:
        ref = await system.spawn(Stubborn, shutdown=1)
        ref.send_nowait(Sleep(10))
        await wait_all_tasks_blocked()
    assert trio.current_time() == 10


# ------------------------------------------------------------------ names and rest
async def test_a_live_name_is_taken() -> None:
    """Two actors of one address would share a mailbox; a name is free again when its actor has ended."""
    async with open_system() as system:
        ref = await system.spawn(Worker, name="a")
        for start in (partial(system.spawn, Worker, name="a"), partial(system.start, ChildSpec(Worker, name="a"))):
            with pytest.raises(ConfigError, match="a is already there"):
                await start()
        await ref.stop()
        await system.start(ChildSpec(Worker, name="a"))


async def test_a_name_is_taken_while_its_actor_starts() -> None:
    """Not only once it is ready."""

    class Starting(Worker):
        async def on_start(self) -> None:
            await trio.sleep(1)

    async with open_system() as system, trio.open_nursery() as nursery:
        nursery.start_soon(partial(system.spawn, Starting, name="a"))
        await wait_all_tasks_blocked()
        with pytest.raises(ConfigError):
            await system.spawn(Worker, name="a")


async def test_wait_idle_waits_for_handlers_mail_restarts_and_ends() -> None:
    """Then a test may look."""

    class Slowly(Slow):
        async def on_start(self) -> None:
            await trio.sleep(2)

    async with open_system() as system:
        ref = await system.spawn(Slowly)
        for message in (Sleep(3), Crash(Boom()), Sleep(4)):
            ref.send_nowait(message)
        await system.wait_idle()
        assert trio.current_time() == pytest.approx(2 + 3 + 1 + 2 + 4, abs=0.1)


async def test_wait_idle_gives_up_in_time_and_needs_no_time_to_see_rest() -> None:
    """A condition that holds is seen with no time at all."""
    async with open_system() as system:
        await system.wait_idle(timeout=0)
        ref = await system.spawn(Worker)
        ref.send_nowait(Sleep(9))
        with pytest.raises(TimeoutError, match="not idle within 3 s"):
            await system.wait_idle(timeout=3)


async def test_a_context_is_taken_when_an_actor_is_specified() -> None:
    """Each life runs in a copy of it: what one sets, the next does not see."""
    word: ContextVar[str] = ContextVar("word", default="none")

    class Speaking(Worker):
        @handle
        def speak(self, message: bytes) -> str:
            before = word.get()
            word.set("set by a life")
            return before

    async with open_system() as system:
        word.set("specified")
        ref = await system.spawn(Speaking)
        word.set("later")
        assert [await ref.ask(b""), await ref.ask(b"")] == ["specified", "set by a life"]
        with pytest.raises(ActorCrashed):
            await ref.ask(Crash(Boom()))
        assert await ref.ask(b"") == "specified"
