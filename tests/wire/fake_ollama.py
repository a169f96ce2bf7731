"""Ollama: how the fake server streams, and what it refuses: what would crash a strict chat template, too."""

import json
from base64 import b64decode
from collections.abc import Iterator, Sequence
from typing import Any

from fake_chat import bearer
from fake_server import Answer, Json, Wire, pieces

_KNOWN = {"model", "messages", "tools", "stream", "think", "format", "options", "keep_alive", "logprobs", "top_logprobs"}
_MAY_FOLLOW: dict[str, set[str | None]] = {
    "system": {None},
    "user": {None, "system", "assistant", "tool"},
    "assistant": {"user", "tool"},
    "tool": {"calls", "tool"},
}


# ------------------------------------------------------------------ the stream
def chunks(answer: Answer, body: Json) -> Iterator[bytes]:
    """The lines of an answer, in Ollama's manner: whole calls, the count in the last line."""

    def line(message: Json, **more: Any) -> bytes:
        frame = {"model": body["model"], "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", **message}}
        return json.dumps({**frame, "done": False, **more}).encode() + b"\n"

    yield from (line({"content": "", "thinking": piece}) for piece in pieces(answer.thinking))
    yield from (line({"content": piece}) for piece in pieces(answer.text))
    for name, arguments in answer.calls:
        args = arguments if isinstance(arguments, dict) else {"raw": arguments}
        yield line({"content": "", "tool_calls": [{"function": {"name": name, "arguments": args}}]})
    counts = {"prompt_eval_count": 10 * len(body["messages"]), "eval_count": 7} if answer.usage else {}
    yield line({"content": ""}, done=True, done_reason=answer.finish or "stop", **counts)


# ------------------------------------------------------------------ the rules
def broken_rule(body: Any) -> str | None:
    """The first rule that a request's body breaks, with the place; None if a strict template would take it."""
    return next(_broken(body), None)


def _broken(body: Any) -> Iterator[str]:
    yield from (f"unknown field {name!r}" for name in sorted(set(body) - _KNOWN))
    if body.get("stream") is not True or not body.get("model"):
        yield "stream, model: this server streams, and wants to know what"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages: at least one"
        return
    yield from _messages(messages)
    names = [tool.get("function", {}).get("name") for tool in body.get("tools", ())]
    if len(set(names)) < len(names) or not all(names):
        yield f"tools: without a name, or two of one: {names}"
    for tool in body.get("tools", ()):
        if (tool.get("function", {}).get("parameters") or {}).get("type") != "object":
            yield f"tools: parameters are an object: {tool!r}"


def _messages(messages: Sequence[Json]) -> Iterator[str]:
    before: str | None = None
    called: list[str] = []
    for number, message in enumerate(messages):
        role, place = str(message.get("role")), f"messages[{number}]"
        if role not in _MAY_FOLLOW or before not in _MAY_FOLLOW[role] or (called and role != "tool"):
            yield f"{place}: a {role} message does not stand behind {before}; open calls: {called}"
            return
        if not isinstance(message.get("content", ""), str):  # the SDK leaves out what is empty
            yield f"{place}: content is a string"
        if role == "tool" and called[:1] != [message.get("tool_name")]:
            yield f"{place}: the result of {message.get('tool_name')}, where {called[:1]} is due"
        if role == "user" and not message.get("content", "").strip() and not message.get("images"):
            yield f"{place}: empty"
        yield from (f"{place}: no image" for image in message.get("images", ()) if not b64decode(image, validate=True))
        called = called[1:] if role == "tool" else []
        for call in message.get("tool_calls", ()):
            function = call.get("function", {})
            if not isinstance(function.get("arguments"), dict) or not function.get("name"):
                yield f"{place}: a call has a name and an object as arguments: {call!r}"
            called.append(str(function.get("name")))
        if role == "assistant" and not called and not message.get("content", "").strip():
            yield f"{place}: says nothing"
        before = "calls" if called and role == "assistant" else role
    if called or before not in {"user", "tool"}:
        yield f"messages: the last one is of the user or of a tool, not of the {before}; open calls: {called}"


OLLAMA = Wire(
    "/api/chat", broken_rule, chunks, lambda status, message, code: {"error": message}, bearer,
    lambda message: json.dumps({"error": message}).encode() + b"\n", content="application/x-ndjson",
)  # fmt: skip
