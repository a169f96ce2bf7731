"""Stopping an actor: now, drained, killed; from outside and by itself."""

from typing import Any

import pytest
import trio
from cast import Add, Sleep, Stubborn, Worker
from trio.testing import wait_all_tasks_blocked

from actors import ActorRef, ActorStopped, Exit, Killed, RecipientStopped, Status, Stopped, handle
from supervision import System, open_system

pytestmark = pytest.mark.virtual_time


def letters(system: System) -> list[object]:
    """The bodies of the dead letters."""
    return [system.dead_letters[place].envelope.body for place in range(len(system.dead_letters))]


async def busy(system: System, actor: type[Worker] = Worker, seconds: float = 50, **how: Any) -> ActorRef:
    """An actor that has handled its message for a second and will for many more."""
    ref = await system.spawn(actor, name="busy", **how)
    ref.send_nowait(Sleep(seconds))
    await trio.sleep(1)
    return ref


# ------------------------------------------------------------------ stopping
async def test_a_stop_now_cancels_the_handler_and_the_rest_is_dead_letters() -> None:
    """What was accepted and is not handled is not silence."""
    async with open_system() as system:
        ref = await busy(system)
        ref.send_nowait("rest")
        assert await ref.stop() == Stopped("stop")
        assert trio.current_time() == 1
        assert letters(system) == [Sleep(50), "rest"]


async def test_five_queued_asks_fail_now_and_not_when_the_actor_has_tidied_up() -> None:
    """Asks to anything that is stopping fail at once; the one being handled hears of it, too."""
    failed: list[float] = []

    class Slow(Worker):
        async def on_stop(self, exit: Exit) -> None:
            await trio.sleep(3)

    async def ask(message: object) -> None:
        with pytest.raises(ActorStopped):
            await ref.ask(message, timeout=None)
        failed.append(trio.current_time())

    async with open_system() as system, trio.open_nursery() as nursery:
        ref = await system.spawn(Slow)
        for message in (Sleep(50), *map(Add, range(5))):
            nursery.start_soon(ask, message)
            await wait_all_tasks_blocked()
        await ref.stop()
        await wait_all_tasks_blocked()
        assert failed == [0] * 5 + [3]


async def test_after_a_stop_no_further_message_is_begun() -> None:
    """Also where the handler in progress finishes in its own time and the next ones would take none."""
    seen: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Stubborn, seen)
        for message in (Sleep(2), 1, 2):
            ref.send_nowait(message)
        await trio.sleep(1)
        await ref.stop()
        assert seen == [Stopped("stop")]
        assert letters(system) == [1, 2]


async def test_a_drain_handles_what_was_accepted_and_accepts_no_more() -> None:
    """Nothing is lost, and it ends."""
    seen: list[Any] = []
    async with open_system() as system, trio.open_nursery() as nursery:
        ref = await system.spawn(Worker, seen)
        for message in (Sleep(2), "b", Sleep(1), "d"):
            ref.send_nowait(message)
        nursery.start_soon(ref.stop, "drain")
        await trio.sleep(1)
        with pytest.raises(RecipientStopped):
            ref.send_nowait("late")
        assert await ref.wait() == Stopped("stop")
        assert seen == ["sleep 2", "b", "sleep 1", "d", Stopped("stop")]
        assert (trio.current_time(), letters(system)) == (3, [])


async def test_a_drain_takes_at_most_the_time_to_stop() -> None:
    """Then it is a stop; what is left is told."""
    async with open_system() as system:
        ref = await busy(system, shutdown=4)
        ref.send_nowait("rest")
        assert await ref.stop("drain") == Stopped("drained too long")
        assert trio.current_time() == 5
        assert letters(system) == [Sleep(50), "rest"]


