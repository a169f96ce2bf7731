"""The clock and the scale that every contestant is measured with.

The clock counts the CPU time of the whole process: every contestant is busy from start to stop, so that is what it
would take on a machine of its own, and a neighbour that takes the CPU away does not count. How much of the CPU it
really got is kept beside it (`busy`) and shown where it was little: caches suffer from neighbours all the same.
What waits for a disk is measured by the clock on the wall instead: the flush is what it costs.
"""

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
    """One round of one contestant.

    Attributes:
        done: Pieces of work, counted by whoever did them.
        figures: What they cost.
        busy: The share of the CPU that the process had meanwhile.
    """

    done: int
    figures: Mapping[str, float]
    busy: float = 1.0


class Stopwatch:
    """`with watch:` adds the block's seconds; set-up, checks and tear-down stay outside it."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self.wall = 0.0

    def __enter__(self) -> Self:
        gc.collect()
        self._since = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        cpu, wall = self._since
        self.cpu += time.process_time() - cpu
        self.wall += time.perf_counter() - wall

    def each(self, n: int, done: int) -> Measured:
        """CPU microseconds for each of the `n` pieces of work."""
        return Measured(done, {COST: self.cpu / n * 1e6}, min(1.0, self.cpu / self.wall))

    def waited(self, n: int) -> float:
        """Microseconds by the clock on the wall for each of `n`: of work that waits for a disk."""
        return self.wall / n * 1e6


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
        """Kilobytes for each of `n`; call it once, before they are gone."""
        grown = self._now() - self.before
        tracemalloc.stop()
        return Measured(done, {COST: grown / n / 1024})


def resident() -> int:
    """Resident bytes now; where there is no /proc, the most there ever were."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
