"""One heap of deadlines for a whole system, in place of a cancel scope per wait.

Most deadlines never come: the answer does. A scope per ask costs 5 us whether its time comes or not; an entry of
this heap costs one push, and dropping it one assignment. Dropped entries are left in place and swept out when
they are more than a thousand and more than half of the heap.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Any

import trio

Entry = list[Any]  # [when, tie, fire | None]: a list, because heapq compares it at C speed and it can be blanked


class Deadlines:
    """Callbacks by time, on the clock of the trio run. Every method belongs to the trio thread."""

    def __init__(self) -> None:
        self._heap: list[Entry] = []
        self._dead = 0
        self._tie = count().__next__
        self._scope: trio.CancelScope | None = None

    def add(self, when: float, fire: Callable[[], object]) -> Entry:
        """Call `fire` (sync, must not raise) once the trio clock reaches `when`, unless the entry is dropped before."""
        entry = [when, self._tie(), fire]
        heappush(self._heap, entry)
        if self._heap[0] is entry and self._scope is not None:
            self._scope.deadline = when
        return entry

    def after(self, seconds: float, fire: Callable[[], object]) -> Entry:
        """As `add`, counted from now."""
        return self.add(trio.current_time() + seconds, fire)

    def drop(self, entry: Entry) -> None:
        """Forget an entry. Dropping one that fired, or twice, does nothing."""
        if entry[2] is None:
            return
        entry[2] = None
        self._dead += 1
        if self._dead > 1000 and self._dead * 2 > len(self._heap):
            self._heap = [each for each in self._heap if each[2] is not None]
            heapify(self._heap)
            self._dead = 0

    def __len__(self) -> int:
        return len(self._heap) - self._dead

    async def run(self) -> None:
        """Fire what falls due, until cancelled."""
        while True:
            with trio.CancelScope(deadline=self._next()) as self._scope:
                await trio.sleep_forever()
            self._fire_due(trio.current_time())

    def _next(self) -> float:
        while self._heap and self._heap[0][2] is None:
            heappop(self._heap)
            self._dead -= 1
        return self._heap[0][0] if self._heap else inf

    def _fire_due(self, now: float) -> None:
        while self._next() <= now:
            entry = heappop(self._heap)
            fire, entry[2] = entry[2], None
            fire()
