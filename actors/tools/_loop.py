"""Tools written for asyncio: `isolation="asyncio"`, on one event loop, in one thread, per run of trio.

    a call          a task of the loop, in the context of its call: with its voice and its variables
    its cancel      cancels that task, once, and waits for its cleanup: then nothing of the call runs any more
    its task's end  is the call's: also as a cancelled one, where something on the loop cancelled it
    the loop's end  (`loop.stop()` in a tool) ends the calls in progress so; the next call gets a new loop
    the run's end   cancels what is left on the loop, closes generators and executor, joins the thread

Clients that belong to a loop (sessions, pools, browsers) may be kept from call to call: within a run the loop is the same.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from typing import Any

import outcome
import trio
from attrs import define, field

from actors._errors import ToolError

GRACE = 5.0  # seconds that what is left on the loop has at the end of a run
log = logging.getLogger("postroom.tools")


class CancelledWithinError(ToolError):
    """The asyncio task of a call was cancelled, and not by the call."""


async def call_on_loop(run: Callable[[], Coroutine[Any, Any, Any]], name: str) -> Any:
    """Await a coroutine on the loop. What it raises comes through; while it cleans up after a cancel, so does this.

    Raises:
        CancelledWithinError: Its task was cancelled by something on the loop.
    """
    await trio.lowlevel.checkpoint_if_cancelled()
    return await _Call(_loop_of_the_run(), run, name).result()


@define(eq=False)
class _Loop:
    """An event loop, the thread that it runs in, and the calls on it."""

    events: asyncio.AbstractEventLoop = field(factory=asyncio.new_event_loop)
    token: trio.lowlevel.TrioToken = field(factory=trio.lowlevel.current_trio_token)
    calls: set["_Call"] = field(factory=set)
    over: bool = False  # it takes no more calls
    closed: trio.Event = field(factory=trio.Event)

    async def keep(self) -> None:
        """Let the thread run until the run ends. A system task: nothing may come out of it."""
        threading.Thread(target=self._serve, name="postroom asyncio", daemon=True).start()
        try:
            await self.closed.wait()
        finally:
            self.over = True
            with suppress(RuntimeError):  # closed
                self.events.call_soon_threadsafe(self.events.stop)
            with trio.move_on_after(GRACE, shield=True):
                await self.closed.wait()
            if not self.closed.is_set():
                log.warning(
                    "what is left on the asyncio loop did not end within %g s of the run; its thread is left behind", GRACE
                )

    # -------------------------------------------------------------- in the thread
    def _serve(self) -> None:
        asyncio.set_event_loop(self.events)
        while not self.over:
            with suppress(SystemExit, KeyboardInterrupt):  # a task's leaves the loop here; its call raises it
                self.events.run_forever()
                self.over = True
        with suppress(SystemExit, KeyboardInterrupt):
            self._clear()
        self.events.close()
        with suppress(trio.RunFinishedError):
            self.token.run_sync_soon(self._close)

    def _clear(self) -> None:
        left = asyncio.all_tasks(self.events)
        for task in left:
            task.cancel()
        self.events.run_until_complete(asyncio.gather(*left, return_exceptions=True)) if left else None
        self.events.run_until_complete(self.events.shutdown_asyncgens())
        self.events.run_until_complete(self.events.shutdown_default_executor())

    # -------------------------------------------------------------- back in trio
    def _close(self) -> None:
        self.over = True
        for call in tuple(self.calls):  # they came when the loop had ended
            call.settle(None, _cancelled())
        self.closed.set()


_loop: trio.lowlevel.RunVar[_Loop | None] = trio.lowlevel.RunVar("postroom_asyncio_loop", None)


def _loop_of_the_run() -> _Loop:
    """The loop of this run of trio: made for its first call, or anew where one was stopped."""
    loop = _loop.get()
    if loop is None or loop.over:
        loop = _Loop()
        _loop.set(loop)
        trio.lowlevel.spawn_system_task(loop.keep, name="postroom asyncio loop")
    return loop


@define(eq=False)
class _Call:
    """A task of trio's that waits for a task of the loop's."""

    loop: _Loop
    run: Callable[[], Coroutine[Any, Any, Any]]
    name: str
    waiter: trio.lowlevel.Task = field(factory=trio.lowlevel.current_task)
    task: asyncio.Task[Any] | None = None
    raise_cancel: Callable[[], Any] | None = None

    async def result(self) -> Any:
        """What became of it."""
        self.loop.calls.add(self)
        with suppress(RuntimeError):  # the loop has ended just now: it settles this call
            self.loop.events.call_soon_threadsafe(self._begin, context=copy_context())
        return await trio.lowlevel.wait_task_rescheduled(self._abort)

    def _abort(self, raise_cancel: Callable[[], Any]) -> trio.lowlevel.Abort:
        self.raise_cancel = raise_cancel
        with suppress(RuntimeError):
            self.loop.events.call_soon_threadsafe(self._cancel)
        return trio.lowlevel.Abort.FAILED

    def settle(self, result: Any, error: BaseException | None) -> None:
        """Wake the waiting task. What its own cancel brought about is its `Cancelled`."""
        self.loop.calls.discard(self)
        if error is None:
            woken: outcome.Outcome[Any] = outcome.Value(result)
        elif self.raise_cancel is not None and isinstance(error, CancelledWithinError):
            woken = outcome.capture(self.raise_cancel)
        else:
            woken = outcome.Error(error)
        trio.lowlevel.reschedule(self.waiter, woken)

    # -------------------------------------------------------------- in the thread
    def _begin(self) -> None:
        self.task = self.loop.events.create_task(self._ran(), name=self.name)
        self.task.add_done_callback(self._done)

    async def _ran(self) -> Any:
        return await self.run()

    def _cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def _done(self, task: asyncio.Task[Any]) -> None:
        error = _cancelled() if task.cancelled() else task.exception()
        with suppress(trio.RunFinishedError):
            self.loop.token.run_sync_soon(self.settle, None if error else task.result(), error)


def _cancelled() -> CancelledWithinError:
    return CancelledWithinError("its asyncio task was cancelled from within")
