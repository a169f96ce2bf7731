"""Actors as people write them: their life, their end, what they send themselves. Children: `test_children.py`."""

from functools import partial
from typing import Any

import pytest
import trio
from cast import Add, Boom, Crash, Done, Sleep, Worker
from trio.testing import MockClock, wait_all_tasks_blocked

from actors import (
    Actor,
    ActorRef,
    ActorsError,
    ConfigError,
    Failed,
    Finished,
    StartFailed,
    Stopped,
    Timer,
    handle,
)
from supervision import open_system


def bodies(dead_letters: Any) -> list[object]:
    return [dead_letters[place].envelope.body for place in range(len(dead_letters))]


# ------------------------------------------------------------------ one life
class Diary(Worker):
    """Notes when its life begins."""

    def __init__(self, seen: list[Any], *words: str) -> None:
        super().__init__(seen)
        seen.append(("made", *words))

    async def on_start(self) -> None:
        await trio.sleep(1)
        self.seen.append("started")


async def test_a_life_is_made_started_serves_and_says_goodbye(autojump_clock: MockClock) -> None:
    """In this order, and nobody counts it as ready before `on_start` is done."""
    seen: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Diary, seen, "hello")
        assert seen == [("made", "hello"), "started"]
        ref.send_nowait(1)
        await system.wait_idle()
    assert seen[2:] == [1, Stopped("the system stops")]


async def test_each_life_is_made_afresh_with_the_same_arguments(autojump_clock: MockClock) -> None:
    """A crash forgets the state that may have caused it."""
    seen: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Diary, seen, "hello")
        await ref.ask(Add(5))
        error = Boom()
        ref.send_nowait(Crash(error))
        assert await ref.ask(Add(1)) == 1
    assert seen[2:5] == [Failed(error), ("made", "hello"), "started"]


async def test_mail_is_accepted_from_the_first_start_on(autojump_clock: MockClock) -> None:
    """What comes while it starts is handled when it is ready; if it never is, it is dead letters."""
    async with open_system() as system, trio.open_nursery() as nursery:
        seen: list[Any] = []
        nursery.start_soon(partial(system.spawn, Diary, seen, name="slow"))
        nursery.start_soon(_never_ready, system)
        await wait_all_tasks_blocked()
        system.ref("slow").send_nowait("early")
        system.ref("never").send_nowait("lost")
        await trio.sleep(5)
        assert seen[-1] == "early"
        assert bodies(system.dead_letters) == ["lost"]


async def _never_ready(system: Any) -> None:
    class Never(Worker):
        async def on_start(self) -> None:
            await trio.sleep_forever()

    with pytest.raises(StartFailed, match=r"never did not start: .*not ready within 2 s"):
        await system.spawn(Never, name="never", init_timeout=2)
    assert trio.current_time() == 2


@pytest.mark.parametrize("where", ["__init__", "on_start"])
async def test_a_failed_start_is_told_to_the_starter_and_not_tried_again(autojump_clock: MockClock, where: str) -> None:
    """A configuration that is wrong is wrong the second time, too; the name is free again."""
    tries: list[str] = []

    def fail(*_args: object) -> None:
        tries.append(where)
        raise Boom("no disk")

    async def fail_later(self: Actor) -> None:
        fail()

    actor = type("Wrong", (Worker,), {where: fail if where == "__init__" else fail_later})
    async with open_system() as system:
        with pytest.raises(StartFailed, match="wrong did not start: Boom: no disk") as caught:
            await system.spawn(actor, name="wrong")
        assert (caught.value.path, tries) == ("wrong", [where])
        await system.spawn(Worker, name="wrong")


async def test_an_actor_that_never_started_says_no_goodbye(autojump_clock: MockClock) -> None:
    """`on_stop` undoes `on_start`."""
    seen: list[Any] = []

    class Wrong(Worker):
        async def on_start(self) -> None:
            raise Boom

    async with open_system() as system:
        with pytest.raises(StartFailed):
            await system.spawn(Wrong, seen)
    assert seen == []


