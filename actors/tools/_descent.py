"""Processes that a call started, killed with it: SIGTERM to all of them, SIGKILL to what is left after 100 ms.

A tool starts processes as it likes: `trio.run_process`, asyncio's, `subprocess` in a thread. All of these end in
`subprocess.Popen`, of which Python tells through its audit hooks (PEP 578), in the context of whoever starts it: that
context says which call it is. An actor that a tool spawned has a voice of its own, and its processes are not the call's.

    what dies   each such process, the group it leads, and their descendants, as the system lists them at that moment
    when        the call is cancelled, or its time is over: at once, beside the tool's own cleanup; what that cleanup
                starts is left to it, and dies only if the tool is through and it still runs
    what stays  what a call that ended by itself left running; a daemon that made its own session, once its parent is gone
    after that  a thread that the call left behind starts no more processes: `Fenced`
"""

import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from signal import SIGKILL, SIGTERM
from types import FrameType
from typing import Any

import trio
from attrs import define, field, frozen

from actors._errors import Fenced, ToolError
from actors._identity import Identity, current
from actors._waiters import guarded_async

PATIENCE = 0.1  # seconds between SIGTERM and SIGKILL
MOMENT = 0.01  # seconds between two looks
GIVEN_UP = 2.0  # seconds after which even a killed process, stuck in the kernel, is waited for no longer
MANY = 64  # processes of one call that make it worth a look for ended ones
PROC = "/proc"


async def with_its_processes(fn: Callable[..., Awaitable[Any]], *args: Any) -> Any:
    """Await a tool's function. If it is cancelled, no process that it started runs any more when `Cancelled` leaves."""
    _listen()
    family = Family(current.get())
    before = _family.set(family)
    value, raised = None, None
    try:
        async with trio.open_nursery() as family.nursery:
            value, raised = await guarded_async(fn, *args)
            family.done = True
            if family.watched:
                family.nursery.cancel_scope.cancel()
    finally:
        _family.reset(before)
        family.nursery = None
        through, family.done = family.done, True
        if not through:
            family.fenced = True
            with trio.CancelScope(shield=True):  # it has an end of its own
                await family.kill()
    if not through:
        raise ToolError("it let out a cancellation that was not its call's")
    if raised is not None:
        raise raised
    return value


@define(eq=False)
class Family:
    """What one call started."""

    whose: Identity
    started: list[subprocess.Popen[Any]] = field(factory=list)
    lock: threading.Lock = field(factory=threading.Lock)
    nursery: trio.Nursery | None = None
    token: trio.lowlevel.TrioToken = field(factory=trio.lowlevel.current_trio_token)
    watched: bool = False
    seen: "set[_Process]" = field(factory=set)  # what ran when the cancel came
    done: bool = False  # the tool is through
    fenced: bool = False  # and was cancelled

    def add(self, process: subprocess.Popen[Any]) -> None:
        """Note a process that is about to start. From any thread."""
        with self.lock:
            if len(self.started) % MANY == MANY - 1:
                self.started = [each for each in self.started if each.returncode is None]
            self.started.append(process)
        if not self.watched:
            self.watched = True
            with suppress(trio.RunFinishedError):
                self.token.run_sync_soon(self._begin_watch)

    def _begin_watch(self) -> None:
        if self.nursery is not None and not self.done:
            self.nursery.start_soon(self._watch, name="processes of a call")

    async def _watch(self) -> None:
        def abort(_raise_cancel: Any) -> trio.lowlevel.Abort:
            if not self.done:  # now, before any task acts on the cancel: who kills a parent hides its children
                self.seen = _descent(self.started, set())
            return trio.lowlevel.Abort.SUCCEEDED

        try:
            await trio.lowlevel.wait_task_rescheduled(abort)
        except trio.Cancelled:  # noqa: ASYNC103  # the call's own is on its way; this one says when
            if not self.done:
                with trio.CancelScope(shield=True):
                    await self.kill()

    async def kill(self) -> None:
        """End what was started until now."""
        with self.lock:
            processes, self.started = self.started, []
        if not processes:
            return
        left = await trio.to_thread.run_sync(_descent, processes, self.seen)
        _send(left, SIGTERM)
        if not await _gone(left, PATIENCE):
            left = await trio.to_thread.run_sync(_descent, processes, left)
            _send(left, SIGKILL)
            await _gone(left, GIVEN_UP)


