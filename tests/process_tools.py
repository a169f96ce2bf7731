"""Functions for `test_process.py` that worker processes import by name, and what the tests see of processes."""

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from actors import Media, Tool, ToolError
from actors.tools._context import ToolContext

SLEEP = "600"  # longer than any test: what still runs then was forgotten


@dataclass
class Point:
    x: int
    y: float = 0.5


# ------------------------------------------------------------------ tools
def pid() -> int:
    """Say which process this is."""
    return os.getpid()


def describe(at: datetime, point: Point, rest: dict[str, str]) -> dict[str, object]:
    """Say what came."""
    return {
        "at": at,
        "point": point,
        "rest": rest,
        "types": {type(at).__name__, type(point).__name__},
        "image": Media("a/b", b"\0"),
    }


def loose(value, **rest: int) -> list[object]:  # type: ignore[no-untyped-def]
    """Take anything: its author gave a schema."""
    return [value, rest]


def fail(how: str) -> object:
    """Raise."""
    if how == "told":
        raise ToolError("no such log")
    if how == "exit":
        sys.exit(3)
    if how == "odd":

        class OddError(Exception):  # pickle could not find it
            pass

        raise OddError(lambda: None, "\ud800") from ValueError("deeper")
    return object()


def note(path: str, text: object) -> None:
    """Write a file so that whoever sees it sees it whole."""
    draft = Path(f"{path}.draft")
    draft.write_text(str(text))
    draft.rename(path)


def spin(path: str) -> None:
    """Note the process, and never end."""
    note(path, os.getpid())
    while True:
        pass


def hold(path: str) -> None:
    """Note the process, and stay in C code that lets no other Python code run."""
    note(path, os.getpid())
    ctypes.PyDLL(None).sleep(int(SLEEP))


def family(path: str) -> None:
    """Start processes in three ways, note them all, and never end."""
    pids = [os.getpid(), subprocess.Popen(["sleep", SLEEP]).pid, os.posix_spawnp("sleep", ["sleep", SLEEP], os.environ)]
    forked = os.fork()
    if forked == 0:
        time.sleep(float(SLEEP))
    note(path, " ".join(map(str, [*pids, forked])))
    time.sleep(float(SLEEP))


def die(how: str) -> None:
    """End this process."""
    if how == "exit":
        os._exit(3)
    if how == "kill":
        os.kill(os.getpid(), 9)
    if how == "crash":
        ctypes.string_at(0)
    os.system(f"sleep {SLEEP} &")
    if os.fork() == 0:
        time.sleep(float(SLEEP))
    os._exit(4)


def meet(own: str, other: str) -> int:
    """Come, wait for another, and say which process came."""
    note(own, "here")
    wait_for(other)
    return os.getpid()


# ------------------------------------------------------------------ what the tests see
def in_process(fn: Callable[..., Any], **options: Any) -> Tool:
    return Tool(fn, isolation="process", **options)


def context(tool: str = "t") -> ToolContext:
    return ToolContext("call_1", tool, "s", None, "key", [].append)


def wait_for(path: str | Path, seconds: float = 60) -> str:
    """The text of a file, once it is there."""
    deadline = time.monotonic() + seconds
    while not Path(path).exists():
        assert time.monotonic() < deadline, f"nobody wrote {path}"
        time.sleep(0.01)
    return Path(path).read_text()


def _runs(pid: int) -> bool:
    """Whether a process runs; one that nobody has buried yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def gone(*pids: int, seconds: float = 30) -> bool:
    """Whether these processes end, soon."""
    deadline = time.monotonic() + seconds
    while any(_runs(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not any(_runs(pid) for pid in pids)


def children() -> list[str]:
    """The command lines of this process's children, without multiprocessing's own, which lives as long as the program."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            line = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if parent == os.getpid() and "resource_tracker" not in line:
            found.append(line)
    return found
