"""One client per server and key, kept for one `trio.run`: its connections belong to that run's sockets.

Clients are made in a thread, for the import and the certificates take a second that no other actor should wait. A system task
closes each when the run ends.
"""

from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any

import trio
from attrs import define, field, frozen

_CLOSING = 5.0  # seconds for saying goodbye to servers when the run ends


@define(eq=False)
class Server:
    """A client for one server and key, and what was learned about that server."""

    client: Any
    errors: tuple[type[Exception], ...]  # what the SDK raises when there will be no answer
    parameters: frozenset[str]  # what it knows by name
    close: Callable[[], Any]
    counts: bool = True  # takes the option that asks for a count of tokens


@frozen(eq=False)
class _Servers:
    lock: trio.Lock = field(factory=trio.Lock)
    known: dict[Hashable, Server] = field(factory=dict)


_SERVERS: trio.lowlevel.RunVar[_Servers] = trio.lowlevel.RunVar("actors.models")


async def server_for(key: Hashable, make: Callable[[], Server]) -> Server:
    """The server under this key; `make` makes it, in a thread. No checkpoint if it is there."""
    try:
        servers = _SERVERS.get()
    except LookupError:
        servers = _Servers()
        _SERVERS.set(servers)
    found = servers.known.get(key)
    if found is not None:
        return found
    async with servers.lock:
        found = servers.known.get(key)
        if found is None:
            found = await trio.to_thread.run_sync(make, abandon_on_cancel=True)
            servers.known[key] = found
            trio.lowlevel.spawn_system_task(_closed_at_the_end, found)
        return found


async def _closed_at_the_end(server: Server) -> None:
    try:
        await trio.sleep_forever()
    finally:
        # Whatever a server does while we leave, an error out of a system task would be reported as one of trio's.
        with trio.move_on_after(_CLOSING, shield=True), suppress(Exception):
            await server.close()
