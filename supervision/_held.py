"""Names the code that holds the loop.

While a handler computes, nothing else in the process runs: no send is read, no deadline fires. Nobody inside the loop can notice
that, so a thread looks from outside: where it finds one step of one task in progress at two looks over 100 ms apart, it logs
the actor whose task it is, and the line. The loop itself pays nothing for it.
"""

import logging
import sys
import threading
import time
from types import FrameType
from typing import Any

from actors._identity import current
from actors._life import Life

log = logging.getLogger("postroom.supervision")
LIMIT = 0.1  # seconds
LOOK = 0.05
STEP = "unrolled_run"  # trio's loop: its local `task` is the one whose step is in progress


class LoopWatch:
    """The thread that looks at the trio thread."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._trio = 0

    def start(self) -> None:
        """Watch the trio thread, which is this one."""
        self._trio = threading.get_ident()
        threading.Thread(target=self._look, name="postroom (loop watch)", daemon=True).start()

    def stop(self) -> None:
        """Watch no more."""
        self._stop.set()

    def _look(self) -> None:
        step: tuple[int, int] | None = None  # the task, and how often it was scheduled
        since = 0.0
        told = False
        while not self._stop.wait(LOOK):
            frame = sys._current_frames().get(self._trio)  # noqa: SLF001  # the only way to see another thread
            task = _running(frame)
            now = None if task is None else (id(task), task._schedule_points)  # noqa: SLF001  # trio's count of its steps
            if now != step:
                step, since, told = now, time.perf_counter(), False
            elif frame is not None and task is not None and not told and time.perf_counter() - since > LIMIT:
                told = True
                voice = task.context.get(current)
                _tell(voice.address if isinstance(voice, Life) else "host code", frame)


def _running(frame: FrameType | None) -> Any:
    """The task whose step is in progress in a thread that stands at `frame`; None if its loop waits."""
    while frame is not None:
        if frame.f_code.co_name == STEP:
            return frame.f_locals.get("task")
        if frame.f_code.co_name == "get_events":
            return None
        frame = frame.f_back
    return None


def _tell(name: str, frame: FrameType) -> None:
    where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
    log.warning(
        "%s has held the loop for over %g ms, at %s; move the work to a thread (`trio.to_thread.run_sync`)", name, LIMIT * 1000, where,
        extra={"address": name},
    )  # fmt: skip
