"""`scheduled`: one seed is one order of tasks, many seeds are many, and trio's switch is put back."""

import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import trio
import trio._core._run as scheduler
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from actors import Actor, ActorRef, ConfigError, _receive, handle
from actors.testing import Probe, scheduled
from supervision import Backoff, open_system

SEEDS = range(50)
Order = tuple[str, ...]


# ------------------------------------------------------------------ a race: who gets to write when
class Runner(Actor):
    """Writes its name three times, with a step between."""

    def __init__(self, name: str, desk: ActorRef) -> None:
        self.name, self.desk = name, desk

    @handle
    async def run(self, message: str) -> None:
        for step in range(3):
            self.desk.send_nowait(f"{self.name}{step}")
            await trio.lowlevel.checkpoint()


async def race() -> Order:
    desk = Probe()
    async with open_system() as system:
        ref = await system.spawn(desk.actor)
        for runner in [await system.spawn(Runner, name, ref) for name in "abc"]:
            runner.send_nowait("go")
        await wait_all_tasks_blocked()
    return tuple(desk.messages)


def raced(seed: int, between: Callable[[], Awaitable[Order]] = race) -> Order:
    with scheduled(seed):
        return trio.run(between)


async def raced_inside(seed: int) -> Order:
    with scheduled(seed):
        return await race()


def test_fifty_seeds_give_many_orders_and_each_comes_back() -> None:
    """A race is found by one of many seeds, and looked at as often as it takes."""
    orders = {seed: raced(seed) for seed in SEEDS}
    assert len(set(orders.values())) >= 40
    assert {seed: raced(seed) for seed in reversed(SEEDS)} == orders


async def test_a_run_that_has_begun_is_steered_too() -> None:
    """A test framework starts trio before the test gets a word in."""
    orders = {seed: await raced_inside(seed) for seed in SEEDS}
    assert len(set(orders.values())) >= 40
    assert {seed: await raced_inside(seed) for seed in reversed(SEEDS)} == orders


def test_hypothesis_explores_orders_when_it_draws_the_seed() -> None:
    """It resets trio's random source for each example: without a seed of its own, every example is the same one."""
    free, drawn = set[Order](), set[Order]()

    @settings(max_examples=50, derandomize=True, database=None, deadline=None)
    @given(seed=st.integers(0, 2**32))
    def examples(seed: int) -> None:
        free.add(trio.run(race))
        drawn.add(raced(seed))

    examples()
    assert len(free) < len(drawn)
    assert len(drawn) >= 40


class Ticket(Actor):
    """Handles a message without a checkpoint."""

    def __init__(self, name: str, desk: ActorRef) -> None:
        self.name, self.desk = name, desk

    @handle
    def punch(self, message: int) -> None:
        self.desk.send_nowait(f"{self.name}{message}")


async def two_bursts() -> Order:
    desk = Probe()
    async with open_system() as system:
        ref = await system.spawn(desk.actor)
        for ticket in [await system.spawn(Ticket, name, ref) for name in "ab"]:
            for number in range(4):
                ticket.send_nowait(number)
        await wait_all_tasks_blocked()
    return tuple(desk.messages)


def test_mail_of_one_burst_can_be_overtaken() -> None:
    """Handlers without an await run at a stretch, and how long the stretch is, nobody promised."""
    orders = {raced(seed, two_bursts) for seed in SEEDS}
    assert len(orders) > 2, "more than the one burst, then the other"


def test_nothing_is_lost_or_reordered_for_one_pair() -> None:
    """The orders explored are those that the guarantees allow: a sender's mail stays in order."""
    for order in map(raced, SEEDS):
        assert sorted(order, key=lambda word: word[0]) == ["a0", "a1", "a2", "b0", "b1", "b2", "c0", "c1", "c2"]


def test_virtual_time_passes_under_a_seed() -> None:
    """Late tasks are ready tasks: the clock never jumps over them."""

    async def naps() -> float:
        async with trio.open_nursery() as nursery:
            for seconds in (1, 2, 3):
                nursery.start_soon(trio.sleep, seconds)
        return trio.current_time()

    for seed in SEEDS:
        with scheduled(seed):
            assert trio.run(naps, clock=MockClock(autojump_threshold=0)) == 3


