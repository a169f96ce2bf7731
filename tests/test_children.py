"""Children and watches: whose end ends whom, and who hears of it."""

from functools import partial
from typing import Any

import pytest
import trio
from cast import Add, Boom, Crash, Done, Worker
from trio.testing import MockClock

from actors import (
    Actor,
    ActorCrashed,
    ActorRef,
    ActorsError,
    Ended,
    Exit,
    Failed,
    Finished,
    RecipientStopped,
    StartFailed,
    Stopped,
    handle,
)
from supervision import open_system


class Parent(Worker):
    """Spawns what it is told, and hands out what it sees."""

    @handle
    async def spawn_child(self, message: partial) -> ActorRef:  # type: ignore[type-arg]
        return await self.spawn(*message.args, **message.keywords)

    @handle
    def watch_it(self, message: ActorRef) -> None:
        self.watch(message)


def broken() -> Actor:
    """A factory that fails."""
    raise Boom


class Heedless(Actor):
    """A parent without a handler for `Ended`."""

    @handle
    async def spawn_child(self, message: partial) -> ActorRef:  # type: ignore[type-arg]
        return await self.spawn(*message.args, **message.keywords)


def child(*args: Any, **how: Any) -> partial[ActorRef]:
    """The order to spawn one."""
    return partial(ActorRef, *args, **how)


async def test_a_child_is_below_its_parent_and_ends_before_it(autojump_clock: MockClock) -> None:
    """Its address is a path, and its goodbye comes first."""
    seen: list[Any] = []
    async with open_system() as system:
        parent = await system.spawn(Parent, name="p")
        kid = await parent.ask(child(Worker, seen, name="kid"))
        assert kid.address == "p/kid"
        await parent.stop()
        assert kid.status == "stopped"
        assert seen == [Stopped("its parent stops")]


async def test_a_child_ends_with_a_crash_of_its_parent(autojump_clock: MockClock) -> None:
    """The next life starts with none; the names are free."""
    async with open_system() as system:
        parent = await system.spawn(Parent, name="p")
        kid = await parent.ask(child(Worker, name="kid"))
        with pytest.raises(ActorCrashed):
            await parent.ask(Crash(Boom()))
        assert await kid.wait() == Stopped("its parent stops")
        assert (await parent.ask(child(Worker, name="kid"))).address == "p/kid"


async def test_a_parent_hears_of_every_end_of_a_child(autojump_clock: MockClock) -> None:
    """Restarting or for good."""
    seen: list[Any] = []
    async with open_system() as system:
        parent = await system.spawn(Parent, seen, name="p")
        kid = await parent.ask(child(Worker, name="kid"))
        error = Boom()
        kid.send_nowait(Crash(error))
        await system.wait_idle()
        await kid.stop()
        await system.wait_idle()
        assert seen == [Ended("p/kid", Failed(error), restarting=True), Ended("p/kid", Stopped("stop"), restarting=False)]


async def test_a_child_that_fails_for_good_crashes_a_parent_that_does_not_listen(autojump_clock: MockClock) -> None:
    """Nobody's failure is lost: who does not handle it shares it, and its error says whose it was."""
    async with open_system() as system:
        parent = await system.spawn(Heedless, name="p", restart="temporary")
        kid = await parent.ask(child(Worker, name="kid", restart="temporary"))
        kid.send_nowait(Crash(Boom("why")))
        exit = await parent.wait()
        assert isinstance(exit, Failed)
        assert str(exit.error) == "p/kid crashed: Boom: why"


@pytest.mark.parametrize("error", [TimeoutError(), RecipientStopped(address="x", exit=Stopped())])
async def test_no_failure_of_a_child_passes_for_an_answer(autojump_clock: MockClock, error: Exception) -> None:
    """A refusal that a handler gets is an answer; one that killed a child is a failure."""

    async def fail(_context: Actor) -> None:
        raise error

    async with open_system() as system:
        parent = await system.spawn(Heedless, restart="temporary")
        parent.send_nowait(child(fail, restart="temporary"))
        assert isinstance(await parent.wait(), Failed)


@pytest.mark.parametrize("how", ["stop", "finish", "restart"])
async def test_other_ends_of_a_child_leave_a_parent_alone(autojump_clock: MockClock, how: str) -> None:
    """A child that is stopped, done, or restarted has not failed for good."""
    async with open_system() as system:
        parent = await system.spawn(Heedless, name="p")
        kid = await parent.ask(child(Done, name="kid"))
        await {"stop": kid.stop, "finish": partial(kid.send, b""), "restart": partial(kid.send, Crash(Boom()))}[how]()
        await system.wait_idle()
        assert [node.generation for node in system.tree() if node.address == "p"] == [1]