async def test_a_drain_answers_the_asks_that_were_accepted() -> None:
    """Each of them; nobody who was let in is turned away."""

    async def ask(number: int) -> None:
        assert await ref.ask(Add(number)) >= number

    async with open_system() as system, trio.open_nursery() as nursery:
        ref = await system.spawn(Worker)
        ref.send_nowait(Sleep(2))
        for number in range(100):
            nursery.start_soon(ask, number)
        await wait_all_tasks_blocked()
        await ref.stop("drain")


@pytest.mark.parametrize(("first", "second"), [("drain", "now"), ("drain", "kill"), ("now", "kill")])
async def test_a_harder_stop_overtakes_a_softer_one(first: Any, second: Any) -> None:
    """Whoever cannot wait for the drain says so again."""

    class Slow(Worker):
        async def on_stop(self, exit: Exit) -> None:
            await trio.sleep(4)

    async with open_system() as system, trio.open_nursery() as nursery:
        ref = await busy(system, Slow, shutdown=20)
        nursery.start_soon(ref.stop, first)
        await trio.sleep(1)
        exit = await ref.stop(second)
        assert isinstance(exit, Killed) is (second == "kill")
        assert trio.current_time() == (2 if second == "kill" else 6)


async def test_a_softer_stop_does_not_soften_a_harder_one() -> None:
    """The first wish is kept."""
    async with open_system() as system, trio.open_nursery() as nursery:
        ref = await busy(system)
        nursery.start_soon(ref.stop, "now")
        await trio.lowlevel.checkpoint()
        assert await ref.stop("drain") == Stopped("stop")
        assert trio.current_time() == 1


async def test_cancelling_the_wait_for_a_stop_does_not_take_it_back() -> None:
    """A stop is an order, not a wish that lives with its wisher."""

    class Slow(Worker):
        async def on_stop(self, exit: Exit) -> None:
            await trio.sleep(3)

    async with open_system() as system:
        ref = await system.spawn(Slow)
        with trio.move_on_after(1):
            await ref.stop()
        assert ref.status is Status.STOPPING
        await ref.wait()
        assert trio.current_time() == 3


async def test_stopping_a_thousand_actors_takes_one_cleanup() -> None:
    """What was spawned stops all at once."""

    class Tidy(Worker):
        async def on_stop(self, exit: Exit) -> None:
            await trio.sleep(0.05)

    async with open_system() as system:
        for _ in range(1000):
            await system.spawn(Tidy)
    assert trio.current_time() == pytest.approx(0.05)


# ------------------------------------------------------------------ stopping oneself
class Quitter(Worker):
    """Stops itself, in every way, and notes what it does after."""

    @handle
    async def quit(self, message: tuple) -> str:  # type: ignore[type-arg]
        mode, shield = message
        with trio.CancelScope(shield=shield):
            await self.ref.stop(mode)
        self.seen.append("went on")
        return "answer"


@pytest.mark.parametrize("mode", ["now", "kill"])
async def test_a_stop_of_oneself_ends_the_handler_there(mode: Any) -> None:
    """It waits for nothing: least of all for itself."""
    seen: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Quitter, seen)
        with pytest.raises(ActorStopped):
            await ref.ask((mode, False), timeout=None)
        assert isinstance(await ref.wait(), Killed if mode == "kill" else Stopped)
        assert trio.current_time() == 0
    assert seen == ([] if mode == "kill" else [Stopped("stop")])


async def test_a_drain_of_oneself_lets_the_handler_go_on() -> None:
    """Its message was accepted, like the others."""
    seen: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Quitter, seen)
        ref.send_nowait(("drain", False))
        ref.send_nowait("next")
        assert await ref.wait() == Stopped("stop")
    assert seen == ["went on", "next", Stopped("stop")]


async def test_a_shielded_stop_of_oneself_does_not_hang() -> None:
    """Nor one in `on_stop`; there is nothing to wait for."""

    class Twice(Quitter):
        async def on_stop(self, exit: Exit) -> None:
            await self.ref.stop()

    seen: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Twice, seen)
        ref.send_nowait(("now", True))
        assert await ref.wait() == Stopped("stop")
        assert (trio.current_time(), seen) == (0, ["went on"])
