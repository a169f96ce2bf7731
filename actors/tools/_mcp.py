"""MCP servers as an agent names them, and what their tools are called here."""

import re
from collections.abc import Collection, Sequence
from hashlib import sha256
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from attrs import field, frozen

from actors._errors import ConfigError
from actors._extras import require

LIBRARY, EXTRA = "mcp", "mcp"
LONGEST = 64  # characters of a tool's name that every provider takes
PREFIX = 32  # of these at most for the server's
SHOWN = 200  # characters of a command in messages
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+")
_RUNNERS = re.compile(r"(python[0-9.]*|uv|uvx|pipx|npx|node|bunx?|deno|docker|env|run|exec|x)\Z")


@frozen(init=False)
class MCPServer:
    """A server that speaks the Model Context Protocol, whose tools an agent has: `tools = [MCPServer(...)]`.

    Each session has a connection of its own, kept by an actor below it (`<session>/mcp-<name>`): it is made before the session is
    ready, and made again, with growing delays, whenever the server dies; until then calls of its tools fail and say so. What the
    server says about changes of its tools holds from the next request on. Cancelling a call cancels it in the server.

    A tool is called `<name>_<its name there>`: characters that models may not send become `_`, and what is longer than 64 is
    cut and ends in a hash. Arguments are checked by the server, against the schema it gives. What it reports as an error is a
    failed outcome; images and sounds are `Media`; structured content is JSON.

    Args:
        command: Starts the server, which speaks on its stdin and stdout. It sees `PATH`, `HOME` and the like of our environment
            and no more: give it what it needs with `("env", "TOKEN=...", "server")`. What it writes on stderr is logged.
        url: Where it speaks streamable HTTP.
        server: A `Server` or `MCPServer` of the official SDK in this process; or a function, called for each connection, that
            returns anything `mcp.Client` takes: a transport with headers of your own, say.
        name: What its tools' names begin with; else made from the command, the host or the server's own name.

    Raises:
        ConfigError: Not exactly one of the three was given, or something is wrong with it; or the extra is not installed.
    """

    command: tuple[str, ...] | None = field(repr=False)  # both may hold secrets; `where` shows none
    url: str | None = field(repr=False)
    server: Any = field(eq=False)
    name: str

    def __init__(
        self, command: Sequence[str] | None = None, *, url: str | None = None, server: Any = None, name: str | None = None
    ) -> None:
        if [command, url, server].count(None) != 2:
            raise ConfigError("MCPServer takes one of a command, url= and server=")
        if command is not None and (isinstance(command, str) or not command or not all(map(_is_text, command))):
            raise ConfigError(f'MCPServer: found command={command!r}; write its words: ["python", "server.py"]')
        if url is not None and not (_is_text(url) and url.startswith(("http://", "https://"))):
            raise ConfigError(f"MCPServer: found url={url!r}; write one that begins with http:// or https://")
        if name is not None and not (_is_text(name) and name and _legal(name) == name and len(name) <= PREFIX):
            raise ConfigError(f"MCPServer: found name={name!r}; write 1 to {PREFIX} of A-Z a-z 0-9 _ -")
        require(LIBRARY, extra=EXTRA, wanted_by="MCPServer")
        words = None if command is None else tuple(command)
        self.__attrs_init__(words, url, server, name or _legal(_suggested(words, url, server))[:PREFIX].strip("_-") or "mcp")

    @property
    def where(self) -> str:
        """How to reach it, for people: without the values of `NAME=value`, and without what stands around host and path."""
        if self.command is not None:
            return " ".join(f"{each.partition('=')[0]}=..." if "=" in each else each for each in self.command)[:SHOWN]
        if self.url is not None:
            parts = urlsplit(self.url)
            return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
        return "in this process"


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _suggested(command: Sequence[str] | None, url: str | None, server: Any) -> str:
    if url is not None:
        return urlsplit(url).hostname or ""
    if command is None:
        return str(getattr(server, "name", None) or getattr(server, "__name__", ""))
    words = [PurePath(each).name for each in command if not each.startswith("-") and "=" not in each]
    told = [each for each in words if not _RUNNERS.match(each)]
    return PurePath(told[0] if told else words[0] if words else "").stem


def _legal(name: str) -> str:
    return _ILLEGAL.sub("_", name)


def name_here(server: str, tool: str, taken: Collection[str]) -> str:
    """What a server's tool is called here. The same each time, unless it is taken by then."""
    name = f"{server}_{_legal(tool)}"
    if len(name) <= LONGEST and name not in taken:
        return name
    return f"{name[: LONGEST - 9]}_{sha256(tool.encode()).hexdigest()[:8]}"