class Broken(Actor):
    """Starts, notes when, and crashes."""

    def __init__(self, starts: list[float]) -> None:
        self.starts = starts

    async def on_start(self) -> None:
        self.starts.append(trio.current_time())
        self.send_after(0, "crash")

    @handle
    def crash(self, message: str) -> None:
        raise ValueError(message)


async def restarts() -> Order:
    starts: list[float] = []
    async with open_system() as system:
        ref = await system.spawn(Broken, starts, backoff=Backoff(jitter=0.5))
        await ref.wait()
    return tuple(map(str, starts))


def test_the_jitter_of_a_backoff_comes_back_too() -> None:
    """A seed replays a run, not its task orders alone; another seed draws other delays."""

    def delays(seed: int) -> Order:
        with scheduled(seed):
            return trio.run(restarts, clock=MockClock(autojump_threshold=0))

    times = {seed: delays(seed) for seed in range(10)}
    assert {seed: delays(seed) for seed in range(10)} == times
    assert len(set(times.values())) == 10


# ------------------------------------------------------------------ the switch
Switch = tuple[Any, ...]


@pytest.fixture(params=[False, True], ids=["off before", "on before"])
def switch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Switch]]:
    """What `scheduled` sets, read; as it is without Hypothesis, and with it."""
    monkeypatch.setattr(scheduler, "_ALLOW_DETERMINISTIC_SCHEDULING", request.param)

    def read() -> Switch:
        return (scheduler._ALLOW_DETERMINISTIC_SCHEDULING, scheduler._r, _receive.BATCH)

    before = read()
    yield read
    assert read() == before


def test_a_block_turns_the_switch_on(switch: Callable[[], Switch]) -> None:
    """And the fixture of this test sees it back as it was."""
    with scheduled(1):
        assert switch()[0] is True
        assert isinstance(switch()[1], random.Random)


def test_an_error_puts_the_switch_back_and_takes_the_seed_along(switch: Callable[[], Switch]) -> None:
    """A failing test must not steer those after it, and has to say how to repeat it."""

    async def fails() -> None:
        await race()
        raise KeyError("lost")

    with pytest.raises(KeyError) as caught, scheduled(1234):
        trio.run(fails)
    assert ["scheduled(1234)" in note for note in caught.value.__notes__] == [True]


async def test_a_cancelled_block_puts_the_switch_back(switch: Callable[[], Switch]) -> None:
    """A test that runs out of time is left as every other."""
    with trio.move_on_after(0.01) as scope, scheduled(1):
        await trio.sleep_forever()
    assert scope.cancelled_caught


def test_a_second_block_is_refused_and_the_first_goes_on(switch: Callable[[], Switch]) -> None:
    """Two seeds for one scheduler are none."""
    with scheduled(1):
        held = switch()
        with pytest.raises(ConfigError, match="in effect already"), scheduled(2):
            pytest.fail("it was entered")
        assert switch() == held


@pytest.mark.parametrize("gone", ["_ALLOW_DETERMINISTIC_SCHEDULING", "_r", "unrolled_run"])
def test_a_trio_that_cannot_be_steered_is_named(gone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The switch is private: a release without it must not pass for one where every seed agrees."""
    monkeypatch.delattr(scheduler, gone)
    with pytest.raises(ConfigError, match=f"cannot steer trio {trio.__version__}") as caught, scheduled(1):
        pytest.fail("it was entered")
    assert "_r" in str(caught.value) or gone in str(caught.value)


def test_a_trio_that_has_the_switch_and_does_not_read_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is still there proves nothing."""
    monkeypatch.setattr(scheduler, "unrolled_run", lambda: None)
    with pytest.raises(ConfigError, match="has no _ALLOW_DETERMINISTIC_SCHEDULING, _r, shuffle"), scheduled(1):
        pytest.fail("it was entered")
