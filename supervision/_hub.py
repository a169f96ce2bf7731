"""The process's events: a ring of the last 4,096, and readers that follow it at their own pace.

Emitting never waits and never fails: it appends to the ring and wakes readers. A reader keeps the seq it read last; one that
fell behind the ring gets a `Gap` and goes on with what is left.

A session emits ten events a round, and mostly nobody looks. So the ring keeps what an event is made of, and makes it, once, for
the first that does.
"""

from collections import deque
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from time import time
from typing import Any, cast

import trio
from trio.lowlevel import enable_ki_protection

from actors._waiters import guarded, wait
from actors.events import AnyEvent, DeadLettered, Ended, Gap, Restarted

RING = 4096
Unmade = tuple[Callable[..., Any], int, float, dict[str, Any]]  # an event's class, its place, its time, its facts


class Hub:
    """Emits events and lets any number of readers follow."""

    def __init__(self) -> None:
        self.seq = 0
        self.closed = False
        self._ring: deque[AnyEvent | Unmade] = deque(maxlen=RING)
        self._readers: list[trio.lowlevel.Task] = []
        self.callbacks: list[Callable[[AnyEvent], object]] = []

    @enable_ki_protection
    def emit(self, cls: Callable[..., Any], /, **facts: Any) -> None:
        """Show an event of this class to everybody."""
        self.seq += 1
        self._ring.append((cls, self.seq, time(), facts))
        if self._readers:
            self._wake()
        if self.callbacks:
            event = self._made(len(self._ring) - 1)
            for callback in self.callbacks:
                guarded(callback, event)

    def _made(self, place: int) -> AnyEvent:
        """The event at this place of the ring."""
        found = self._ring[place]
        if isinstance(found, tuple):
            cls, seq, at, facts = found
            found = self._ring[place] = cls(seq=seq, at=datetime.fromtimestamp(at, UTC), **facts)
        return found

    @property
    def oldest(self) -> int:
        """The seq of the oldest event that is left; of the next one, if none is."""
        return self.seq - len(self._ring) + 1

    def events(self) -> list[AnyEvent]:
        """All that are left, oldest first."""
        return [self._made(place) for place in range(len(self._ring))]

    def _wake(self) -> None:
        readers, self._readers = self._readers, []
        for task in readers:
            trio.lowlevel.reschedule(task)

    def close(self) -> None:
        """No more events: readers end once they read what is there."""
        self.closed = True
        self._wake()

    def restarted(self, address: str, attempt: int) -> None:
        """An actor is ready again."""
        self.emit(Restarted, address=address, attempt=attempt)

    def ended(self, address: str, exit: Any) -> None:
        """An actor ended for good."""
        self.emit(Ended, address=address, exit=exit)

    def dead_letter(self, recipient: str, envelope: Any, reason: str) -> None:
        """Mail that nobody will handle."""
        self.emit(DeadLettered, recipient=recipient, envelope=envelope, reason=reason)

    def follow(
        self, since: int | None, wanted: Callable[[AnyEvent], bool], last: Callable[[AnyEvent], bool]
    ) -> AsyncGenerator[AnyEvent]:
        """Yield the wanted events after `since` until `last` holds for one, or the hub closes.

        None means from this call on, not from the first time somebody asks the iterator.
        """
        return self._follow(self.seq if since is None else max(0, since), wanted, last)

    async def _follow(
        self, cursor: int, wanted: Callable[[AnyEvent], bool], last: Callable[[AnyEvent], bool]
    ) -> AsyncGenerator[AnyEvent]:
        while True:
            for event in self._after(cursor):
                cursor = event.seq
                if isinstance(event, Gap) or wanted(event):
                    yield event
                if last(event):
                    return
            if cursor >= self.seq:
                if self.closed:
                    return
                await self.arrival()

    def _after(self, cursor: int) -> list[AnyEvent]:
        oldest = self.oldest
        if cursor + 1 < oldest:
            missed = oldest - 1 - cursor
            gap = cast("AnyEvent", Gap(seq=oldest - 1, at=datetime.now(UTC), missed=missed))
            return [gap, *self.events()]
        return [self._made(place) for place in range(cursor + 1 - oldest, len(self._ring))]

    @enable_ki_protection
    async def arrival(self) -> None:
        """Wait for the next event."""
        task = trio.lowlevel.current_task()
        self._readers.append(task)
        await wait(lambda: self._readers.remove(task) if task in self._readers else None)