async def test_a_child_whose_start_fails_is_its_parents_to_handle_once(autojump_clock: MockClock) -> None:
    """The spawn raises; no `Ended` comes after it and kills a parent that has coped."""

    class Copes(Heedless):
        @handle
        async def cope(self, message: str) -> str:
            with pytest.raises(StartFailed):
                await self.spawn(broken, name="kid")
            return message

    async with open_system() as system:
        parent = await system.spawn(Copes, name="p")
        assert await parent.ask("coped") == "coped"
        await system.wait_idle()
        assert await parent.ask("still here") == "still here"
        assert [node.generation for node in system.tree()] == [1]


async def test_a_child_that_is_over_before_its_spawn_returns_is_told_too(autojump_clock: MockClock) -> None:
    """However short its life."""

    async def brief(_context: Actor) -> str:
        return "done"

    seen: list[Any] = []
    async with open_system() as system:
        parent = await system.spawn(Parent, seen, name="p")
        await parent.ask(child(brief, name="kid"))
        await system.wait_idle()
        assert seen == [Ended("p/kid", Finished("done"))]


async def test_watching_an_ended_actor_tells_at_once(autojump_clock: MockClock) -> None:
    """Whoever comes late misses nothing."""
    seen: list[Any] = []
    async with open_system() as system:
        other = await system.spawn(Worker, name="other")
        await other.stop()
        parent = await system.spawn(Parent, seen)
        await parent.ask(other)
        await system.wait_idle()
        assert seen == [Ended("other", Stopped("stop"))]


async def test_ended_comes_after_all_mail_of_that_actor_and_with_its_name_free(autojump_clock: MockClock) -> None:
    """The last word of a child is read before its end; then a new one may take its place."""
    seen: list[Any] = []

    class Heir(Parent):
        @handle
        async def ended(self, message: Ended) -> None:
            self.seen.append(message.exit)
            await self.spawn(Worker, name="kid")

    class Last(Worker):
        async def on_stop(self, exit: Exit) -> None:
            self.find("p").send_nowait("last word")

    async with open_system() as system:
        parent = await system.spawn(Heir, seen, name="p")
        kid = await parent.ask(child(Last, name="kid"))
        await kid.stop()
        await system.wait_idle()
        assert seen == ["last word", Stopped("stop")]
        assert await kid.ask(Add(1)) == 1


async def test_an_unwatched_actor_is_not_heard_of(autojump_clock: MockClock) -> None:
    """A watch can be taken back, also one of a child."""
    seen: list[Any] = []

    class Blind(Parent):
        @handle
        async def blind(self, message: bytes) -> ActorRef:
            kid = await self.spawn(Worker, name="kid")
            self.unwatch(kid)
            return kid

    async with open_system() as system:
        parent = await system.spawn(Blind, seen, name="p")
        kid: ActorRef = await parent.ask(b"")
        await kid.stop()
        await system.wait_idle()
        assert seen == []


async def test_what_is_spawned_on_the_way_out_is_refused(autojump_clock: MockClock) -> None:
    """Its children have just been stopped; one more would never be."""
    seen: list[Any] = []

    class Clinging(Worker):
        async def on_stop(self, exit: Exit) -> None:
            with pytest.raises(ActorsError, match="is stopping and starts no more children"):
                await self.spawn(Worker)
            seen.append(exit)

    async with open_system() as system:
        ref = await system.spawn(Clinging)
        ref.send_nowait(Crash(Boom()))
        await system.wait_idle()
        await ref.stop()
    assert [type(exit) for exit in seen] == [Failed, Stopped]


async def test_a_cancelled_spawn_has_stopped_its_child(autojump_clock: MockClock) -> None:
    """At whatever moment the cancel comes, also as it becomes ready: nobody is left whom nobody knows."""
    seen: list[Any] = []

    class Slow(Worker):
        async def on_start(self) -> None:
            await trio.sleep(1)

    async with open_system() as system:
        for moment in (0, 0.5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1):
            with trio.move_on_after(moment) as scope:
                await system.spawn(Slow, seen, name="slow")
            known = [node.address for node in system.tree()]
            assert known == ([] if scope.cancelled_caught else ["slow"])
            if known:
                await system.ref("slow").stop()
