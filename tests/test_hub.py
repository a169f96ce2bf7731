"""Events: emitting never waits, and every reader gets what it is owed or is told what it missed."""

import signal
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import trio
from cast import Boom
from trio.testing import wait_all_tasks_blocked

from actors import Finished
from actors.events import AnyEvent, Gap
from supervision import _hub
from supervision._hub import Hub

pytestmark = pytest.mark.virtual_time


def emitted(hub: Hub, *addresses: str) -> Hub:
    """The hub, after these have ended."""
    for address in addresses:
        hub.ended(address, Finished())
    return hub


def follow(hub: Hub, since: int | None = 0, last: str = "") -> AsyncGenerator[AnyEvent]:
    """Everything, until that one ends."""
    return hub.follow(since, lambda _event: True, lambda event: getattr(event, "address", None) == last)


async def told(events: AsyncGenerator[AnyEvent]) -> list[Any]:
    """Addresses, and how many a gap missed."""
    return [event.missed if isinstance(event, Gap) else getattr(event, "address", None) async for event in events]


async def test_a_reader_gets_what_was_and_what_comes_until_the_last() -> None:
    """From where it says, in order, each once."""
    hub = emitted(Hub(), "a", "b")
    got: list[Any] = []

    async def read(since: int | None) -> None:
        got.append(await told(follow(hub, since, "end")))

    async with trio.open_nursery() as nursery:
        for since in (0, 1, None):
            nursery.start_soon(read, since)
        await wait_all_tasks_blocked()
        emitted(hub, "c", "end", "after")
    assert sorted(got) == [["a", "b", "c", "end"], ["b", "c", "end"], ["c", "end"]]


async def test_from_now_on_means_from_the_call() -> None:
    """Not from when its reader first looks."""
    hub = emitted(Hub(), "before")
    events = follow(hub, None, "end")
    emitted(hub, "a", "end")
    assert await told(events) == ["a", "end"]


@pytest.mark.parametrize("since", [0, -5])
async def test_a_reader_that_fell_behind_is_told_how_many_it_missed(monkeypatch: pytest.MonkeyPatch, since: int) -> None:
    """Then it goes on with what is left."""
    monkeypatch.setattr(_hub, "RING", 3)
    hub = emitted(Hub(), *"abcdef", "end")
    assert await told(follow(hub, since, "end")) == [4, "e", "f", "end"]


async def test_a_closed_hub_ends_its_readers_once_they_read_what_is_there() -> None:
    """The system is over; nobody waits for more."""
    hub = Hub()
    got: list[Any] = []

    async def read() -> None:
        got.extend(await told(follow(hub)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        emitted(hub, "a")
        hub.close()
    assert got == ["a"]
    assert await told(follow(hub)) == ["a"]


async def test_a_reader_that_is_cancelled_is_gone() -> None:
    """It is not woken again."""
    hub = Hub()
    with trio.move_on_after(1):
        await told(follow(hub))
    assert hub._readers == []
    emitted(hub, "a")


def test_a_callback_that_raises_harms_neither_the_event_nor_the_others() -> None:
    """Each sees every event."""
    hub, seen = Hub(), list[int]()

    def bug(_event: AnyEvent) -> None:
        raise Boom

    hub.callbacks += [bug, lambda event: seen.append(event.seq)]
    emitted(hub, "a", "b")
    assert (seen, hub.seq) == ([1, 2], 2)


def test_a_ctrl_c_in_a_callback_reaches_the_main_task_and_leaves_the_event_whole() -> None:
    """A callback runs in the middle of whatever emits: an end, say, that must not be half told."""
    hub, seen = Hub(), list[int]()

    def interrupted(_event: AnyEvent) -> None:
        signal.raise_signal(signal.SIGINT)

    async def main() -> None:
        hub.callbacks += [interrupted, lambda event: seen.append(event.seq)]
        emitted(hub, "a")
        seen.append(0)
        await trio.sleep(1)

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)
    assert seen == [1, 0]
