"""Parking a task until a sync call wakes it, and foreign code called from protected code.

`trio.lowlevel.wait_task_rescheduled` is the cheapest wake-up trio has; everything here that waits, waits through it.
"""

import signal
from collections.abc import Callable
from typing import Any

import outcome
import trio
from trio.lowlevel import disable_ki_protection, enable_ki_protection

from ._envelope import Envelope, Receipt
from ._errors import ActorsError


async def wait(on_cancel: Callable[[], object]) -> Any:
    """Park the task until `trio.lowlevel.reschedule`; return what it was woken with. `on_cancel` undoes the registration."""

    def abort(_raise_cancel: Any) -> trio.lowlevel.Abort:
        on_cancel()
        return trio.lowlevel.Abort.SUCCEEDED

    return await trio.lowlevel.wait_task_rescheduled(abort)


@disable_ki_protection
def unprotected(fn: Callable[..., Any], /, *args: Any) -> Any:
    """Call foreign code from protected code: a Ctrl-C may land in it (a protected caller would be deaf)."""
    return fn(*args)


def guarded(fn: Callable[..., Any], /, *args: Any) -> tuple[Any, BaseException | None]:
    """Call foreign code that must not kill its caller: (value, None), or (None, what it raised).

    A Ctrl-C that lands in it is raised again as a signal: a protected caller finishes what it is changing, then the main task
    gets it.
    """
    try:
        return unprotected(fn, *args), None
    except Exception as error:  # noqa: BLE001  # the one place where foreign code may raise anything
        return None, error
    except KeyboardInterrupt as error:
        signal.raise_signal(signal.SIGINT)
        return None, error


class Waiter:
    """Somebody who waits for an envelope behind `cursor` that `match` holds for: a task, or a function to call."""

    __slots__ = ("cursor", "match", "wake")

    def __init__(self, cursor: int, match: Callable[[Envelope], bool] | None, wake: Any) -> None:
        self.cursor = cursor
        self.match = match
        self.wake = wake

    def concerns(self, envelope: Envelope) -> bool:
        """Whether this envelope ends the wait. A predicate that raises does: its reader shall see the error."""
        if envelope.seq <= self.cursor:
            return False
        if self.match is None:
            return True
        held, error = guarded(self.match, envelope)
        return error is not None or bool(held)

    def wake_up(self) -> None:
        """End the wait."""
        if isinstance(self.wake, trio.lowlevel.Task):
            trio.lowlevel.reschedule(self.wake)
        else:
            self.wake()


class Pending:
    """A send that waits for room: its task, and the accept to make once there is some."""

    __slots__ = ("accept", "task")

    def __init__(self, task: trio.lowlevel.Task, accept: Callable[[], Receipt]) -> None:
        self.task = task
        self.accept = accept

    @enable_ki_protection
    def settle(self) -> None:
        """Accept now, and wake the sender with the receipt or the refusal. Whoever made room sees neither."""
        try:
            receipt = self.accept()
        except (ActorsError, ValueError, TypeError) as refusal:
            self.refuse(refusal)
        else:
            trio.lowlevel.reschedule(self.task, outcome.Value(receipt))

    def refuse(self, refusal: Exception) -> None:
        """Wake the sender with a refusal."""
        trio.lowlevel.reschedule(self.task, outcome.Error(refusal))


async def guarded_async(fn: Callable[..., Any], /, *args: Any) -> tuple[Any, Exception | None]:
    """As `guarded`, for an async function. `Cancelled` and everything else that is no `Exception` comes through."""
    try:
        return await unprotected_async(fn, *args), None
    except Exception as error:  # noqa: BLE001  # as `guarded`
        return None, error


@disable_ki_protection
async def unprotected_async(fn: Callable[..., Any], /, *args: Any) -> Any:
    """As `unprotected`, for an async function."""
    return await fn(*args)


class OneByOne:
    """A lock that is no checkpoint while it is free, and that a cancelled task gets too: what it guards has to be done."""

    def __init__(self) -> None:
        self._lock = trio.Lock()

    async def __aenter__(self) -> None:
        try:
            self._lock.acquire_nowait()
        except trio.WouldBlock:
            with trio.CancelScope(shield=True):
                await self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()
