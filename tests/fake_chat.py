"""A chat-completions server that is as strict as a provider and stricter, for tests on loopback.

    async with fake_chat(Answer(calls=[("read_log", {"name": "prod"})]), Answer(text="No errors.")) as chat:
        monkeypatch.setenv("OPENAI_BASE_URL", chat.url)

It streams answers as OpenAI does, one `Answer` a request, and keeps every body it was sent. A transcript that breaks a
rule gets a 400 in OpenAI's words' place, before any answer is used up (the rules: `chat_rules.py`). For a test in another
process: `python tests/fake_chat.py '[{"text": "hello"}]'` prints its URL and serves until its stdin closes.
"""

import json
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import hypercorn.trio
import msgspec
import trio
from chat_rules import broken_rule
from hypercorn.config import Config
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from trio_util import AsyncValue


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one request gets: thinking, words, tool calls (name and arguments; a `str` is sent as it is), in chunks.

    `delay` seconds pass before each chunk; after `cut_after` chunks the connection is cut, after `end_after` the body
    ends in good order, after `hang_after` nothing more comes. A `status` other than 200 is an error, `message` its text and `code` its code. `usage=False`: nothing is counted.
    """

    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, dict[str, Any] | str]] = []
    finish: str | None = None
    delay: float = 0.0
    cut_after: int | None = None
    end_after: int | None = None
    hang_after: int | None = None
    usage: bool = True
    status: int = 200
    message: str = "the server is busy"
    code: str | None = None


Scripted = Answer | Callable[[dict[str, Any]], Answer]


class FakeChat:
    """The running server: what it was asked, and what became of its streams."""

    def __init__(self, answers: tuple[Scripted, ...], *, otherwise: Scripted | None, key: str | None, counts: bool) -> None:
        self.url = ""  # for OPENAI_BASE_URL
        self.bodies: list[dict[str, Any]] = []
        self.broken: list[str] = []  # the rules that transcripts broke
        self.streaming = AsyncValue(0)  # streams begun
        self.aborted = AsyncValue(0)  # streams whose client went away
        self._answers = deque(answers)
        self._otherwise = otherwise
        self._key = key
        self._counts = counts

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The transcript of the last request."""
        messages: list[dict[str, Any]] = self.bodies[-1]["messages"]
        return messages

    async def __call__(self, request: Request) -> Response:
        """Answer one request."""
        body = json.loads(await request.body())
        self.bodies.append(body)
        if self._key is not None and request.headers.get("authorization") != f"Bearer {self._key}":
            return _error(401, "this key opens nothing", "invalid_api_key")
        if not self._counts and "stream_options" in body:
            return _error(400, "unknown parameter: 'stream_options'", "unknown_parameter")
        rule = broken_rule(body)
        if rule is not None:
            self.broken.append(rule)
            return _error(400, rule, "invalid_value")
        answer = self._answers.popleft() if self._answers else self._otherwise
        if answer is None:
            return _error(400, "the answers of this fake are used up", "used_up")
        if not isinstance(answer, Answer):
            answer = answer(body)
        return _error(answer.status, answer.message, answer.code) if answer.status != 200 else _Stream(self, answer, body)


def _error(status: int, message: str, code: str | None) -> Response:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    error = {"message": message, "type": kind, "param": None, "code": code}
    return JSONResponse({"error": error}, status, {"retry-after-ms": "1"})


class _Stream(Response):
    """An answer as server-sent events. Starlette's own cannot tell under trio that the client has left."""

    def __init__(self, chat: FakeChat, answer: Answer, body: Mapping[str, Any]) -> None:
        super().__init__()
        self._chat, self._answer, self._body = chat, answer, body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        self._chat.streaming.value += 1
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, receive, nursery.cancel_scope)
            await self._send(send)
            nursery.cancel_scope.cancel()

    async def _watch(self, receive: Receive, stream: trio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._chat.aborted.value += 1
        stream.cancel()

    async def _send(self, send: Send) -> None:
        for sent, chunk in enumerate(chunks(self._answer, self._body)):
            if sent == self._answer.cut_after:
                return  # without the last part of the body: hypercorn then drops the connection
            if sent == self._answer.end_after:
                break
            if sent == self._answer.hang_after:
                await trio.sleep_forever()
            await trio.sleep(self._answer.delay)
            await send({"type": "http.response.body", "body": f"data: {json.dumps(chunk)}\n\n".encode(), "more_body": True})
        else:
            await send({"type": "http.response.body", "body": b"data: [DONE]\n\n", "more_body": True})
        await send({"type": "http.response.body"})


def chunks(answer: Answer, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The chunks of an answer, in OpenAI's manner: role first, then words, then calls piece by piece, then the end."""
    counted = answer.usage and (body.get("stream_options") or {}).get("include_usage", False)
    frame = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
    frame |= {"usage": None} if counted else {}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**frame, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": None if answer.calls and not answer.text else ""})
    yield from (chunk({"reasoning_content": piece}) for piece in _pieces(answer.thinking))
    yield from (chunk({"content": piece}) for piece in _pieces(answer.text))
    for index, (name, arguments) in enumerate(answer.calls):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        head = {"index": index, "id": f"call_{len(body['messages'])}_{index}", "type": "function"}
        yield chunk({"tool_calls": [{**head, "function": {"name": name, "arguments": ""}}]})
        yield from (chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}) for piece in _pieces(text))
    yield chunk({}, answer.finish or ("tool_calls" if answer.calls else "stop"))
    if counted:
        tokens = {"prompt_tokens": 10 * len(body["messages"]), "completion_tokens": 7}
        yield {**frame, "choices": [], "usage": {**tokens, "total_tokens": sum(tokens.values())}}


def _pieces(text: str) -> list[str]:
    """A text as a model would stream it: some characters at a time, across words."""
    return [text[start : start + 5] for start in range(0, len(text), 5)]


@asynccontextmanager
async def fake_chat(
    *answers: Scripted, otherwise: Scripted | None = None, key: str | None = None, counts: bool = True
) -> AsyncIterator[FakeChat]:
    """Serve on a free port of loopback.

    `otherwise` answers when `answers` are used up (None: an error says so); `key` is the only one that opens;
    `counts=False` is a server that refuses `stream_options`.
    """
    chat = FakeChat(answers, otherwise=otherwise, key=key, counts=counts)
    config = Config()
    config.bind, config.errorlog, config.graceful_timeout = ["127.0.0.1:0"], None, 0.1
    app = Starlette(routes=[Route("/v1/chat/completions", chat.__call__, methods=["POST"])])
    async with trio.open_nursery() as nursery:
        urls = await nursery.start(partial(hypercorn.trio.serve, app, config))  # type: ignore[arg-type]
        chat.url = f"{urls[0]}/v1"
        yield chat
        nursery.cancel_scope.cancel()


async def _until_stdin_closes(answers: list[Answer]) -> None:
    async with fake_chat(*answers, otherwise=Answer(text="That was all.")) as chat:
        sys.stdout.write(f"{chat.url}\n")
        sys.stdout.flush()
        await trio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)


if __name__ == "__main__":
    trio.run(_until_stdin_closes, msgspec.json.decode(sys.argv[1], type=list[Answer]))
