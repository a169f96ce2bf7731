"""One session's connection to one MCP server: kept by an owner, used by calls.

the owner   one task: it enters the SDK's client, lists the tools, follows what the server says of them, and leaves the
            client. It ends in an error when the server does, and is begun again by who supervises it
a call      a task of its own; it uses the client that the owner holds, or fails at once where there is none
a doubt     a call that failed on the way, or a lost subscription, makes the owner list the tools anew: a server that
            does not answer to that has died
"""

import logging
import os
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, Self

import trio
from attrs import define, field, frozen

from actors._errors import ActorsError, ToolError, leaves, sentence
from actors._extras import load
from actors._waiters import guarded_async

from ._context import ToolContext
from ._mcp import EXTRA, LIBRARY, MCPServer
from ._mcp_result import value_of
from ._tool import Tool

CLOSED = -32000  # JSON-RPC's code for a connection that was closed
ANSWER = 30.0  # seconds that a server has to list its tools
SETTLE = 5.0  # seconds that a request waits for a list that has changed
AGAIN = 1.0  # seconds until a lost subscription is made again
PAGES = 100  # a list of more is cut
log = logging.getLogger("postroom.tools")


class ServerDownError(ActorsError):
    """An MCP server could not be reached, or has ended."""


@frozen
class Offer:
    """A tool, as its server describes it."""

    name: str
    description: str
    schema: dict[str, Any]