# ------------------------------------------------------------------ who starts what
_family: ContextVar[Family | None] = ContextVar("postroom_processes", default=None)


@cache
def _listen() -> None:
    """Hear of every process that this one starts, from now until it ends: an audit hook stays."""
    if hasattr(os, "killpg"):
        sys.addaudithook(_hear)


def _hear(event: str, _args: tuple[Any, ...]) -> None:
    if event != "subprocess.Popen":
        return
    family = _family.get()
    if family is None or family.whose is not current.get():
        return
    if family.fenced:
        raise Fenced(address=family.whose.address)
    process = _starting(inspect.currentframe())
    if process is not None:
        family.add(process)


def _starting(frame: FrameType | None) -> subprocess.Popen[Any] | None:
    """The `Popen` whose method raised the event: its process has no id yet."""
    while frame is not None:
        found = frame.f_locals.get("self")
        if isinstance(found, subprocess.Popen):
            return found
        frame = frame.f_back
    return None


# ------------------------------------------------------------------ what runs
@frozen
class _Process:
    """A line of the system's list. An id may be used again; with the time of its start it is not."""

    pid: int
    parent: int
    group: int
    session: int
    born: int


def _look(pid: int) -> _Process | None:
    """What the system says of a process; None if it has ended, reaped or not. Without a /proc it says less."""
    with suppress(OSError, ValueError):
        if not os.path.isdir(PROC):  # noqa: PTH112  # this is read for every process there is: a Path costs twice the reading
            return _Process(pid, os.getpid(), pid if _leads(pid) else 0, 0, 0)
        with open(f"{PROC}/{pid}/stat", "rb") as file:  # noqa: PTH123
            state, *facts = file.read().rpartition(b")")[2].split()
        if state not in {b"Z", b"X"}:
            return _Process(pid, int(facts[0]), int(facts[1]), int(facts[2]), int(facts[18]))
    return None


def _leads(pid: int) -> bool:
    """Whether there is a group of this id, its leader or not; ProcessLookupError if there is not even a process."""
    try:
        os.killpg(pid, 0)
    except (ProcessLookupError, PermissionError):
        os.kill(pid, 0)
        return False
    return True


def _descent(started: Iterable[subprocess.Popen[Any]], seen: set[_Process]) -> set[_Process]:
    """What runs of these processes, of the groups and sessions they lead, of what was seen before, and of the descendants of all."""
    leaders = {each.pid: each for each in started if each.pid}
    names = os.listdir(PROC) if os.path.isdir(PROC) else ()  # noqa: PTH112, PTH208
    listed = [each for pid in {*leaders, *map(int, filter(str.isdecimal, names))} if (each := _look(pid)) is not None]
    again = {
        each.pid
        for each in listed
        if each.parent != os.getpid() or getattr(leaders.get(each.pid), "returncode", None) is not None
    }
    ours = leaders.keys() - again  # without those that have ended, and whose ids are another's now
    found = {each for each in listed if {each.pid, each.group, each.session} & ours} | set(filter(_runs, seen))
    while more := {each for each in listed if each.parent in {one.pid for one in found}} - found:
        found |= more
    return found


def _runs(process: _Process) -> bool:
    now = _look(process.pid)
    return now is not None and now.born == process.born


def _send(processes: Collection[_Process], signal: int) -> None:
    for each in filter(_runs, processes):
        with suppress(ProcessLookupError, PermissionError):
            (os.killpg if each.group == each.pid else os.kill)(each.pid, signal)


async def _gone(processes: Collection[_Process], seconds: float) -> bool:
    """Wait until none of them runs, so long at most."""
    with trio.move_on_after(seconds):
        while any(map(_runs, processes)):  # noqa: ASYNC110  # nobody tells of the end of another's child
            await trio.sleep(MOMENT)
        return True
    return False
