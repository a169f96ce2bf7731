"""The clock and the scale that every contestant is measured with."""

import gc
import resource
import time
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from attrs import frozen

COST = ""  # the figure of a contestant that has only one


@frozen
class Measured:
    """One round of one contestant: `done` pieces of work, counted by whoever did them, and the figures."""

    done: int
    figures: Mapping[str, float]


class Stopwatch:
    """`with watch:` adds the block's seconds; set-up, checks and tear-down stay outside it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> Self:
        gc.collect()
        self._since = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.seconds += time.perf_counter() - self._since

    def each(self, n: int, done: int) -> Measured:
        """Microseconds for each of the `n` pieces of work."""
        return Measured(done, {COST: self.seconds / n * 1e6})


class Growth:
    """How many bytes the process, or what is traced of it, has grown by since."""

    def __init__(self, *, traced: bool = False) -> None:
        self.traced = traced
        if traced:
            tracemalloc.start()
        self.before = self._now()

    def _now(self) -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0] if self.traced else resident()

    def each(self, n: int, done: int) -> Measured:
        """Kilobytes for each of `n`; call it before they are gone."""
        return Measured(done, {COST: (self._now() - self.before) / n / 1024})


def resident() -> int:
    """Resident bytes now; where there is no /proc, the most there ever were."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
