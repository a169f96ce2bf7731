"""A supervisor at work: it starts in order, restarts by the table, gives up in time, stops in reverse."""

from typing import Any

import pytest
import trio
from cast import Add, Boom, Crash, Done, Sleep, Stubborn, Worker

from actors import (
    ActorCrashed,
    Exit,
    Failed,
    Finished,
    NotPermitted,
    RecipientStopped,
    RestartIntensityExceeded,
    StartFailed,
    Status,
    Stopped,
)
from supervision import ChildSpec, Supervisor, System, open_system

pytestmark = pytest.mark.virtual_time


class Noted(Worker):
    """Notes its starts and stops in a common diary, by name; starting and stopping take a second each."""

    def __init__(self, diary: list[str], name: str, fails: list[str]) -> None:
        super().__init__()
        self.diary, self.name, self.fails = diary, name, fails

    async def on_start(self) -> None:
        await trio.sleep(1)
        if self.name in self.fails:
            self.diary.append(f"!{self.name}")
            raise Boom(self.name)
        self.diary.append(f"+{self.name}")

    async def on_stop(self, exit: Exit) -> None:
        await trio.sleep(1)
        self.diary.append(f"-{self.name}")


def tree(diary: list[str], names: str = "abc", fails: list[str] | None = None, **how: Any) -> Supervisor:
    """A supervisor `p` of noted actors."""
    restarts = how.pop("restarts", {})
    specs = (
        ChildSpec(Noted, diary, name, [] if fails is None else fails, name=name, restart=restarts.get(name, "permanent"))
        for name in names
    )
    return Supervisor(*specs, name="p", **how)


async def crash(system: System, address: str) -> None:
    """Let it fail, and wait until the tree is at rest again."""
    with pytest.raises(ActorCrashed):
        await system.ref(address).ask(Crash(Boom(address)))
    await system.wait_idle()


def generations(system: System) -> dict[str, int]:
    """How many lives each has had."""
    return {node.address: node.generation for node in system.tree()}


# ------------------------------------------------------------------ starting and stopping
async def test_children_start_in_order_each_ready_before_the_next() -> None:
    """What stands later in the list may need what stands before."""
    diary: list[str] = []
    async with open_system() as system:
        ref = await system.start(tree(diary))
        assert (diary, trio.current_time()) == (["+a", "+b", "+c"], 3)
        assert ref.address == "p"
        assert await system.ref("p/b").ask(Add(2)) == 2


async def test_children_stop_in_reverse_one_by_one() -> None:
    """Nobody loses under its feet what it stands on."""
    diary: list[str] = []
    async with open_system() as system:
        ref = await system.start(tree(diary))
        assert await ref.stop() == Stopped("stop")
        assert (diary[3:], trio.current_time()) == (["-c", "-b", "-a"], 6)
        assert not list(system.tree())


async def test_leaving_the_block_stops_in_the_same_order() -> None:
    """The last tree first."""
    diary: list[str] = []
    async with open_system() as system:
        await system.start(tree(diary, "ab"))
        await system.start(ChildSpec(Noted, diary, "q", [], name="q"))
    assert diary[3:] == ["-q", "-b", "-a"]


async def test_a_failed_first_start_takes_back_what_had_started_and_is_not_tried_again() -> None:
    """The starter gets the error of the child that failed; every name is free."""
    diary: list[str] = []
    async with open_system() as system:
        with pytest.raises(StartFailed, match="p/c did not start: Boom: c") as caught:
            await system.start(tree(diary, "abcd", ["c"]))
        assert caught.value.path == "p/c"
        assert diary == ["+a", "+b", "!c", "-b", "-a"]
        await system.start(tree(diary, "ab"))


async def test_a_cancelled_start_takes_back_what_had_started() -> None:
    """Before the cancel leaves."""
    diary: list[str] = []
    async with open_system() as system:
        with trio.move_on_after(2.5):
            await system.start(tree(diary))
        assert diary == ["+a", "+b", "-b", "-a"]
        assert not list(system.tree())


