"""`postroom` as a process: run to its end, written to while it runs, or on a terminal of its own."""

import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from subprocess import PIPE, STDOUT, CompletedProcess
from typing import Any, TypeAlias

import pexpect
import trio
from attrs import define

Screen: TypeAlias = "pexpect.spawn[str]"  # generic for the type checker alone
COMMAND = [sys.executable, "-m", "supervision"]


def environment(url: str | None = None) -> dict[str, str]:
    """The environment, with the server's address in it."""
    return os.environ | ({"OPENAI_BASE_URL": url} if url else {})


async def postroom(*words: str, url: str | None = None, typed: bytes = b"") -> CompletedProcess[bytes]:
    """Run it to its end."""
    with trio.fail_after(60):
        return await trio.run_process(
            [*COMMAND, *words], stdin=typed, capture_stdout=True, capture_stderr=True, check=False, env=environment(url)
        )


def events_of(done: CompletedProcess[bytes]) -> list[dict[str, Any]]:
    """The events that `--json` printed."""
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


@define(eq=False)
class Running:
    """A run in progress, written to and listened to."""

    process: trio.Process
    seen: str = ""

    async def until(self, text: str) -> None:
        """Read on until it printed this."""
        with trio.fail_after(30):
            while text not in self.seen:
                assert await self.more(), f"it ended without {text!r}: {self.seen}"

    async def more(self) -> bool:
        """Read on; whether there was more."""
        assert self.process.stdout is not None
        chunk = await self.process.stdout.receive_some()
        self.seen += bytes(chunk).decode()
        return bool(chunk)

    async def type(self, text: str) -> None:
        """Type."""
        assert self.process.stdin is not None
        await self.process.stdin.send_all(text.encode())

    async def end(self) -> int:
        """Wait for its exit code."""
        assert self.process.stdout is not None
        with trio.fail_after(30):
            async for chunk in self.process.stdout:
                self.seen += bytes(chunk).decode()
            return await self.process.wait()


@asynccontextmanager
async def running(*words: str, url: str) -> AsyncIterator[Running]:
    """Start it, with a pipe to type into."""
    start = partial(trio.run_process, stdin=PIPE, stdout=PIPE, stderr=STDOUT, check=False, env=environment(url))
    async with trio.open_nursery() as nursery:
        process = await nursery.start(start, [*COMMAND, *words])
        yield Running(process)
        nursery.cancel_scope.cancel()


async def on_a_terminal(url: str, scene: Callable[[Screen], None], *words: str) -> tuple[int, str]:
    """Play a scene with it on a terminal of its own; its exit code, and what is left on the screen."""

    def play() -> tuple[int, str]:
        child = pexpect.spawn(COMMAND[0], [*COMMAND[1:], *words], env=environment(url), timeout=30, encoding="utf-8")
        scene(child)
        child.expect(pexpect.EOF)
        child.close()
        return -1 if child.exitstatus is None else child.exitstatus, child.before or ""

    return await trio.to_thread.run_sync(play)
