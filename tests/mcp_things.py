"""An MCP server for `test_mcp.py`: made in the test's process, or run as a script that speaks on stdin and stdout."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import mcp.server.mcpserver as sdk
from mcp.server import MCPServer


@dataclass
class Point:
    """Where something is."""

    x: int
    y: int


@contextmanager
def quiet() -> Iterator[None]:
    """Making a server of the SDK's puts a handler of its own on the root logger; not here."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def where() -> Point:
    """Say where."""
    return Point(1, 2)


async def words() -> list[str]:
    """Say two words."""
    return ["one", "two"]


async def picture() -> list[str | sdk.Image]:
    """Show a picture."""
    return ["look", sdk.Image(data=b"\x89PNG", format="png")]


async def refuse() -> str:
    """Refuse."""
    raise sdk.exceptions.ToolError("ask Ann first")


async def dwell(path: str, context: sdk.Context) -> str:
    """Wait until cancelled."""
    await context.report_progress(1, 2, "half")
    try:
        await anyio.sleep(60)
    finally:
        Path(path).write_text("cancelled")  # noqa: ASYNC240  # a test waits for it
    return "never"


async def pid() -> int:
    """Say which process this is."""
    return os.getpid()


async def complain() -> str:
    """Write on stderr."""
    sys.stderr.write("the disk is nearly full\n")
    sys.stderr.flush()
    return "complained"


async def die() -> str:
    """End the process."""
    os._exit(3)


def make(*names: str) -> MCPServer:
    """A server with these tools, and `grow`, which adds `grown`."""
    with quiet():
        server = MCPServer("things")
    for name in names or ("add", "where", "words", "picture", "refuse", "dwell", "pid", "complain", "die"):
        server.add_tool(globals()[name])

    async def grown() -> str:
        """Be new."""
        return "new"

    async def grow(context: sdk.Context) -> str:
        """Get another tool."""
        server.add_tool(grown)
        await context.notify_tools_changed()
        return "grew"

    server.add_tool(grow)
    return server


if __name__ == "__main__":
    make().run("stdio")