async def test_a_child_that_does_not_stop_in_time_holds_up_nobody_for_longer() -> None:
    """It is a zombie: shown, fenced, and passed over; the others stop as if it were gone."""
    async with open_system() as system:
        ref = await system.start(
            Supervisor(
                ChildSpec(Worker, name="a"), ChildSpec(Stubborn, name="b", shutdown=2), ChildSpec(Worker, name="c"), name="p"
            )
        )
        system.ref("p/b").send_nowait(Sleep(10))
        await trio.sleep(1)
        await ref.stop()
        assert trio.current_time() == pytest.approx(3, abs=0.1)
        assert system.tree().zombies == ("p/b",)
        assert "zombie: p/b" in str(system.tree())
        await trio.sleep(10)
        assert system.tree().zombies == ()


async def test_each_child_has_its_own_time_to_stop() -> None:
    """The time of one is not taken from another."""
    async with open_system() as system:
        specs = (ChildSpec(Stubborn, name=f"c{seconds}", shutdown=seconds) for seconds in (3, 1, 2))
        ref = await system.start(Supervisor(*specs, name="p"))
        for seconds in (3, 1, 2):
            system.ref(f"p/c{seconds}").send_nowait(Sleep(50))
        await trio.sleep(1)
        await ref.stop()
        assert trio.current_time() == pytest.approx(7, abs=0.1)


async def test_a_supervisor_reads_no_mail() -> None:
    """A message to it is refused with what to do instead."""
    async with open_system() as system:
        ref = await system.start(tree([], "a"))
        for send in (ref.send, ref.ask, ref.interrupt):
            with pytest.raises(NotPermitted, match=r"p is a supervisor and handles no messages; write to a child, p/name"):
                await send(1)
        await ref.stop()
        with pytest.raises(RecipientStopped):
            await ref.send(1)


# ------------------------------------------------------------------ restarting one
async def test_a_crash_restarts_the_child_alone_with_fresh_state() -> None:
    """One for one, unless said otherwise."""
    async with open_system() as system:
        await system.start(tree([]))
        assert await system.ref("p/b").ask(Add(5)) == 5
        await crash(system, "p/b")
        assert await system.ref("p/b").ask(Add(1)) == 1
        assert generations(system) == {"p": 1, "p/a": 1, "p/b": 2, "p/c": 1}


@pytest.mark.parametrize(
    ("restart", "end", "lives"),
    [
        ("permanent", "finish", 2), ("transient", "finish", 0), ("temporary", "finish", 0),
        ("permanent", "crash", 2), ("transient", "crash", 2), ("temporary", "crash", 0),
    ],
)  # fmt: skip
async def test_who_is_restarted_after_which_end(restart: Any, end: str, lives: int) -> None:
    """Permanent always, transient unless it was done, temporary never."""
    async with open_system() as system:
        await system.start(Supervisor(ChildSpec(Done, name="a", restart=restart), ChildSpec(Worker, name="b"), name="p"))
        system.ref("p/a").send_nowait(b"" if end == "finish" else Crash(Boom()))
        await system.wait_idle()
        assert generations(system).get("p/a", 0) == lives
        assert generations(system)["p/b"] == 1


@pytest.mark.parametrize("mode", ["now", "drain", "kill"])
async def test_a_permanent_child_that_somebody_stops_stays_stopped(mode: Any) -> None:
    """Its name is free, nothing is counted; a restart of its group does not bring it back, one of its supervisor does."""
    async with open_system() as system:
        inner = Supervisor(
            ChildSpec(Worker, name="a", restart="permanent"), ChildSpec(Worker, name="b", restart="permanent"), name="p",
            strategy="one_for_all", max_restarts=1,
        )  # fmt: skip
        await system.start(Supervisor(inner, name="top"))
        await system.ref("top/p/a").stop(mode)
        await crash(system, "top/p/b")
        assert generations(system) == {"top": 1, "top/p": 1, "top/p/b": 2}
        await crash(system, "top/p/b")
        assert generations(system) == {"top": 1, "top/p": 2, "top/p/a": 1, "top/p/b": 1}


async def test_mail_between_two_lives_is_kept() -> None:
    """An address outlives a life; only the message that was being handled is gone."""
    diary: list[str] = []
    async with open_system() as system:
        await system.start(tree(diary, "a"))
        ref = system.ref("p/a")
        ref.send_nowait(Crash(Boom()))
        ref.send_nowait(Add(1))
        await trio.sleep(0.5)
        assert (ref.status, diary) == (Status.STOPPING, ["+a"])
        await trio.sleep(1)
        assert (ref.status, diary) == (Status.RESTARTING, ["+a", "-a"])
        assert await ref.ask(Add(1)) == 2


