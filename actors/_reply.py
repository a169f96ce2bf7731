"""The one-shot reply token of an `ask`.

An answer is not mail to the asker: it resolves a token that travels beside the envelope. The first end counts
(answer, failure, timeout, the asker's cancellation); whatever comes later is dropped, and a late answer is counted.
The token carries the asker's deadline, so that an ask nobody waits for any more is skipped unhandled.
"""

from collections.abc import Awaitable
from typing import Any, Final

import outcome
import trio
from trio.lowlevel import enable_ki_protection

from ._deadlines import Deadlines, Entry
from ._errors import AskTimeout


class _NoReply:
    def __repr__(self) -> str:
        return "NO_REPLY"


NO_REPLY: Final = _NoReply()
"""What a handler returns to say that `reply` will answer later."""


class Reject(Exception):
    """Raise it in a handler to answer an ask with an error (`Rejected`); the actor lives."""


class ReplyToken:
    """Waits for one answer, in the asker's task."""

    __slots__ = ("_deadlines", "_early", "_entry", "_open", "_task", "address", "gone", "timeout")

    def __init__(self, address: str, timeout: float | None, deadlines: Deadlines) -> None:
        self.address = address
        self.timeout = timeout
        self.gone = False  # the asker waits no more
        self._open = True  # neither settled nor gone
        self._task: trio.lowlevel.Task | None = None  # while it is parked here
        self._early: outcome.Outcome[Any] | None = None  # settled before it was
        self._deadlines = deadlines
        self._entry: Entry | None = None

    @property
    def deadline(self) -> float | None:
        """When the asker gives up, on the trio clock; None if it waits as long as it takes."""
        return None if self._entry is None else self._entry[0]

    @property
    def settled(self) -> bool:
        """Whether it was answered or failed."""
        return not self._open and not self.gone

    def park(self) -> Awaitable[Any]:
        """What to await for the answer, or the failure it was settled with; `AskTimeout` when the time is over.

        It counts from now. Cancelling drops the answer.
        """
        if self._early is not None:
            return self._settled_early(self._early)
        self._task = trio.lowlevel.current_task()
        if self.timeout is not None:
            self._entry = self._deadlines.add(trio.current_time() + self.timeout, self._expire)
        return trio.lowlevel.wait_task_rescheduled(self._abort)  # noqa: ASYNC105  # the asker awaits it: one coroutine less

    async def _settled_early(self, result: "outcome.Outcome[Any]") -> Any:
        await trio.lowlevel.checkpoint()
        return result.unwrap()

    @enable_ki_protection
    def answer(self, value: Any) -> bool:
        """Settle with a value; False if it came too late."""
        return self._open and self._settle(outcome.Value(value))

    @enable_ki_protection
    def fail(self, error: BaseException) -> bool:
        """Settle with a failure; False if it came too late."""
        return self._open and self._settle(outcome.Error(error))

    def _settle(self, result: "outcome.Outcome[Any]") -> bool:
        self._open = False
        if self._entry is not None:
            self._deadlines.drop(self._entry)
        if self._task is None:
            self._early = result
        else:
            trio.lowlevel.reschedule(self._task, result)
        return True

    def _expire(self) -> None:
        if self._open and self._task is not None:
            self._leave()
            trio.lowlevel.reschedule(self._task, outcome.Error(AskTimeout(address=self.address, seconds=self.timeout)))

    def _leave(self) -> None:
        self.gone = True
        self._open = False
        if self._entry is not None:
            self._deadlines.drop(self._entry)

    def _abort(self, _raise_cancel: Any) -> trio.lowlevel.Abort:
        self._leave()
        return trio.lowlevel.Abort.SUCCEEDED
