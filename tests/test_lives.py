"""How a life ends: the order of the steps, the clock on them, zombies, kills. Stops: `test_stops.py`; crashes: `test_crashes.py`."""

from typing import Any

import pytest
import trio
import trio.lowlevel
from cast import Boom, Crash, Sleep, Stubborn, Worker
from trio.testing import wait_all_tasks_blocked

from actors import (
    ActorRef,
    Ended,
    Exit,
    Failed,
    Fenced,
    Killed,
    RecipientStopped,
    Status,
    Stopped,
    handle,
)
from supervision import ChildSpec, Supervisor, System, open_system

pytestmark = pytest.mark.virtual_time


async def busy(system: System, actor: type[Worker] = Worker, seconds: float = 50, **how: Any) -> ActorRef:
    """An actor that has handled its message for a second and will for many more."""
    ref = await system.spawn(actor, name="busy", **how)
    ref.send_nowait(Sleep(seconds))
    await trio.sleep(1)
    return ref


# ------------------------------------------------------------------ the order at an end
class Family(Worker):
    """Notes every step of its end, in the diary of its class."""

    diary: list[str]

    async def on_start(self) -> None:
        await self.spawn(Kid, self.diary)

    @handle
    async def work(self, message: bytes) -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            with pytest.raises(RecipientStopped):
                self.ref.send_nowait(1)
            self.diary.append("cancelled")
            raise

    async def on_stop(self, exit: Exit) -> None:
        self.find("watcher").send_nowait("last word")
        self.diary.append("goodbye")


class Kid(Worker):
    """A child with a goodbye."""

    def __init__(self, diary: list[str]) -> None:
        super().__init__()
        self.diary = diary

    async def on_stop(self, exit: Exit) -> None:
        self.diary.append("child")


class Watcher(Worker):
    """Hears of the end, and takes the name."""

    def __init__(self, diary: list[str]) -> None:
        super().__init__()
        self.diary = diary

    @handle
    def watch_it(self, message: ActorRef) -> None:
        self.watch(message)

    @handle
    def note(self, message: str | int) -> None:
        self.diary.append(str(message))

    @handle
    async def ended(self, message: Ended) -> None:
        self.diary.append("told")
        assert self.find(message.address).status is Status.STOPPED


async def test_the_steps_of_an_end_come_in_their_order() -> None:
    """Refuse mail, cancel, stop the children, say goodbye, revoke, free the name, tell: each relies on those before."""
    diary: list[str] = []
    family = type("ThisFamily", (Family,), {"diary": diary})
    async with open_system() as system:
        watcher = await system.spawn(Watcher, diary, name="watcher")
        ref = await system.spawn(family, name="family")
        watcher.send_nowait(ref)
        ref.send_nowait(b"")
        await wait_all_tasks_blocked()
        await ref.stop()
        await system.wait_idle()
    assert diary == ["cancelled", "child", "goodbye", "last word", "told"]


# ------------------------------------------------------------------ the clock
async def test_cleanup_and_goodbye_share_one_clock() -> None:
    """Five seconds are five seconds, not five for each."""

    class Slow(Worker):
        @handle
        async def sleep(self, message: Sleep) -> str:
            try:
                await trio.sleep(message.seconds)
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(3)
            return ""

        async def on_stop(self, exit: Exit) -> None:
            try:
                await trio.sleep(9)
            finally:
                self.seen.append(trio.current_time())

    seen: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Slow, seen, shutdown=5)
        ref.send_nowait(Sleep(50))
        await wait_all_tasks_blocked()
        assert await ref.stop() == Stopped("stop")
        assert (trio.current_time(), seen) == (5, [5])


async def test_the_time_of_the_children_is_not_the_parents() -> None:
    """A parent has its whole clock for itself, after they are gone."""

    class Slow(Worker):
        async def on_stop(self, exit: Exit) -> None:
            await trio.sleep(4)

    class Parent(Slow):
        async def on_start(self) -> None:
            await self.spawn(Slow, shutdown=5)

    async with open_system() as system:
        ref = await system.spawn(Parent, shutdown=5)
        await ref.stop()
        assert trio.current_time() == 8
        assert system.tree().zombies == ()


async def test_a_life_that_outlives_its_clock_is_a_zombie_without_a_voice() -> None:
    """Its stop is over in time; its late send, answer and mail are nobody's; the tree shows it until its task ends."""
    fenced: list[Fenced] = []

    class Zombie(Worker):
        @handle
        async def sleep(self, message: Sleep) -> str:
            with trio.CancelScope(shield=True):
                await trio.sleep(message.seconds)
            try:
                other.send_nowait("late")
            except Fenced as error:
                fenced.append(error)
            return "late"

    async with open_system() as system:
        other = await system.spawn(Worker, name="other")
        ref = await busy(system, Zombie, 10, shutdown=2)
        assert await ref.stop() == Killed("still there after 2 s")
        assert trio.current_time() == pytest.approx(3, abs=0.1)
        assert system.tree().zombies == ("busy",)
        await trio.sleep(10)
        assert (len(fenced), system.tree().zombies) == (1, ())