# ------------------------------------------------------------------ giving up
async def test_three_restarts_in_five_seconds_and_the_fourth_failure_escalates() -> None:
    """It is raised bare from the block; the body was cancelled; the error says which child, how often, and why."""

    async def fail_every_second() -> None:
        async with open_system() as system:
            await system.start(Supervisor(ChildSpec(Worker, name="a"), name="p"))
            for count in range(4):
                assert generations(system)["p/a"] == count + 1
                system.ref("p/a").send_nowait(Crash(Boom("why")))
                await trio.sleep(1)

    with pytest.raises(RestartIntensityExceeded, match=r"p gave up after 3 restarts within 5 s; last: p/a: Boom: why"):
        await fail_every_second()
    assert trio.current_time() == 3


async def test_failures_six_seconds_apart_never_escalate() -> None:
    """A child may fail for ever, if it does so slowly."""
    async with open_system() as system:
        await system.start(tree([], "a"))
        for _ in range(20):
            await crash(system, "p/a")
            await trio.sleep(6)
        assert generations(system)["p/a"] == 21


@pytest.mark.parametrize(("budget", "lives"), [("supervisor", 1), ("child", 3)])
async def test_a_budget_is_the_supervisors_or_each_childs(budget: Any, lives: int) -> None:
    """Two children that fail twice each: together too often, alone not."""
    inner = Supervisor(*(ChildSpec(Worker, name=name) for name in "ab"), name="p", budget=budget)
    async with open_system() as system:
        await system.start(Supervisor(inner, name="top"))
        for name in "abab":
            await crash(system, f"top/p/{name}")
        assert generations(system)["top/p/a"] == lives


async def test_a_supervisor_that_gave_up_is_restarted_by_its_own() -> None:
    """Giving up is abnormal; the next level has its own patience, and everything below starts afresh."""
    diary: list[str] = []
    async with open_system() as system:
        await system.start(Supervisor(tree(diary, "ab", max_restarts=0), name="top"))
        with pytest.raises(ActorCrashed):
            await system.ref("top/p/a").ask(Crash(Boom()))
        await system.wait_idle()
        assert generations(system) == {"top": 1, "top/p": 2, "top/p/a": 1, "top/p/b": 1}
        assert diary == ["+a", "+b", "-a", "-b", "+a", "+b"]


async def test_the_child_that_used_up_the_patience_has_failed_and_the_others_were_stopped() -> None:
    """Each exit says what happened to that one."""
    async with open_system() as system:
        await system.start(
            Supervisor(Supervisor(*(ChildSpec(Worker, name=each) for each in "ab"), name="p", max_restarts=0), name="top")
        )
        exits: dict[str, Exit] = {}

        async def wait(name: str) -> None:
            exits[name] = await system.ref(f"top/p/{name}").wait()

        async with trio.open_nursery() as nursery:
            for name in "ab":
                nursery.start_soon(wait, name)
            await trio.sleep(1)
            system.ref("top/p/a").send_nowait(Crash(Boom()))
        assert isinstance(exits["a"], Failed)
        assert exits["b"] == Stopped("its supervisor stops")


# ------------------------------------------------------------------ shutting down by itself
@pytest.mark.parametrize(
    ("mode", "ends", "over"),
    [
        ("never", "ab", False),
        ("any", "a", True),
        ("any", "c", False),
        ("all", "a", False),
        ("all", "ab", True),
        ("all", "ba", True),
    ],
)
async def test_significant_children_end_their_supervisor(mode: Any, ends: str, *, over: bool) -> None:
    """Normally; a job whose workers are done is done."""
    specs = [ChildSpec(Done, name=name, restart="transient", significant=name in "ab") for name in "abc"]
    async with open_system() as system:
        ref = await system.start(Supervisor(*specs, name="p", auto_shutdown=mode))
        for name in ends:
            system.ref(f"p/{name}").send_nowait(b"")
        await trio.sleep(2)
        assert (ref.status is Status.STOPPED) is over
        if over:
            assert await ref.wait() == Finished(None)


async def test_a_stop_by_somebody_is_no_shutdown() -> None:
    """Only ends that nobody asked for count."""
    async with open_system() as system:
        specs = [ChildSpec(Worker, name=name, restart="temporary", significant=True) for name in "ab"]
        ref = await system.start(Supervisor(*specs, name="p", auto_shutdown="any"))
        await system.ref("p/a").stop()
        await trio.sleep(1)
        assert ref.status is Status.IDLE
