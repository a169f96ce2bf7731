"""Delays between restarts: they grow, they are counted, they never delay a stop."""

from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from scenes import virtual_time
from trio.testing import wait_all_tasks_blocked

from actors import Actor, ConfigError, Ended, Failed, RestartIntensityExceeded, Status, Stopped, handle
from supervision import Backoff, ChildSpec, Supervisor, System, open_system

pytestmark = virtual_time
EXACT = Backoff(first=0.1, factor=2, maximum=30, jitter=0)
LATE = Backoff(first=30, maximum=30, jitter=0)


# ------------------------------------------------------------------ pure
@pytest.mark.parametrize(
    ("attempt", "seconds"), [(1, 0.1), (2, 0.2), (3, 0.4), (4, 0.8), (5, 1.6), (9, 25.6), (10, 30), (10_000, 30)]
)
def test_delays_double_up_to_the_maximum(attempt: int, seconds: float) -> None:
    """And no number of failures overflows."""
    assert EXACT.delay(attempt, 0.7) == pytest.approx(seconds)


@given(st.integers(1, 50), st.floats(-1, 1))
def test_jitter_moves_a_delay_by_its_fraction_at_most(attempt: int, draw: float) -> None:
    """A hundred actors that lost one server do not come back in one moment."""
    exact, found = EXACT.delay(attempt, 0), Backoff(jitter=0.25).delay(attempt, draw)
    assert 0.75 * exact <= found * 1.000001
    assert found <= exact * 1.250001


@pytest.mark.parametrize(
    "wrong", [{"first": -1}, {"first": 2, "maximum": 1}, {"factor": 0.5}, {"jitter": 1}, {"jitter": -0.1}, {"max_attempts": 0}]
)
def test_a_backoff_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    """When it is written, with what was found and what to write."""
    with pytest.raises(ConfigError, match=r"Backoff: found .*; write "):
        Backoff(**wrong)


# ------------------------------------------------------------------ at work
class Flaky(Actor):
    """Notes when it starts and crashes so many seconds later; the last time is for ever."""

    def __init__(self, starts: list[float], lives: list[float]) -> None:
        self.starts, self.lives = starts, lives

    async def on_start(self) -> None:
        self.starts.append(round(trio.current_time(), 6))
        if self.lives:
            self.send_after(self.lives.pop(0), "crash")

    @handle
    def crash(self, message: str) -> None:
        raise ValueError(message)


async def started(system: System, how: str, backoff: Backoff, starts: list[float], lives: list[float]) -> str:
    """Start it, on its own or under a supervisor; its address."""
    if how == "spawned":
        await system.spawn(Flaky, starts, lives, name="flaky", backoff=backoff)
        return "flaky"
    await system.start(Supervisor(ChildSpec(Flaky, starts, lives, name="flaky", backoff=backoff), name="tree"))
    return "tree/flaky"


both_ways = pytest.mark.parametrize("how", ["spawned", "supervised"])


@both_ways
async def test_failures_in_a_row_wait_longer_and_longer(how: str) -> None:
    """What is down stays down for a while, and each attempt costs it and others something."""
    starts: list[float] = []
    async with open_system() as system:
        await started(system, how, EXACT, starts, [0] * 5)
        await trio.sleep(100)
    assert starts == pytest.approx([0, 0.1, 0.3, 0.7, 1.5, 3.1])


async def test_a_spawned_actor_gives_up_after_so_many_failures_in_a_row() -> None:
    """It ends failed, and says after how many; nothing else does."""
    starts: list[float] = []
    async with open_system() as system:
        await started(system, "spawned", EXACT, starts, [0] * 6)
        await trio.sleep(3)
        exit = await system.ref("flaky").wait()
    assert isinstance(exit, Failed)
    assert isinstance(exit.error, RestartIntensityExceeded)
    assert "gave up after 5 restarts in a row; last: flaky: ValueError: crash" in str(exit.error)
    assert len(starts) == 6


async def test_a_supervised_one_that_gives_up_takes_its_supervisor_along() -> None:
    """As any child past its restarts."""
    starts: list[float] = []

    async def body() -> None:
        async with open_system() as system:
            await started(system, "supervised", EXACT, starts, [0] * 6)
            await trio.sleep(100)

    with pytest.raises(RestartIntensityExceeded, match="tree gave up after 5 restarts in a row; last: tree/flaky"):
        await body()
    assert len(starts) == 6