@define(eq=False)
class Link:
    """A connection and what came through it. `version` grows with each list of tools."""

    server: MCPServer
    offers: tuple[Offer, ...] = ()
    version: int = 0
    _library: Any = None
    _client: Any = None
    _why: str = "it was not started yet"
    _lost: bool = False
    _doubts: int = 0  # how often the server was found to have other tools by now, perhaps
    _looked: int = 0  # how many of these a list came after
    _news: trio.Event = field(factory=trio.Event)
    _listed: trio.Event = field(factory=trio.Event)
    _errors: deque[str] = field(factory=partial(deque, maxlen=5))

    # -------------------------------------------------------------- the owner
    async def hold(self, ready: Callable[[], None]) -> None:
        """Connect, say that it is `ready`, and keep the connection until it is lost or this is cancelled.

        Raises:
            ServerDownError: It could not be made, or was lost. Says why, in the words of the SDK and of the server's stderr.
        """
        self._errors.clear()
        connected = False

        def made() -> None:
            nonlocal connected
            connected = True
            ready()

        try:
            _, raised = await guarded_async(self._hold, made)
        finally:
            self._let_go()
        assert raised is not None
        self._why = "; ".join([*dict.fromkeys(sentence(each) for each in leaves(raised)), *(() if connected else self._errors)])
        what = "has ended" if connected else "did not start" if self.server.command else "could not be reached"
        raise ServerDownError(f"MCP server {self.server.name} ({self.server.where}) {what}: {self._why}") from None

    async def _hold(self, ready: Callable[[], None]) -> None:
        self._library = library = await trio.to_thread.run_sync(_library)
        self._lost = False
        async with (
            self._errlog() as errlog,
            library.Client(self._target(errlog), message_handler=self._heard, client_info=_us(library)) as client,
        ):
            await self._list(client)
            self._client = client
            ready()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._subscribe, client)
                try:
                    await self._attend(client)
                finally:
                    self._let_go()  # now: leaving the client takes its time

    def _let_go(self) -> None:
        if self._client is not None:
            self._client, self._why = None, "its connection has ended"
        self._listed.set()

    def _target(self, errlog: Any) -> Any:
        """What the SDK's client connects to."""
        server, library = self.server, self._library
        if server.command is not None:
            command, *args = server.command
            return self._watched(library.stdio_client(library.StdioServerParameters(command=command, args=args), errlog))
        if server.url is not None:
            return server.url
        return server.server() if callable(server.server) else server.server

    @asynccontextmanager
    async def _watched(self, transport: AbstractAsyncContextManager[Any]) -> AsyncIterator[Any]:
        async with transport as (reading, writing):
            yield _Watched(reading, self._ended), writing

    @asynccontextmanager
    async def _errlog(self) -> AsyncIterator[Any]:
        """A file for the server's stderr, whose lines are logged."""
        if self.server.command is None or sys.platform == "win32":
            yield sys.__stderr__
            return
        reading, writing = os.pipe()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._log, trio.lowlevel.FdStream(reading))
            with os.fdopen(writing, "w") as file:  # noqa: ASYNC231  # it is the server's to write to
                yield file
            nursery.cancel_scope.cancel()

    async def _log(self, stream: Any) -> None:
        rest = b""
        async with stream:
            async for chunk in stream:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in filter(None, (each.decode(errors="replace").strip() for each in lines)):
                    self._errors.append(line)
                    log.info("MCP server %s: %s", self.server.name, line)

    # -------------------------------------------------------------- what the server says
    async def _heard(self, message: Any) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            self._doubt()

    def _doubt(self) -> None:
        self._doubts += 1
        self._news.set()

    def _ended(self) -> None:
        self._lost = True
        self._news.set()

    async def _attend(self, client: Any) -> None:
        """List the tools whenever they may have changed; ends in an error when the connection does."""
        while not self._lost:
            await self._news.wait()
            self._news = trio.Event()
            if self._looked < self._doubts and not self._lost:
                doubts = self._doubts
                await self._list(client)
                self._looked = doubts
                self._listed.set()
                self._listed = trio.Event()
        raise ServerDownError("it closed the connection")

    async def _list(self, client: Any) -> None:
        found: list[Offer] = []
        cursor = None
        with trio.fail_after(ANSWER):
            for _ in range(PAGES):
                page = await client.list_tools(cursor=cursor, cache_mode="refresh")
                found += [Offer(each.name, each.description or each.title or "", each.input_schema) for each in page.tools]
                cursor = page.next_cursor
                if cursor is None:
                    break
        if tuple(found) != self.offers:
            self.offers = tuple(found)
            self.version += 1

    async def _subscribe(self, client: Any) -> None:
        """Have the server tell of changes, where that has to be asked for."""
        told = client.server_capabilities.tools
        while told is not None and told.list_changed:
            _, raised = await guarded_async(self._listen, client)
            if type(raised).__name__ in {"ListenNotSupportedError", "MCPError"}:
                return  # older servers tell without being asked; others do not tell
            await trio.sleep(AGAIN)
            self._doubt()

    async def _listen(self, client: Any) -> None:
        async with client.listen(tools_list_changed=True) as changes:
            async for _ in changes:
                self._doubt()

    # -------------------------------------------------------------- calls
    def tool(self, offer: Offer, name: str) -> Tool:
        """The tool that an offer is here."""

        async def ask(_postroom_context: ToolContext, **arguments: Any) -> Any:
            return await self._call(offer.name, arguments, _postroom_context)

        return Tool(ask, name=name, description=offer.description, schema=offer.schema)

    async def _call(self, name: str, arguments: dict[str, Any], context: ToolContext) -> Any:
        client = self._client
        if client is None:
            raise ToolError(
                f"MCP server {self.server.name} is down ({self._why}) and is being started again; nothing was called: try later, or go on without it"
            )

        async def progress(done: float, total: float | None, message: str | None) -> None:
            context.progress({"progress": done, "total": total, "message": message})

        result, raised = await guarded_async(partial(client.call_tool, name, arguments, progress_callback=progress))
        if raised is None:
            return value_of(result)
        if isinstance(raised, self._library.MCPError) and raised.code != CLOSED:
            raise ToolError(f"MCP server {self.server.name} refused: {raised.message}")
        self._doubt()
        told = "; ".join(map(sentence, leaves(raised)))
        raise ToolError(f"MCP server {self.server.name} gave no answer ({told}); whether the call took effect is not known")

    async def settled(self) -> None:
        """Wait until a list that has changed was read; not for ever."""
        with trio.move_on_after(SETTLE):
            while self._looked < self._doubts and self._client is not None:
                await self._listed.wait()


class _Watched:
    """The SDK's stream of what a server says; its reader leaves it when it has ended."""

    def __init__(self, stream: Any, ended: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = ended

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> Any:
        self._on_end()
        return await self._stream.__aexit__(*error)  # noqa: ASYNC102  # the SDK's own, which closes what is in memory

    def __aiter__(self) -> Any:
        return self._stream.__aiter__()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _library() -> Any:
    return load(LIBRARY, extra=EXTRA, wanted_by="MCPServer")


def _us(library: Any) -> Any:
    return library.types.Implementation(name="postroom", version="1")
