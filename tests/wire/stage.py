"""A session before a provider's fake server: real sockets, so real time, and little of it.

    async with on_stage(provider, monkeypatch, Answer(calls=[("look", {"at": "prod"})]), Answer(text="All quiet.")) as here:
        await here.session.ask("What is new?")

A stage fails when the server refused a transcript, and when a scene hangs.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from attrs import define, field
from fake_server import Answer, FakeServer, Scripted, serving
from providers import PROVIDERS, Provider

from actors import Agent, Media, ToolError, tool
from supervision import SessionRef, System, open_system

PNG = Media("image/png", b"\x89PNG\r\n\x1a\n")
PATIENCE = 20.0  # seconds

each_provider = pytest.mark.parametrize("provider", PROVIDERS, ids=str)


@define(eq=False)
class Props:
    """What tools wait for, and what they tell."""

    held: trio.Event = field(factory=trio.Event)  # a call of `hold` has begun
    gate: trio.Event = field(factory=trio.Event)  # it may end
    ran: list[str] = field(factory=list)


class Clerk(Agent):
    """You answer for the logs."""

    toolbox = ("wait",)
    deps: Props

    @tool
    async def look(self, at: str) -> str:
        """Look at a log.

        Args:
            at: Where.
        """
        self.deps.ran.append(at)
        return f"{at}: all quiet"

    @tool
    async def hold(self, at: str) -> str:
        """Look at it for a while."""
        self.deps.held.set()
        await self.deps.gate.wait()
        return await self.look(at)

    @tool(attach=0)
    async def fetch(self, at: str) -> str:
        """Look at it meanwhile."""
        return await self.hold(at)

    @tool
    async def photograph(self, at: str) -> list[Any]:
        """Take a picture."""
        self.deps.ran.append(at)
        return [f"{at} at noon", PNG]

    @tool
    async def fall(self, at: str) -> str:
        """Fail."""
        raise ToolError(f"{at} is too dark")


@define(eq=False)
class Stage:
    """A session, its provider's server, and what its tools do."""

    system: System
    session: SessionRef
    server: FakeServer
    props: Props
    another: Callable[[Props], Awaitable[SessionRef]]

    async def begin_anew(self) -> None:
        """Another session, at the same server."""
        self.props = Props()
        self.session = await self.another(self.props)

    async def asked(self, number: int) -> None:
        """Wait until so many requests came."""
        await self.server.asked.wait_value(lambda count: count >= number)

    async def answered(self) -> str:
        """Wait until the session is at rest; its last answer."""
        return await self.session.wait_answer()


def point_to(provider: Provider, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the settings lead to this server."""
    monkeypatch.setenv(provider.url, url)
    if provider.key is not None:
        monkeypatch.setenv(provider.key, "sesame")


@asynccontextmanager
async def on_stage(
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    *answers: Scripted,
    otherwise: Scripted | None = None,
    agent: type[Agent] = Clerk,
    **options: Any,
) -> AsyncIterator[Stage]:
    """Serve, open a system and a session in it."""
    props = Props()
    with trio.fail_after(PATIENCE):
        async with serving(provider.wire, *answers, otherwise=otherwise, key=provider.key and "sesame") as server:
            point_to(provider, server.url, monkeypatch)
            async with open_system() as system:

                async def another(props: Props) -> SessionRef:
                    return await system.open(agent, model=provider.name, deps=props, **options)

                yield Stage(system, await another(props), server, props, another)
            assert server.broken == []


THEN = Answer(text="Very well.")