@both_ways
@pytest.mark.parametrize(("up", "delay"), [(9.9, 4), (10, 1)])
async def test_a_life_of_the_maximum_length_starts_the_count_afresh(how: str, up: float, delay: float) -> None:
    """One crash a day is no row of crashes."""
    starts: list[float] = []
    async with open_system() as system:
        await started(system, how, Backoff(first=1, maximum=10, jitter=0), starts, [0, 0, up])
        await trio.sleep(100)
    assert starts == pytest.approx([0, 1, 3, 3 + up + delay])


@both_ways
async def test_a_crash_that_is_rare_enough_never_gives_up(how: str) -> None:
    """The count is of failures in a row, not of all there ever were."""
    starts: list[float] = []
    async with open_system() as system:
        await started(system, how, Backoff(first=1, maximum=2, jitter=0, max_attempts=1), starts, [2] * 9)
        await trio.sleep(100)
    assert len(starts) == 10


async def test_a_supervisor_that_was_up_long_enough_starts_its_count_afresh() -> None:
    """It has a backoff like any child, and progress like any child."""
    starts: list[float] = []
    inner = Supervisor(
        ChildSpec(Flaky, starts, [20] * 6, name="flaky"), name="in", max_restarts=0,
        backoff=Backoff(first=1, maximum=10, jitter=0, max_attempts=2),
    )  # fmt: skip
    async with open_system() as system:
        await system.start(Supervisor(inner, name="top"))
        await trio.sleep(1000)
    assert starts == pytest.approx([21 * nth for nth in range(7)])


# ------------------------------------------------------------------ stopping meanwhile
@both_ways
async def test_a_stop_during_a_delay_is_immediate(how: str) -> None:
    """Nobody waits half a minute for a restart that nobody wants any more."""
    starts: list[float] = []
    async with open_system() as system:
        ref = system.ref(await started(system, how, LATE, starts, [0]))
        await trio.sleep(5)
        assert ref.status is Status.RESTARTING
        assert isinstance(await ref.stop(), Stopped)
        assert trio.current_time() == 5
        await trio.sleep(100)
    assert starts == [0]


@both_ways
async def test_the_system_stops_at_once_during_a_delay(how: str) -> None:
    """A supervisor that waits to restart a child hears its own stop."""
    async with open_system() as system:
        await started(system, how, LATE, [], [0])
        await trio.sleep(5)
    assert trio.current_time() == 5


@both_ways
async def test_mail_waits_for_the_restart(how: str) -> None:
    """Between two lives mail is accepted, as ever, and an ask waits."""
    async with open_system() as system:
        ref = system.ref(await started(system, how, LATE, [], [0]))
        await trio.sleep(5)
        with trio.move_on_after(20) as scope:
            await ref.ask("crash", timeout=None)
        assert scope.cancelled_caught
        assert ref.send_nowait("later").seq == 3


async def test_a_delayed_restart_holds_up_no_sibling() -> None:
    """A supervisor goes on with its work while one child's restart waits."""
    late, soon = list[float](), list[float]()
    tree = Supervisor(
        ChildSpec(Flaky, late, [0], name="late", backoff=LATE), ChildSpec(Flaky, soon, [1, 1], name="soon"), name="tree"
    )
    async with open_system() as system:
        await system.start(tree)
        await trio.sleep(10)
        assert (late, soon) == ([0], [0, 1, 2])
        await trio.sleep(30)
        assert late == [0, 30]


class Listener(Actor):
    """Hears of ends."""

    def __init__(self, heard: list[tuple[float, bool]]) -> None:
        self.heard = heard

    @handle
    def begin(self, address: str) -> None:
        self.watch(self.find(address))

    @handle
    def ended(self, ended: Ended) -> None:
        self.heard.append((trio.current_time(), ended.restarting))


@both_ways
async def test_watchers_hear_of_a_crash_when_it_happens(how: str) -> None:
    """Not when the delay is over."""
    heard: list[tuple[float, bool]] = []
    async with open_system() as system:
        address = await started(system, how, LATE, [], [3])
        (await system.spawn(Listener, heard)).send_nowait(address)
        await trio.sleep(100)
        await system.ref(address).stop()
        await wait_all_tasks_blocked()
    assert heard == [(3, True), (100, False)]
