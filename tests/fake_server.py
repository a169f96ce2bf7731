"""Servers that are as strict as a provider and stricter, for tests on loopback: what all of them have in common.

A server streams answers as its provider does, one `Answer` a request, and keeps every body it was sent. A transcript that
breaks a rule gets a 400 before any answer is used up. What one provider does differently is its `Wire`.
"""

import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import hypercorn.trio
import msgspec
import trio
from attrs import frozen
from hypercorn.config import Config
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from trio_util import AsyncValue

Json = Mapping[str, Any]


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one request gets: thinking, words, tool calls (name and arguments; a `str` is sent as it is), in chunks.

    `delay` seconds pass before each chunk; after `cut_after` chunks the connection is cut, after `end_after` the body
    ends in good order, after `hang_after` nothing more comes. A `status` other than 200 is an error, `message` its text and
    `code` its code; after `fail_after` chunks the stream tells it. `usage=False`: nothing is counted.
    """

    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, dict[str, Any] | str]] = []
    finish: str | None = None
    delay: float = 0.0
    cut_after: int | None = None
    end_after: int | None = None
    hang_after: int | None = None
    fail_after: int | None = None
    usage: bool = True
    status: int = 200
    message: str = "the server is busy"
    code: str | None = None


Scripted = Answer | Callable[[dict[str, Any]], Answer]


@frozen
class Wire:
    """How one provider is imitated.

    Attributes:
        path: Where requests are posted.
        broken: The first rule that a body breaks.
        chunks: An answer, in the pieces in which it is sent.
        refusal: An error's body: status, message, code.
        key: The key that a request shows.
        fail: An error in the middle of a stream.
        base: What stands behind the server's address in the SDK's setting.
        content: What a stream says it is.
    """

    path: str
    broken: Callable[[Any], str | None]
    chunks: Callable[[Answer, Json], Iterator[bytes]]
    refusal: Callable[[int, str, str | None], Json]
    key: Callable[[Request], str | None]
    fail: Callable[[str], bytes]
    base: str = ""
    content: str = "text/event-stream"


class FakeServer:
    """The running server: what it was asked, and what became of its streams."""

    def __init__(self, wire: Wire, answers: tuple[Scripted, ...], otherwise: Scripted | None, key: str | None) -> None:
        self.url = ""  # for the SDK's setting
        self.bodies: list[dict[str, Any]] = []
        self.broken: list[str] = []  # the rules that transcripts broke
        self.asked = AsyncValue(0)  # requests
        self.streaming = AsyncValue(0)  # streams begun
        self.aborted = AsyncValue(0)  # streams whose client went away
        self.sent = AsyncValue(0)  # chunks sent, of all streams
        self.wire = wire
        self._answers = deque(answers)
        self._otherwise = otherwise
        self._key = key

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The transcript of the last request."""
        messages: list[dict[str, Any]] = self.bodies[-1]["messages"]
        return messages

    def then(self, *answers: Scripted) -> None:
        """More answers."""
        self._answers.extend(answers)

    async def __call__(self, request: Request) -> Response:
        """Answer one request."""
        body = json.loads(await request.body())
        self.bodies.append(body)
        self.asked.value += 1
        if self._key is not None and self.wire.key(request) != self._key:
            return self._error(401, "this key opens nothing", "invalid_api_key")
        rule = self.wire.broken({**request.path_params, **body} if isinstance(body, dict) else body)
        if rule is not None:
            self.broken.append(rule)
            return self._error(400, rule, "invalid_value")
        answer = self._answers.popleft() if self._answers else self._otherwise
        if answer is None:
            return self._error(400, "the answers of this fake are used up", "used_up")
        if not isinstance(answer, Answer):
            answer = answer(body)
        return self._error(answer.status, answer.message, answer.code) if answer.status != 200 else _Stream(self, answer, body)

    def _error(self, status: int, message: str, code: str | None) -> Response:
        return JSONResponse(self.wire.refusal(status, message, code), status, {"retry-after-ms": "1"})


class _Stream(Response):
    """An answer as a stream. Starlette's own cannot tell under trio that the client has left."""

    def __init__(self, server: FakeServer, answer: Answer, body: Json) -> None:
        super().__init__()
        self._server, self._answer, self._body = server, answer, body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        content = self._server.wire.content.encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", content)]})
        self._server.streaming.value += 1
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, receive, nursery.cancel_scope)
            await self._send(send)
            nursery.cancel_scope.cancel()

    async def _watch(self, receive: Receive, stream: trio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._server.aborted.value += 1
        stream.cancel()

    async def _send(self, send: Send) -> None:
        for sent, chunk in enumerate(self._server.wire.chunks(self._answer, self._body)):
            if sent == self._answer.cut_after:
                return  # without the last part of the body: hypercorn then drops the connection
            if sent == self._answer.end_after:
                break
            if sent == self._answer.hang_after:
                await trio.sleep_forever()
            if sent == self._answer.fail_after:
                failure = self._server.wire.fail(self._answer.message)
                await send({"type": "http.response.body", "body": failure, "more_body": True})
                break
            await trio.sleep(self._answer.delay)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            self._server.sent.value += 1
        await send({"type": "http.response.body"})


def pieces(text: str) -> list[str]:
    """A text as a model would stream it: some characters at a time, across words."""
    return [text[start : start + 5] for start in range(0, len(text), 5)]


def sse(data: Json, event: str | None = None) -> bytes:
    """One server-sent event."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()


@asynccontextmanager
async def serving(
    wire: Wire, *answers: Scripted, otherwise: Scripted | None = None, key: str | None = None
) -> AsyncIterator[FakeServer]:
    """Serve on a free port of loopback.

    `otherwise` answers when `answers` are used up (None: an error says so); `key` is the only one that opens.
    """
    server = FakeServer(wire, answers, otherwise, key)
    config = Config()
    config.bind, config.errorlog, config.graceful_timeout = ["127.0.0.1:0"], None, 0.1
    app = Starlette(routes=[Route(wire.path, server.__call__, methods=["POST"])])
    async with trio.open_nursery() as nursery:
        urls = await nursery.start(partial(hypercorn.trio.serve, app, config))  # type: ignore[arg-type]
        server.url = f"{urls[0]}{wire.base}"
        yield server
        nursery.cancel_scope.cancel()
