"""Lines typed while something runs.

A daemon thread reads the descriptor itself: a thread blocked in `sys.stdin` would hold its lock when the interpreter
ends, which is fatal there, while one blocked in `os.read` is simply left behind. Reading waits for the reader (no
buffer), so a pipe that never ends fills nothing.
"""

import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import trio

STDIN = 0
_CHUNK = 4096


def is_terminal() -> bool:
    """Whether a person can type here: a terminal, and this program in its foreground."""
    try:
        return os.isatty(STDIN) and os.tcgetpgrp(STDIN) == os.getpgrp()
    except OSError:
        return False


def _readable() -> bool:
    try:
        return not os.isatty(STDIN) or is_terminal()  # a background job that reads its terminal is suspended
    except OSError:
        return False


def _lines() -> Iterator[str]:
    rest = b""
    while chunk := os.read(STDIN, _CHUNK):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line.decode(errors="replace") for line in whole)
    if rest:
        yield rest.decode(errors="replace")


def _read(send: trio.MemorySendChannel[str], token: trio.lowlevel.TrioToken) -> None:
    nobody_listens = suppress(trio.RunFinishedError, trio.Cancelled, trio.BrokenResourceError)
    with nobody_listens:
        with suppress(OSError):  # closed, or not ours to read: nobody will type
            for line in _lines():
                if line.strip():
                    trio.from_thread.run(send.send, line.strip(), trio_token=token)
        trio.from_thread.run_sync(send.close, trio_token=token)


@asynccontextmanager
async def typed_lines() -> AsyncIterator[trio.MemoryReceiveChannel[str]]:
    """A channel of the lines that come on standard input, stripped, blank ones left out; it ends where the input does."""
    send, receive = trio.open_memory_channel[str](0)
    with receive:
        if _readable():
            token = trio.lowlevel.current_trio_token()
            threading.Thread(target=_read, args=(send, token), name="keyboard", daemon=True).start()
        else:
            send.close()
        yield receive
