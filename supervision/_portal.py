"""The way in for foreign threads: an asyncio host, a web framework's worker, a GUI."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import trio

from actors._envelope import Receipt, UserMessage
from actors._identity import current, host
from actors._outcome import Outcome
from actors.agent._agent import Agent
from actors.events import AnyEvent

from ._session_ref import SessionRef

T = TypeVar("T")


class Portal:
    """Speaks for one person from any foreign thread; every method blocks its thread.

    Raises `RuntimeError` when called in the trio thread itself, and `trio.RunFinishedError` once the system's run is over.
    """

    def __init__(self, system: Any, root: Any, owner: str | None) -> None:
        self._system = system
        self._root = root
        self._voice = host(root, owner)

    def _in_trio(self, fn: Callable[[], Awaitable[T]]) -> T:
        async def spoken() -> T:
            current.set(self._voice)
            return await fn()

        return trio.from_thread.run(spoken, trio_token=self._root.token)

    def send(self, to: str, body: object, *, id: str | None = None, interrupt: bool = False, wait: float = 0.0) -> Receipt:
        """As `ActorRef.send` to the address `to`, as this person."""
        receipt: Receipt = self._in_trio(lambda: self._system.ref(to).send(body, id=id, interrupt=interrupt, wait=wait))
        return receipt

    def ask(self, to: str, body: object, *, timeout: float | None = None) -> Any:
        """As `ask` of the ref of `to`: a session's answer, or an actor's reply."""
        return self._in_trio(lambda: self._system.ref(to).ask(body, timeout=timeout))

    def complete(self, token: str, outcome: Outcome) -> Receipt:
        """As `System.complete`: answer a deferred call."""
        receipt: Receipt = self._in_trio(lambda: self._system.complete(token, outcome))
        return receipt

    def open(self, agent: type[Agent], *, session: str | None = None, **options: Any) -> str:
        """As `System.open`; returns the session's id."""

        async def opened() -> str:
            ref: SessionRef = await self._system.open(agent, session=session, **options)
            return ref.address

        return self._in_trio(opened)

    def stream(self, to: str, body: str | UserMessage, *, id: str | None = None) -> Iterator[AnyEvent]:
        """Send, and yield the events of the run that reads it, until that run ends.

        A slow thread holds nobody up: what has left the system's ring of events meanwhile is told as a `Gap`.
        """
        opened = self._in_trio(lambda: self._enter(to, body, id))
        try:
            while True:
                event = self._in_trio(lambda: anext(opened.events, None))
                if event is None:
                    return
                yield event
        finally:
            self._in_trio(opened.close)

    async def _enter(self, to: str, body: str | UserMessage, id: str | None) -> "_Opened":
        manager = self._system.session(to).stream(body, id=id)
        return _Opened(manager, await manager.__aenter__())


class _Opened:
    """A stream kept open between two calls from the thread."""

    def __init__(self, manager: Any, stream: Any) -> None:
        self._manager = manager
        self.events = stream.events

    async def close(self) -> None:
        """Leave it."""
        await self._manager.__aexit__(None, None, None)