async def test_a_start_that_ignores_its_time_limit_has_failed(autojump_clock: MockClock) -> None:
    """Also if it is done a moment later; nobody waits for it any more."""

    class Deaf(Worker):
        async def on_start(self) -> None:
            with trio.CancelScope(shield=True):
                await trio.sleep(3)

    async with open_system() as system:
        for shutdown in (1, 9):
            with pytest.raises(StartFailed, match="not ready within 2 s"):
                await system.spawn(Deaf, name="deaf", init_timeout=2, shutdown=shutdown)
            await trio.sleep(5)


@pytest.mark.parametrize("factory", [Worker(), 5, lambda: 5, dict])
async def test_what_makes_no_actor_is_refused(autojump_clock: MockClock, factory: Any) -> None:
    """The error says what was found and what to write."""
    async with open_system() as system:
        with pytest.raises((ConfigError, StartFailed), match=r"write|must return an Actor"):
            await system.spawn(factory)


@pytest.mark.parametrize("name", ["", "a/b", "a b", "call_1", "x" * 65, 5])
async def test_a_name_is_one_segment_of_an_address(autojump_clock: MockClock, name: Any) -> None:
    """An address is a path; `call_` is the runtime's."""
    async with open_system() as system:
        with pytest.raises(ConfigError, match="cannot be named"):
            await system.spawn(Worker, name=name)


async def test_outside_its_life_an_actor_offers_nothing() -> None:
    """A test that makes one by hand is told to spawn it."""
    with pytest.raises(ActorsError, match=r"Worker is not running: spawn it first"):
        Worker().ref  # noqa: B018  # the look is the act
    with pytest.raises(ActorsError, match="is not running"):
        await Worker().spawn(Worker)


async def test_the_mail_is_there_in_a_handler_only(autojump_clock: MockClock) -> None:
    """What a start or a goodbye would find there is not its message."""

    class Looking(Worker):
        async def on_start(self) -> None:
            with pytest.raises(ActorsError, match="no message is being handled"):
                self.mail  # noqa: B018

        @handle
        def look(self, message: bytes) -> object:
            return self.mail.body

    async with open_system() as system:
        assert await (await system.spawn(Looking)).ask(b"here") == b"here"


# ------------------------------------------------------------------ finishing
async def test_finish_ends_after_the_handler_with_a_value(autojump_clock: MockClock) -> None:
    """The answer is given; the rest of the mail is dead letters; a transient actor is not restarted."""
    async with open_system() as system:
        ref = await system.spawn(Done)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_expect, ref, b"value", "goodbye")
            await wait_all_tasks_blocked()
            ref.send_nowait("rest")
        assert await ref.wait() == Finished(b"value")
        assert bodies(system.dead_letters) == ["rest"]


async def _expect(ref: ActorRef, message: object, wanted: object) -> None:
    assert await ref.ask(message) == wanted


async def test_an_actor_may_finish_while_it_is_idle_or_starting(autojump_clock: MockClock) -> None:
    """A task of its own, or its start, may know that there is nothing left to do."""

    class Brief(Worker):
        async def on_start(self) -> None:
            self.finish("at once")

    class Later(Worker):
        async def on_start(self) -> None:
            nursery.start_soon(self.end)

        async def end(self) -> None:
            await trio.sleep(3)
            self.finish("later")

    async with trio.open_nursery() as nursery, open_system() as system:
        for actor, value in ((Brief, "at once"), (Later, "later")):
            assert await (await system.spawn(actor)).wait() == Finished(value)


# ------------------------------------------------------------------ functions
async def echo(context: Actor, prefix: str) -> str:
    """An actor that is one function: answers until it is told to end."""
    while True:
        envelope = await context.receive()
        assert envelope is not None
        if envelope.body == "end":
            return prefix
        if envelope.body == "crash":
            raise Boom
        if envelope.body == "finish":
            context.finish("finished")
            return prefix
        context.reply(f"{prefix} {envelope.body}", to=envelope)


