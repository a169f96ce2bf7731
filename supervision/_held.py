"""Names the code that holds the loop.

While a handler computes, nothing else in the process runs: no send is read, no deadline fires. Nobody inside the loop can notice
that, so a thread looks from outside: when one pass of the loop takes over 100 ms, it reads where the trio thread stands and
logs the actor and the line, if it is the same at a second look. trio tells when a pass begins and ends; that costs two calls a pass and nothing per message.
"""

import logging
import sys
import threading
import time
from types import CodeType, FrameType

import trio

log = logging.getLogger("postroom.supervision")
LIMIT = 0.1  # seconds
LOOK = 0.05


class LoopWatch(trio.abc.Instrument):
    """An instrument for a system's trio run, and the thread that reads it. `life` is the code whose `place` local names an actor."""

    def __init__(self, life: CodeType) -> None:
        self._life = life
        self._began: float | None = None  # when the pass in progress began; None while the loop waits
        self._told: float | None = None
        self._stop = threading.Event()
        self._trio = 0

    def start(self) -> None:
        """Watch the run of the current task."""
        self._began = None
        self._trio = threading.get_ident()
        trio.lowlevel.add_instrument(self)
        threading.Thread(target=self._look, name="postroom (loop watch)", daemon=True).start()

    def stop(self) -> None:
        """Watch no more."""
        trio.lowlevel.remove_instrument(self)
        self._stop.set()

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002  # trio's signature
        """The pass is over."""
        self._began = None

    def after_io_wait(self, timeout: float) -> None:  # noqa: ARG002  # trio's signature
        """A pass begins."""
        self._began = time.perf_counter()

    def _look(self) -> None:
        spot: tuple[object, ...] | None = None
        while not self._stop.wait(LOOK):
            began = self._began
            if began is None or began == self._told or time.perf_counter() - began <= LIMIT:
                continue
            frame = sys._current_frames().get(self._trio)  # noqa: SLF001  # the only way to see another thread
            before, spot = spot, frame and (began, frame.f_code, frame.f_lineno)
            if frame is not None and spot == before:  # seen twice: a process that was merely not scheduled moves on
                self._told = began
                self._tell(frame)

    def _tell(self, frame: FrameType) -> None:
        who = "host code"
        outer: FrameType | None = frame
        while outer is not None:
            if outer.f_code is self._life:
                who = outer.f_locals["place"].address
                break
            outer = outer.f_back
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        log.warning(
            "%s has held the loop for over %g ms, at %s; move the work to a thread (`trio.to_thread.run_sync`)", who, LIMIT * 1000, where,
            extra={"address": who},
        )  # fmt: skip
