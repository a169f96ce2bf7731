"""Who waits for what a session will say.

An ask waits for the first answer (an assistant item without calls) whose commit has read its mail; asks that were folded
together share it. Others wait for the end of the run. Whoever waits when a run ends without an answer hears why.
"""

from collections.abc import Callable
from typing import Any

import outcome
import trio

from actors._errors import RunFailed
from actors._exit import Status
from actors._waiters import wait


class Answers:
    """The waiters of one session, and its last answer."""

    def __init__(self, last: str | None = None) -> None:
        self.last = last
        self.ended: RunFailed | None = None  # how the last run ended, if without an answer
        self._asks: list[tuple[int, trio.lowlevel.Task]] = []
        self._runs: list[trio.lowlevel.Task] = []
        self._said = False  # this run has answered

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for what it will say."""
        return bool(self._asks or self._runs)

    async def to(self, seq: int) -> str:
        """The answer to the mail at `seq`. Raises `RunFailed` if its run ends without one."""
        entry = (seq, trio.lowlevel.current_task())
        self._asks.append(entry)
        answer: str = await wait(lambda: self._asks.remove(entry))
        return answer

    async def of_the_run(self) -> str:
        """The last answer of the run in progress, when it ends. Raises `RunFailed` if it has none."""
        task = trio.lowlevel.current_task()
        self._runs.append(task)
        answer: str = await wait(lambda: self._runs.remove(task))
        return answer

    def answered(self, cursor: int, text: str) -> None:
        """The session gave a final answer after reading its mail up to `cursor`."""
        self.last, self.ended, self._said = text, None, True
        self._settle(cursor, lambda: outcome.Value(text))

    def run_over(self, cursor: int, status: Status, why: str) -> None:
        """A run ended; asks that it read and did not answer fail."""
        self.ended = None if self._said else RunFailed(status=status, reason=why)
        self._settle(cursor, lambda: outcome.Error(RunFailed(status=status, reason=why)))
        self._end_runs(status, why)
        self._said = False

    def at_rest(self, status: Status) -> str:
        """The last answer, with no run in progress. Raises `RunFailed` if the last run has none."""
        if self.ended is not None:
            raise RunFailed(**vars(self.ended))
        if self.last is None:
            raise RunFailed(status=status, reason="it never ran; send it something")
        return self.last

    def over(self, status: Status, why: str) -> None:
        """There will be no more answers."""
        self._settle(2**63, lambda: outcome.Error(RunFailed(status=status, reason=why)))
        self._end_runs(status, why)

    def _settle(self, cursor: int, result: Callable[[], Any]) -> None:
        due = [entry for entry in self._asks if entry[0] <= cursor]
        self._asks = [entry for entry in self._asks if entry[0] > cursor]
        for _, task in due:
            trio.lowlevel.reschedule(task, result())  # each its own: an outcome is unwrapped once, an error has one traceback

    def _end_runs(self, status: Status, why: str) -> None:
        runs, self._runs = self._runs, []
        for task in runs:
            said = self._said and self.last is not None
            result: Any = outcome.Value(self.last) if said else outcome.Error(RunFailed(status=status, reason=why))
            trio.lowlevel.reschedule(task, result)
