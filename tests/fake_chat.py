"""A chat-completions server that is as strict as a provider and stricter, for tests on loopback.

    async with fake_chat(Answer(calls=[("read_log", {"name": "prod"})]), Answer(text="No errors.")) as chat:
        monkeypatch.setenv("OPENAI_BASE_URL", chat.url)

It streams answers as OpenAI does (`fake_server.py`). A transcript that breaks a rule gets a 400 in OpenAI's words' place,
before any answer is used up (the rules: `chat_rules.py`). For a test in another process:
`python tests/fake_chat.py '[{"text": "hello"}]'` prints its URL and serves until its stdin closes.
"""

import json
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio
from attrs import evolve
from chat_rules import broken_rule
from fake_server import Answer, FakeServer, Scripted, Wire, pieces, serving, sse
from starlette.requests import Request

__all__ = ["CHAT", "Answer", "FakeChat", "Scripted", "bearer", "chunks", "fake_chat", "refusal"]

FakeChat = FakeServer


def chunks(answer: Answer, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The chunks of an answer, in OpenAI's manner: role first, then words, then calls piece by piece, then the end."""
    counted = answer.usage and (body.get("stream_options") or {}).get("include_usage", False)
    frame = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
    frame |= {"usage": None} if counted else {}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**frame, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": None if answer.calls and not answer.text else ""})
    yield from (chunk({"reasoning_content": piece}) for piece in pieces(answer.thinking))
    yield from (chunk({"content": piece}) for piece in pieces(answer.text))
    for index, (name, arguments) in enumerate(answer.calls):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        head = {"index": index, "id": f"call_{len(body['messages'])}_{index}", "type": "function"}
        yield chunk({"tool_calls": [{**head, "function": {"name": name, "arguments": ""}}]})
        yield from (chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}) for piece in pieces(text))
    yield chunk({}, answer.finish or ("tool_calls" if answer.calls else "stop"))
    if counted:
        tokens = {"prompt_tokens": 10 * len(body["messages"]), "completion_tokens": 7}
        yield {**frame, "choices": [], "usage": {**tokens, "total_tokens": sum(tokens.values())}}


def _sent(answer: Answer, body: Mapping[str, Any]) -> Iterator[bytes]:
    yield from map(sse, chunks(answer, body))
    yield b"data: [DONE]\n\n"


def refusal(status: int, message: str, code: str | None) -> Mapping[str, Any]:
    """OpenAI's error."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def bearer(request: Request) -> str | None:
    """The key of most providers."""
    return request.headers.get("authorization", "").removeprefix("Bearer ")


def _uncounted(body: Any) -> str | None:
    return "unknown parameter: 'stream_options'" if "stream_options" in body else broken_rule(body)


CHAT = Wire(
    "/v1/chat/completions", broken_rule, _sent, refusal, bearer, lambda message: sse(refusal(500, message, None)), base="/v1"
)


@asynccontextmanager
async def fake_chat(
    *answers: Scripted, otherwise: Scripted | None = None, key: str | None = None, counts: bool = True
) -> AsyncIterator[FakeChat]:
    """Serve on a free port of loopback.

    `otherwise` answers when `answers` are used up (None: an error says so); `key` is the only one that opens;
    `counts=False` is a server that refuses `stream_options`.
    """
    wire = CHAT if counts else evolve(CHAT, broken=_uncounted)
    async with serving(wire, *answers, otherwise=otherwise, key=key) as chat:
        yield chat


async def _until_stdin_closes(answers: list[Answer]) -> None:
    async with fake_chat(*answers, otherwise=Answer(text="That was all.")) as chat:
        sys.stdout.write(f"{chat.url}\n")
        sys.stdout.flush()
        await trio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)


if __name__ == "__main__":
    trio.run(_until_stdin_closes, msgspec.json.decode(sys.argv[1], type=list[Answer]))
