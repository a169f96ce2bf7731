"""One heap of deadlines for a whole system."""

import random
from math import inf

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors._deadlines import Deadlines


async def test_each_fires_at_its_time_and_in_order(autojump_clock: MockClock) -> None:
    """Whatever the order they were added in."""
    deadlines, fired = Deadlines(), list[object]()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(deadlines.run)
        for when in random.Random(1).sample(range(100), 100):
            deadlines.add(when, lambda when=when: fired.append((when, trio.current_time())))  # type: ignore[misc]
        await trio.sleep(100)
        nursery.cancel_scope.cancel()
    assert fired == [(when, when) for when in range(100)]


async def test_an_earlier_one_that_comes_later_is_not_late(autojump_clock: MockClock) -> None:
    """The one timer is set anew."""
    deadlines, fired = Deadlines(), list[object]()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(deadlines.run)
        deadlines.after(50, lambda: fired.append(trio.current_time()))
        await trio.sleep(1)
        deadlines.after(2, lambda: fired.append(trio.current_time()))
        await trio.sleep(99)
        nursery.cancel_scope.cancel()
    assert fired == [3, 50]


async def test_one_that_was_dropped_does_not_fire(autojump_clock: MockClock) -> None:
    """Dropping it twice, or after it fired, does nothing."""
    deadlines, fired = Deadlines(), list[object]()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(deadlines.run)
        dropped, kept = (deadlines.after(1, lambda name=name: fired.append(name)) for name in ("dropped", "kept"))  # type: ignore[misc]
        for _ in range(2):
            deadlines.drop(dropped)
        await trio.sleep(2)
        deadlines.drop(kept)
        assert (fired, len(deadlines)) == (["kept"], 0)
        nursery.cancel_scope.cancel()


async def test_one_that_is_due_when_it_is_added_fires_soon(autojump_clock: MockClock) -> None:
    """A deadline in the past is now."""
    deadlines, fired = Deadlines(), list[object]()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(deadlines.run)
        await wait_all_tasks_blocked()
        deadlines.after(-5, lambda: fired.append("past"))
        deadlines.after(0, lambda: fired.append("now"))
        await wait_all_tasks_blocked()
        assert fired == ["past", "now"]
        nursery.cancel_scope.cancel()


async def test_one_that_fires_may_add_and_drop_others(autojump_clock: MockClock) -> None:
    """A restart that falls due starts a life with a deadline of its own."""
    deadlines, fired = Deadlines(), list[object]()

    def fire() -> None:
        fired.append(trio.current_time())
        deadlines.drop(other)
        deadlines.after(0, lambda: fired.append("at once"))
        deadlines.after(3, lambda: fired.append(trio.current_time()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(deadlines.run)
        deadlines.after(1, fire)
        other = deadlines.after(1, lambda: fired.append("dropped"))
        await trio.sleep(9)
        nursery.cancel_scope.cancel()
    assert fired == [1, "at once", 4]


async def test_a_million_dropped_deadlines_weigh_nothing(autojump_clock: MockClock) -> None:
    """Most asks are answered long before their time is over."""
    deadlines = Deadlines()
    kept = [deadlines.after(inf, list) for _ in range(10)]
    for _ in range(100_000):
        deadlines.drop(deadlines.after(60, list))
    assert len(deadlines) == len(kept)
    assert len(deadlines._heap) < 3_000