async def test_a_zombie_leaves_the_next_life_of_its_mailbox_alone() -> None:
    """Its loop moves no cursor back and begins no message that is another's."""
    seen: list[Any] = []
    async with open_system() as system:
        zombies = ChildSpec(Stubborn, seen, name="zombie", shutdown=1)
        await system.start(Supervisor(zombies, ChildSpec(Worker, name="sibling"), name="p", strategy="one_for_all"))
        zombie, sibling = system.ref("p/zombie"), system.ref("p/sibling")
        for message in (Sleep(10), *range(5)):
            zombie.send_nowait(message)
        await trio.sleep(1)
        sibling.send_nowait(Crash(Boom()))
        await trio.sleep(3)
        for number in range(5, 8):
            zombie.send_nowait(number)
        await trio.sleep(20)
        assert [each for each in seen if isinstance(each, int)] == list(range(8))


async def test_a_zombie_that_waits_for_mail_takes_none() -> None:
    """What comes is the next life's."""
    seen: list[Any] = []

    class Deaf(Worker):
        @handle
        async def listen(self, message: bytes) -> None:
            with trio.CancelScope(shield=True), pytest.raises(Fenced):
                await self.receive(int)

    async with open_system() as system:
        deaf = ChildSpec(Deaf, seen, name="deaf", shutdown=1)
        await system.start(Supervisor(deaf, ChildSpec(Worker, name="sibling"), name="p", strategy="one_for_all"))
        ref = system.ref("p/deaf")
        ref.send_nowait(b"")
        await trio.sleep(1)
        system.ref("p/sibling").send_nowait(Crash(Boom()))
        await trio.sleep(3)
        ref.send_nowait(7)
        await system.wait_idle()
        assert seen == [7]
        assert system.tree().zombies == ()


# ------------------------------------------------------------------ killing
async def test_a_kill_runs_no_goodbye_and_revokes_at_once() -> None:
    """For what cannot be trusted with its own end."""
    seen: list[Any] = []
    fenced: list[type] = []

    class Rebel(Worker):
        @handle
        async def sleep(self, message: Sleep) -> str:
            try:
                await trio.sleep(message.seconds)
            except trio.Cancelled:
                with pytest.raises(Fenced):
                    other.send_nowait("as if alive")
                fenced.append(Fenced)
                raise
            return ""

    async with open_system() as system:
        other = await system.spawn(Worker)
        ref = await system.spawn(Rebel, seen)
        ref.send_nowait(Sleep(50))
        await trio.sleep(1)
        assert await ref.stop("kill") == Killed("stop")
        await wait_all_tasks_blocked()
        assert (seen, fenced, trio.current_time()) == ([], [Fenced], 1)


async def test_a_kill_does_not_wait_for_a_life_that_will_not_go() -> None:
    """It is a zombie from then on, and the name is free."""
    async with open_system() as system:
        ref = await busy(system, Stubborn, 9)
        await ref.stop("kill")
        assert trio.current_time() == 1
        await system.spawn(Worker, name="busy")
        await trio.sleep(1)
        assert system.tree().zombies == ("busy",)
        await trio.sleep(9)
        assert system.tree().zombies == ()


async def test_a_kill_of_one_that_goes_leaves_no_zombie() -> None:
    """Nor a word in the log."""
    async with open_system() as system:
        ref = await busy(system)
        await ref.stop("kill")
        await trio.sleep(1)
        assert system.tree().zombies == ()


async def test_the_children_of_a_killed_actor_are_stopped_in_order() -> None:
    """They have done nothing; they have their goodbye, and the parent's end waits for it."""
    diary: list[str] = []

    class Parent(Worker):
        async def on_start(self) -> None:
            await self.spawn(Kid, diary)

    async with open_system() as system:
        ref = await system.spawn(Parent)
        assert await ref.stop("kill") == Killed("stop")
        assert diary == ["child"]
        assert not list(system.tree())


async def test_a_failing_goodbye_is_the_exit_of_an_orderly_stop() -> None:
    """Cleanup that failed is a failure; it is logged once and stops nobody's stop."""

    class Clumsy(Worker):
        async def on_stop(self, exit: Exit) -> None:
            raise Boom("dropped it")

    async with open_system() as system:
        ref = await system.spawn(Clumsy)
        exit = await ref.stop()
        assert isinstance(exit, Failed)
        assert str(exit.error) == "dropped it"
