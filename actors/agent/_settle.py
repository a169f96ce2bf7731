"""How a call ends that does not end by itself. Pure; cancel, stop, interrupt, crash, load and wrap-up all come here.

    the call              its outcome
    has ended             it keeps the one it has
    has not begun         not_started: no line of it ran
    runs                  cancelled, with how long it ran
    was deferred          cancelled: its token is void

One that ran and was lost, with the process or the loop that ran it, is `orphaned`: nobody knows how far it came. A sync tool runs in a thread, and no thread can be stopped: its outcome says that it may go on.
"""

from datetime import datetime

from attrs import frozen

from actors._outcome import Outcome

from ._record import CallRecord


@frozen
class Began:
    """When a call that runs now began: wall clock and trio's; and whether it runs in a thread."""

    at: datetime
    clock: float
    thread: bool = False


def settled(row: CallRecord, why: str, began: Began | None = None, now: float = 0.0) -> Outcome:
    """The outcome of a call that is cut short, at `now` on trio's clock."""
    if row.outcome is not None:
        return row.outcome
    if row.deferred:
        return Outcome("cancelled", error=why)
    if began is None:
        return Outcome("not_started", error=why)
    told = f"{why}; its thread cannot be stopped and may go on" if began.thread else why
    return Outcome("cancelled", error=told, started=began.at, duration=now - began.clock)


def failed(began: Began | None, why: str, now: float) -> Outcome:
    """The outcome of a call that may not go on; with how long it ran, if it had begun."""
    if began is None:
        return Outcome.failed(why)
    return Outcome("failed", error=why, started=began.at, duration=now - began.clock)