async def test_an_async_function_is_an_actor(autojump_clock: MockClock) -> None:
    """What it returns is the value of its end; a crash of it is a crash."""
    async with open_system() as system:
        ref = await system.spawn(echo, "hello")
        assert await ref.ask("bob") == "hello bob"
        ref.send_nowait("crash")
        assert await ref.ask("ann") == "hello ann"
        ref.send_nowait("end")
        assert await ref.wait() == Finished("hello")


async def test_a_function_that_finishes_ends_with_that_value(autojump_clock: MockClock) -> None:
    """Its context offers what an actor's `self` does, with the same meaning."""
    async with open_system() as system:
        ref = await system.spawn(partial(echo, prefix="hello"))
        ref.send_nowait("finish")
        assert await ref.wait() == Finished("finished")


async def test_an_object_that_is_called_like_one_is_a_function_too(autojump_clock: MockClock) -> None:
    """Any async callable."""

    class Callable:
        async def __call__(self, context: Actor) -> str:
            return context.ref.address

    async with open_system() as system:
        assert await (await system.spawn(Callable(), name="c")).wait() == Finished("c")


async def test_a_drained_function_ends_when_it_has_read_its_mail(autojump_clock: MockClock) -> None:
    """It does not know of the drain; its next wait is its stop."""
    async with open_system() as system:
        ref = await system.spawn(echo, "hello")
        for name in ("ann", "bob"):
            ref.send_nowait(name)
        assert await ref.stop("drain") == Stopped("stop")
        assert trio.current_time() == 0
        assert system.dead_letters.total == 0


# ------------------------------------------------------------------ mail to oneself
class Clock(Worker):
    """Sends itself a message later."""

    timer: Timer

    @handle
    def start(self, message: float) -> None:
        self.timer = self.send_after(message, "ring")

    @handle
    def cancel(self, message: bytes) -> None:
        self.timer.cancel()


async def test_a_timer_sends_in_time_as_its_actor(autojump_clock: MockClock) -> None:
    """A message like any other."""
    seen: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Clock, seen)
        await ref.ask(3.0)
        await trio.sleep(2.9)
        assert seen == []
        await trio.sleep(0.2)
        assert seen == ["ring"]


async def test_a_cancelled_timer_sends_nothing(autojump_clock: MockClock) -> None:
    """Cancelling it after it rang does nothing."""
    seen: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Clock, seen)
        await ref.ask(3.0)
        await ref.ask(b"cancel")
        await trio.sleep(5)
        assert seen == []
        await ref.ask(0.0)
        await trio.sleep(1)
        await ref.ask(b"cancel")
        assert seen == ["ring"]


@pytest.mark.parametrize("end", ["crash", "drain", "now"])
async def test_a_timer_is_gone_with_its_life(autojump_clock: MockClock, end: str) -> None:
    """The next life did not set it, and a stopping one accepts nothing new."""
    seen: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Clock, seen)
        await ref.ask(3.0)
        if end == "crash":
            ref.send_nowait(Crash(Boom()))
        else:
            ref.send_nowait(Sleep(4))
            await trio.sleep(1)
            await ref.stop(end)  # type: ignore[arg-type]
        await trio.sleep(9)
        assert "ring" not in seen
        assert len(system._root.deadlines) == 0


async def test_ten_thousand_timers_leave_nothing_behind(autojump_clock: MockClock) -> None:
    """Rung or cancelled, they are forgotten."""
    async with open_system() as system:
        ref = await system.spawn(Clock, name="clock")
        for _ in range(10_000):
            await ref.send(60.0, wait=1)
            await ref.send(b"", wait=1)
        await system.wait_idle()
        life = system._root.router.places["clock"].life
        assert life is not None
        assert life.timers == {}
