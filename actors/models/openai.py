"""OpenAI's chat completions through the official SDK, and every server that speaks them (`OPENAI_BASE_URL`).

The SDK sends, retries (overload, 5xx, lost connections: twice, with backoff) and reads the stream; `_chat` and `_chunks`
decide what goes out and what came in; this file holds the two together and words what went wrong.

One client per server and key is kept for one `trio.run`, because its connections belong to that run's sockets; a system
task closes it when the run ends.
"""

import inspect
import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import trio
from attrs import define, field, frozen

from actors._errors import ModelError, ModelUnusable

from ._api import Capabilities, Request
from ._blocks import ModelEvent
from ._cache import IdentityCache
from ._chat import Message, body_of, estimated_input, messages_of
from ._chunks import Accumulator
from ._items import Item
from ._sdk import load

_CLOSING = 5.0  # seconds for saying goodbye to servers when the run ends
_OURS = ("messages", "model", "stream", "tools", "tool_choice")
_TRY_AGAIN = frozenset({408, 409, 425, 429})
_SPENT = "insufficient_quota"  # comes as 429, and no waiting cures it
_WORDS_OF_A_REASON = 1000  # characters; some gateways answer with a page of HTML


class OpenAIChat:
    """`openai:<model>`. `OPENAI_API_KEY` and `OPENAI_BASE_URL` are read at each request.

    Options of a request become parameters of the call; those the SDK does not know go into its `extra_body`. A `stream`
    left early closes its socket; the next request is not disturbed. Usage is the server's count, else an estimate.

    Raises:
        ModelUnusable: No key, no SDK, or an option that is not an option.
        ModelError: A refusal, with the server's reason (`retryable=False`), or overload, a lost connection or a cut
            stream once the SDK's own retries are spent (`retryable=True`).
    """

    def __init__(self, model: str, *, capabilities: Capabilities | None = None) -> None:
        self._model = model
        self._capabilities = capabilities or Capabilities(images=True)
        images = self._capabilities.images
        self._messages: IdentityCache[Item, tuple[Message, ...]] = IdentityCache(lambda item: messages_of(item, images=images))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def name(self) -> str:
        """`openai:<model>`."""
        return f"openai:{self._model}"

    @property
    def capabilities(self) -> Capabilities:
        """What it can be told."""
        return self._capabilities

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
        """Ask; text and thinking come as they are written, tool calls whole, in the completion."""
        return self._stream(request)

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        server = await _server(self.name, *_credentials(self.name, os.environ))
        messages = [message for item in request.transcript for message in self._messages.get(item)]
        body = body_of(request, self._model, messages)
        async with await self._asked(server, body, request.options) as chunks:
            yield _Events(self.name, server, chunks, body)

    async def _asked(self, server: "_Server", body: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
        while True:
            parameters = _parameters(self.name, body, options, server.parameters, counted=server.counts)
            try:
                return await server.client.chat.completions.create(**parameters)
            except server.errors as error:
                if not (server.counts and getattr(error, "status_code", None) in (400, 422) and "stream_options" in str(error)):
                    raise _worded(self.name, error) from error
                server.counts = False  # it knows no such option: ask again without, from now on


@define(eq=False)
class _Events:
    """The events of one answer, chunk by chunk."""

    model: str
    server: "_Server"
    chunks: AsyncIterator[Any]
    body: Mapping[str, Any]
    answer: Accumulator = field(factory=Accumulator, init=False)
    ready: deque[ModelEvent] = field(factory=deque, init=False)
    over: bool = field(default=False, init=False)

    def __aiter__(self) -> AsyncIterator[ModelEvent]:
        return self

    async def __anext__(self) -> ModelEvent:
        while not self.ready:
            if self.over:
                raise StopAsyncIteration
            await self._read()
        return self.ready.popleft()

    async def _read(self) -> None:
        try:
            self.ready.extend(self.answer.feed(await anext(self.chunks)))
        except StopAsyncIteration:
            self.over = True
        except self.server.errors as error:
            self.over = True
            if not self.answer.finished:
                raise _worded(self.model, error) from error
        if self.over and not self.answer.finished:
            raise ModelError(model=self.model, reason="the stream ended before the answer did", retryable=True)
        if self.over:
            self.ready.append(self.answer.completion(estimated_input(self.body)))


def _parameters(
    model: str, body: Mapping[str, Any], options: Mapping[str, Any], known: frozenset[str], *, counted: bool
) -> dict[str, Any]:
    """The call's parameters: the body, the options the SDK knows by name, the others beside them."""
    for name in _OURS:
        if name in options:
            raise ModelUnusable(
                f"{name!r} is no option of {model}: it is made from the session; take it out of the options", model=model
            )
    usage = {"stream_options": {"include_usage": True}} if counted else {}
    named = {name: value for name, value in options.items() if name in known}
    extra = {name: value for name, value in options.items() if name not in known}
    if extra:
        named["extra_body"] = {**extra, **(named.get("extra_body") or {})}
    return {**body, **usage, **named}


# ------------------------------------------------------------------ what went wrong
def _worded(model: str, error: Exception) -> ModelError:
    """The SDK's error as ours: the server's reason, and whether trying again can help."""
    body = getattr(error, "body", None)
    facts = body if isinstance(body, Mapping) else {}
    code = str(facts.get("code") or getattr(error, "code", None) or "")
    status = getattr(error, "status_code", None)
    if status is None and code.isdecimal():
        status = int(code)  # a gateway that had begun to stream when its own server failed
    if status is not None:
        retryable = (status in _TRY_AGAIN or status >= 500) and code != _SPENT
    else:
        retryable = facts.get("type") != "invalid_request_error"
    reason = facts.get("message") or facts.get("detail") or getattr(error, "message", None) or str(error)
    cause = f": {str(error.__cause__) or type(error.__cause__).__name__}" if error.__cause__ is not None else ""
    return ModelError(
        model=model, status=status, reason=f"{str(reason).rstrip('.')[:_WORDS_OF_A_REASON]}{cause}", retryable=retryable
    )


def _credentials(model: str, environ: Mapping[str, str]) -> tuple[str | None, str]:
    """Base URL (None: OpenAI's own) and key. A server of one's own may want no key, but the SDK wants one."""
    base_url, key = environ.get("OPENAI_BASE_URL", "").strip(), environ.get("OPENAI_API_KEY", "").strip()
    if not key and not base_url:
        raise ModelUnusable(
            f"{model} needs a key, and OPENAI_API_KEY is not set; set it, or set OPENAI_BASE_URL to a server of your own",
            model=model,
        )
    return base_url or None, key or "none"


# ------------------------------------------------------------------ clients, for one trio.run
@define(eq=False)
class _Server:
    """A client for one server and key, and what was learned about that server."""

    client: Any
    errors: tuple[type[Exception], ...]  # what the SDK raises when there will be no answer
    parameters: frozenset[str]  # what it knows by name
    counts: bool = True  # takes `stream_options`


@frozen(eq=False)
class _Servers:
    lock: trio.Lock = field(factory=trio.Lock)
    known: dict[tuple[str | None, str], _Server] = field(factory=dict)


_SERVERS: trio.lowlevel.RunVar[_Servers] = trio.lowlevel.RunVar("actors.models.openai")


async def _server(model: str, base_url: str | None, key: str) -> _Server:
    try:
        servers = _SERVERS.get()
    except LookupError:
        servers = _Servers()
        _SERVERS.set(servers)
    found = servers.known.get((base_url, key))
    if found is not None:
        return found
    async with servers.lock:
        found = servers.known.get((base_url, key))
        if found is None:
            found = await trio.to_thread.run_sync(_made, model, base_url, key, abandon_on_cancel=True)
            servers.known[base_url, key] = found
            trio.lowlevel.spawn_system_task(_closed_at_the_end, found.client)
        return found


def _made(model: str, base_url: str | None, key: str) -> _Server:
    """In a thread: the import and the certificates take a second that no other actor should wait."""
    sdk = load("openai", extra="openai", wanted_by=model)
    client = sdk.AsyncOpenAI(base_url=base_url, api_key=key)
    # Many versions let the errors of their HTTP library (httpx, later httpx2) and of JSON through once a stream has begun.
    http = load(type(client.base_url).__module__.partition(".")[0], extra="openai", wanted_by=model)
    errors = (sdk.OpenAIError, http.TransportError, ValueError)
    return _Server(client, errors, frozenset(inspect.signature(client.chat.completions.create).parameters))


async def _closed_at_the_end(client: Any) -> None:
    try:
        await trio.sleep_forever()
    finally:
        # Whatever a server does while we leave, an error out of a system task would be reported as one of trio's.
        with trio.move_on_after(_CLOSING, shield=True), suppress(Exception):
            await client.close()
