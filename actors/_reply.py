"""The one-shot reply token of an `ask`.

An answer is not mail to the asker: it resolves a token that travels beside the envelope. The first end counts
(answer, failure, timeout, the asker's cancellation); whatever comes later is dropped, and a late answer is counted.
The token carries the asker's deadline, so that an ask nobody waits for any more is skipped unhandled.
"""

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


class Reject(Exception):  # noqa: N818  # an answer, not a fault
    """Raise it in a handler to answer an ask with an error (`Rejected`); the actor lives."""


class ReplyToken:
    """Waits for one answer, in the asker's task."""

    __slots__ = ("_deadlines", "_entry", "address", "deadline", "gone", "settled", "task", "timeout")

    def __init__(self, address: str, timeout: float | None, deadlines: Deadlines) -> None:
        self.address = address
        self.timeout = timeout
        self.deadline: float | None = None
        self.gone = False  # the asker waits no more
        self.settled = False
        self.task = trio.lowlevel.current_task()
        self._deadlines = deadlines
        self._entry: Entry | None = None

    async def wait(self) -> Any:
        """The answer, or the failure it was settled with; `AskTimeout` when the time is over. Cancelling drops the answer."""
        if self.timeout is not None:
            self.deadline = trio.current_time() + self.timeout
            self._entry = self._deadlines.add(self.deadline, self._expire)
        return await trio.lowlevel.wait_task_rescheduled(self._abort)

    @enable_ki_protection
    def answer(self, value: Any) -> bool:
        """Settle with a value; False if it came too late."""
        if self.settled or self.gone:
            return False
        self.settled = True
        if self._entry is not None:
            self._deadlines.drop(self._entry)
        trio.lowlevel.reschedule(self.task, outcome.Value(value))
        return True

    @enable_ki_protection
    def fail(self, error: BaseException) -> bool:
        """Settle with a failure; False if it came too late."""
        if self.settled or self.gone:
            return False
        self.settled = True
        if self._entry is not None:
            self._deadlines.drop(self._entry)
        trio.lowlevel.reschedule(self.task, outcome.Error(error))
        return True

    def _expire(self) -> None:
        if self.settled or self.gone:
            return
        self.gone = True
        trio.lowlevel.reschedule(self.task, outcome.Error(AskTimeout(address=self.address, seconds=self.timeout)))

    def _abort(self, _raise_cancel: Any) -> trio.lowlevel.Abort:
        self.gone = True
        if self._entry is not None:
            self._deadlines.drop(self._entry)
        return trio.lowlevel.Abort.SUCCEEDED
