"""What supervisors elsewhere get wrong, each as the guarantee that it is not so here, in twenty orders of the tasks."""

from collections.abc import Awaitable, Callable

import pytest
import trio
from cast import Add, Boom, Crash, Sleep, Stubborn, Worker
from trio.testing import MockClock

from actors import Actor, ActorCrashed, AskTimeout, Exit, Fenced, StartFailed, Stopped, handle
from actors.testing import scheduled
from supervision import ChildSpec, Supervisor, open_system


def in_many_orders(play: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """The test, under twenty seeds, on virtual time."""

    def test() -> None:
        for seed in range(20):
            with scheduled(seed):
                trio.run(play, clock=MockClock(autojump_threshold=0))

    test.__name__, test.__doc__ = play.__name__, play.__doc__
    return test


@in_many_orders
async def test_a_crash_during_a_call_never_hangs_the_caller() -> None:
    """It hears of it in the same moment, also when it would have waited for ever."""
    async with open_system() as system:
        ref = await system.spawn(Worker)
        with pytest.raises(ActorCrashed, match="Boom: why"):
            await ref.ask(Crash(Boom("why")), timeout=None)
        assert trio.current_time() == 0


@in_many_orders
async def test_a_callers_timeout_never_harms_the_server() -> None:
    """Its handler goes on to its end, in the same life; nothing is restarted, the next ask is answered."""
    async with open_system() as system:
        ref = await system.spawn(Worker)
        await ref.ask(Add(1))
        with pytest.raises(AskTimeout):
            await ref.ask(Sleep(10), timeout=1)
        assert await ref.ask(Add(1), timeout=None) == 2
        assert trio.current_time() == 10
        assert (system.statistics().restarts, system.statistics().late_replies) == (0, 1)


class Fragile(Worker):
    """Fails to start, and would hide it by failing again on its way out."""

    async def on_start(self) -> None:
        try:
            raise Boom("the first")
        finally:
            await trio.lowlevel.checkpoint()

    async def on_stop(self, exit: Exit) -> None:
        raise ValueError("another")


@in_many_orders
async def test_an_error_of_a_start_is_never_masked() -> None:
    """Whoever starts a tree gets the error of the child that failed, not that of the tidying up."""
    async with open_system() as system:
        with pytest.raises(StartFailed, match="p/bad did not start: Boom: the first") as caught:
            await system.start(Supervisor(ChildSpec(Worker, name="a"), ChildSpec(Fragile, name="bad"), name="p"))
        assert isinstance(caught.value.error, Boom)
        with pytest.raises(StartFailed, match="Boom: the first"):
            await system.spawn(Fragile)


class Noted(Worker):
    """Notes its end."""

    def __init__(self, diary: list[str], name: str) -> None:
        super().__init__()
        self.diary, self.name = diary, name

    async def on_stop(self, exit: Exit) -> None:
        await trio.lowlevel.checkpoint()
        self.diary.append(self.name)


@in_many_orders
async def test_the_order_of_a_stop_is_always_the_same() -> None:
    """The reverse of the start, busy or idle, whatever the scheduler does."""
    diary: list[str] = []
    async with open_system() as system:
        await system.start(Supervisor(*(ChildSpec(Noted, diary, name, name=name) for name in "abcdefgh"), name="p"))
        for name in "bdg":
            system.ref(f"p/{name}").send_nowait(Sleep(50))
    assert "".join(diary) == "hgfedcba"


@in_many_orders
async def test_a_late_commit_never_undoes_a_group_restart() -> None:
    """What the old life still writes after its successor began is refused; what the new one wrote stands."""
    book: list[str] = []

    class Book(Actor):
        @handle
        def write(self, word: str) -> None:
            book.append(word)

    class Clerk(Stubborn):
        @handle
        async def sleep(self, message: Sleep) -> str:
            with trio.CancelScope(shield=True):
                await trio.sleep(message.seconds)
            with pytest.raises(Fenced):
                self.find("book").send_nowait("old")
            return "slept"

    async with open_system() as system:
        store = await system.spawn(Book, name="book")
        specs = (ChildSpec(Clerk, name="clerk", shutdown=1), ChildSpec(Worker, name="other"))
        await system.start(Supervisor(*specs, name="p", strategy="one_for_all"))
        system.ref("p/clerk").send_nowait(Sleep(10))
        system.ref("p/other").send_nowait(Crash(Boom()))
        await trio.sleep(5)
        store.send_nowait("new")
        assert await system.ref("p/clerk").ask(Add(1)) == 1
        await trio.sleep(10)
        assert book == ["new"]


class Busy(Actor):
    """Notes when its handler is done, and what it had started."""

    def __init__(self, diary: list[str], patience: float) -> None:
        self.diary, self.patience = diary, patience

    async def on_stop(self, exit: Exit) -> None:
        self.diary.append("cleanup")

    @handle
    async def work(self, message: str) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.part)
            nursery.start_soon(self.part)

    async def part(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(self.patience)
            self.diary.append("part")


@in_many_orders
async def test_cleanup_never_runs_while_the_handler_still_runs() -> None:
    """Nor beside what the handler started; of a life that will not end, no cleanup runs at all."""
    for patience, wanted in ((1, ["part", "part", "cleanup"]), (9, ["part", "part"])):
        diary: list[str] = []
        async with open_system() as system:
            ref = await system.spawn(Busy, diary, patience, shutdown=2)
            ref.send_nowait("go")
            await trio.sleep(1)
            await ref.stop()
            await trio.sleep(20)
        assert diary == wanted


@in_many_orders
async def test_a_keyboard_interrupt_is_never_restarted() -> None:
    """It ends the program, in order: what was there is stopped, and it leaves bare."""
    diary: list[str] = []
    lives: list[int] = []

    class Interrupted(Noted):
        async def on_start(self) -> None:
            lives.append(1)

    with pytest.raises(KeyboardInterrupt):
        async with open_system() as system:
            specs = (ChildSpec(Noted, diary, "a", name="a"), ChildSpec(Interrupted, diary, "b", name="b", restart="permanent"))
            await system.start(Supervisor(*specs, name="p", strategy="one_for_all"))
            system.ref("p/b").send_nowait(Crash(KeyboardInterrupt()))
            await trio.sleep_forever()
    assert (lives, diary[-1]) == ([1], "a")
    assert await system.ref("p/a").wait() == Stopped("its supervisor stops")
