"""A model behind an SDK: what all providers have in common.

The SDK sends, retries (overload, 5xx, lost connections: twice, with backoff) and reads the stream. Two pure modules a wire
decide what goes out and what came in; a provider's own file holds the three together. Here is the rest: the client, the events
one by one, and errors in our words.

An answer counts once its model has said why it stopped. A stream that ends before was cut, and there is no completion;
one that breaks behind it has lost at most the count of tokens.
"""

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Hashable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar, Protocol

from attrs import define, field

from actors._errors import ModelError, ModelUnusable

from ._api import Capabilities, Request
from ._blocks import Completion, ModelEvent
from ._capabilities import capabilities_of
from ._clients import Server, server_for
from ._trouble import worded

Body = dict[str, Any]


class Reader(Protocol):
    """Collects the chunks of one answer."""

    @property
    def finished(self) -> bool:
        """Whether the model said why it stopped."""
        ...

    def feed(self, chunk: Any) -> list[ModelEvent]:
        """Take a chunk; returns what there is to read in it."""
        ...

    def completion(self, estimate: Callable[[], int]) -> Completion:
        """The whole answer. `estimate` says about how long the request was, for a server that counted nothing."""
        ...


class RemoteModel(ABC):
    """A model behind an SDK. Keys and addresses are read from the environment at each request.

    Options of a request become parameters of the call; those the SDK does not know go into the body beside them. A
    `stream` left early closes its socket; the next request is not disturbed. Usage is the server's count, else an estimate.

    Raises:
        ModelUnusable: No key, no SDK, or an option that is not an option.
        ModelError: A refusal, with the server's reason (`retryable=False`), or overload, a lost connection or a cut
            stream once the SDK's own retries are spent (`retryable=True`).
    """

    provider: str
    reserved: ClassVar[tuple[str, ...]] = ("messages", "model", "stream", "tools", "tool_choice")  # made from the session

    def __init__(self, model: str, *, capabilities: Capabilities | None = None) -> None:
        self.model = model
        self._capabilities = capabilities or capabilities_of(self.name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def name(self) -> str:
        """`provider:model`."""
        return f"{self.provider}:{self.model}"

    @property
    def capabilities(self) -> Capabilities:
        """What it can be told."""
        return self._capabilities

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
        """Ask; text and thinking come as they are written, tool calls whole, in the completion."""
        return self._stream(request)

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        for name in self.reserved:
            if name in request.options:
                raise ModelUnusable(
                    f"{name!r} is no option of {self.name}: it is made from the session; take it out of the options",
                    model=self.name,
                )
        address = self._address(os.environ)
        server = await server_for((self.provider, address), lambda: self._connected(address))
        body = self._body(request)
        try:
            answer = await self._asked(server, body, request.options)
        except server.errors as error:
            raise worded(self.name, error) from error
        async with answer as chunks:
            yield Events(self.name, server, aiter(chunks), self._reader(), lambda: self._estimate(body))

    # ------------------------------------------------------------------ of each provider
    @abstractmethod
    def _address(self, environ: Mapping[str, str]) -> Hashable:
        """Where it is and the key to it. Raises `ModelUnusable` with what to set."""

    @abstractmethod
    def _connected(self, address: Any) -> Server:
        """Load the SDK and make a client; called in a thread."""

    @abstractmethod
    def _body(self, request: Request) -> Body:
        """The request on the wire, options aside."""

    @abstractmethod
    async def _asked(self, server: Server, body: Body, options: Mapping[str, Any]) -> AbstractAsyncContextManager[Any]:
        """Send it. The context yields the chunks and closes the socket."""

    @abstractmethod
    def _reader(self) -> Reader:
        """What reads one answer."""

    @abstractmethod
    def _estimate(self, body: Body) -> int:
        """About how many tokens a body has."""


@define(eq=False)
class Events:
    """The events of one answer, chunk by chunk."""

    model: str
    server: Server
    chunks: AsyncIterator[Any]
    answer: Reader
    estimate: Callable[[], int]
    ready: deque[ModelEvent] = field(factory=deque, init=False)
    over: bool = field(default=False, init=False)

    def __aiter__(self) -> AsyncIterator[ModelEvent]:
        return self

    async def __anext__(self) -> ModelEvent:
        while not self.ready and not self.over:
            try:
                self.ready.extend(self.answer.feed(await anext(self.chunks)))
            except StopAsyncIteration:
                self._end()
            except self.server.errors as error:
                self._end(error)
        if not self.ready:
            raise StopAsyncIteration
        return self.ready.popleft()

    def _end(self, error: Exception | None = None) -> None:
        self.over = True
        if not self.answer.finished:
            cut = ModelError(model=self.model, reason="the stream ended before the answer did", retryable=True)
            raise (cut if error is None else worded(self.model, error)) from error
        self.ready.append(self.answer.completion(self.estimate))


def named_and_extra(options: Mapping[str, Any], known: frozenset[str]) -> Body:
    """Options as parameters: those the SDK knows by name, the others in its `extra_body`."""
    named = {name: value for name, value in options.items() if name in known}
    extra = {name: value for name, value in options.items() if name not in known}
    if extra:
        named["extra_body"] = {**extra, **(named.get("extra_body") or {})}
    return named


def key_or_server(model: str, environ: Mapping[str, str], key: str, url: str) -> tuple[str | None, str]:
    """Base URL (None: the provider's own) and key. A server of one's own may want no key, but the SDK wants one."""
    base_url, secret = environ.get(url, "").strip(), environ.get(key, "").strip()
    if not secret and not base_url:
        raise ModelUnusable(
            f"{model} needs a key, and {key} is not set; set it, or set {url} to a server of your own", model=model
        )
    return base_url or None, secret or "none"
