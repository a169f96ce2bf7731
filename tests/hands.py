"""An actor that does what a test hands it, in its own voice."""

from collections.abc import Awaitable, Callable
from typing import Any

import trio
from attrs import frozen

from actors import Actor, Ask, handle


@frozen
class Do(Ask[Any]):
    """Call this with the actor, in its handler; what it returns is the answer."""

    what: Callable[[Actor], Awaitable[Any]]


class Hand(Actor):
    """Does it."""

    @handle
    async def do(self, message: Do) -> Any:
        return await message.what(self)


def asking(address: str, body: Any, timeout: float | None = None) -> Do:
    """Ask somebody."""

    async def what(actor: Actor) -> Any:
        return await actor.find(address).ask(body, timeout=timeout)

    return Do(what)


def napping(seconds: float) -> Do:
    """Be busy for so long."""

    async def what(_actor: Actor) -> None:
        await trio.sleep(seconds)

    return Do(what)
