"""Anthropic's messages: how the fake server streams, and what it refuses."""

import json
import re
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from attrs import define, field
from fake_chat import bearer
from fake_server import Answer, Json, Wire, pieces, sse
from starlette.requests import Request

_ID, _NAME = re.compile(r"[a-zA-Z0-9_-]+\Z"), re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
_KNOWN = {
    "model", "messages", "max_tokens", "stream", "system", "tools", "tool_choice", "thinking", "temperature", "top_k", "top_p",
    "metadata", "stop_sequences", "service_tier", "cache_control", "output_config",
}  # fmt: skip
_IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
_KINDS = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
}


def signature(thinking: str) -> str:
    """What the server signs its thinking with."""
    return sha256(f"claude {thinking}".encode()).hexdigest()


# ------------------------------------------------------------------ the stream
def chunks(answer: Answer, body: Json) -> Iterator[bytes]:
    """The events of an answer, in Anthropic's manner."""
    tokens = {"input_tokens": 10 * len(body["messages"]), "output_tokens": 1, "cache_read_input_tokens": 4}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    yield _event("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": tokens})
    yield _event("ping")
    for index, (begun, deltas) in enumerate(_blocks(answer, len(body["messages"]))):
        yield _event("content_block_start", index=index, content_block=begun)
        yield from (_event("content_block_delta", index=index, delta=delta) for delta in deltas)
        yield _event("content_block_stop", index=index)
    stop = answer.finish or ("tool_use" if answer.calls else "end_turn")
    yield _event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage={"output_tokens": 7})
    yield _event("message_stop")


def _event(kind: str, **facts: Any) -> bytes:
    return sse({"type": kind, **facts}, kind)


def _blocks(answer: Answer, number: int) -> Iterator[tuple[Json, list[Json]]]:
    if answer.thinking == "[redacted]":
        yield {"type": "redacted_thinking", "data": signature("")}, []
    elif answer.thinking:
        told: list[Json] = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(answer.thinking)]
        signed = {"type": "signature_delta", "signature": signature(answer.thinking)}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*told, signed]
    if answer.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(answer.text)]
    for index, (name, arguments) in enumerate(answer.calls):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
        deltas: list[Json] = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces(text))]
        yield {"type": "tool_use", "id": f"toolu_{number}_{index}", "name": name, "input": {}}, deltas


# ------------------------------------------------------------------ the rules
def broken_rule(body: Any) -> str | None:
    """The first rule that a request's body breaks, with the place; None if a strict provider would take it."""
    return next(_broken(body), None)


def _broken(body: Any) -> Iterator[str]:
    yield from (f"{name}: Extra inputs are not permitted" for name in sorted(set(body) - _KNOWN))
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        yield "max_tokens: Field required"
    if body.get("stream") is not True or not body.get("model"):
        yield "stream, model: this server streams, and wants to know what"
    if "system" in body and not str(body["system"]).strip():
        yield "system: text content blocks must be non-empty"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages: at least one message is required"
        return
    yield from _Reader().read(messages)
    yield from _tools(body, messages)
    yield from _thinking(body, messages)


@define(eq=False)
class _Reader:
    """Reads a transcript from the front, with the calls that still want their result."""

    open: list[str] = field(factory=list)
    used: set[str] = field(factory=set)

    def read(self, messages: Sequence[Json]) -> Iterator[str]:
        before = "assistant"
        for number, message in enumerate(messages):
            place, role, content = f"messages.{number}", message.get("role"), message.get("content")
            if role not in _KINDS or role == before:
                yield f'{place}: roles must alternate, and first message must use the "user" role; found {role}'
                return
            if not isinstance(content, list) or not content:
                yield f"{place}: all messages must have non-empty content"
                return
            yield from (f"{place}.{rule}" for rule in self._content(str(role), content))
            before = str(role)
        if before != "user":
            yield "This model does not support assistant message prefill. The conversation must end with a user message."

    def _content(self, role: str, content: Sequence[Json]) -> Iterator[str]:
        behind = False
        for index, block in enumerate(content):
            kind = block.get("type")
            if kind not in _KINDS[role]:
                yield f"content.{index}: no {kind} of the {role}"
            if kind == "tool_result":
                yield from (f"content.{index}: {rule}" for rule in self._result(block, behind=behind))
            elif kind == "tool_use":
                yield from (f"content.{index}: {rule}" for rule in self._call(block))
            else:
                yield from (f"content.{index}: {rule}" for rule in _block(block))
            behind = behind or kind != "tool_result"
        if role == "user" and self.open:
            yield f"content: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(self.open)}"
        if role == "assistant" and content[-1].get("type") in {"thinking", "redacted_thinking"}:
            yield "content: The final block in an assistant message cannot be `thinking`"

    def _call(self, block: Json) -> Iterator[str]:
        name = str(block.get("id"))
        if not _ID.match(name) or not _NAME.match(str(block.get("name"))) or not isinstance(block.get("input"), dict):
            yield f"tool_use: String should match pattern; input: should be a valid dictionary: {block!r}"
        if name in self.used:
            yield f"`tool_use` ids must be unique: {name}"
        self.used.add(name)
        self.open.append(name)

    def _result(self, block: Json, *, behind: bool) -> Iterator[str]:
        name = block.get("tool_use_id")
        if behind:
            yield "tool_result blocks must come first in the message"
        if name not in self.open:
            yield f"unexpected `tool_use_id` found in `tool_result` blocks: {name}"
        else:
            self.open.remove(str(name))
        for part in block.get("content", ()):
            if part.get("type") not in {"text", "image", "document"}:
                yield f"content: no {part.get('type')} in a result"
            if block.get("is_error") and part.get("type") != "text":
                yield "content: all content must be type `text` if `is_error` is true"
            yield from _block(part)
        if block.get("content") == []:
            yield "content: an empty list"


def _block(block: Json) -> Iterator[str]:
    match block:
        case {"type": "text", "text": str(text)}:
            if not text.strip():
                yield "text content blocks must contain non-whitespace text"
        case {"type": "thinking", "thinking": str(text), "signature": str(signed)}:
            if signed != signature(text):
                yield "Invalid `signature` in `thinking` block"
        case {"type": "redacted_thinking", "data": str(data)}:
            if data != signature(""):
                yield "Invalid `data` in `redacted_thinking` block"
        case {"type": "image" | "document" as kind, "source": {"type": "base64", "media_type": str(mime), "data": str(data)}}:
            yield from _source(kind, mime, data)
        case _:
            yield f"not a block: {block!r}"


def _source(kind: str, mime: str, data: str) -> Iterator[str]:
    if mime not in (_IMAGES if kind == "image" else {"application/pdf"}):
        yield f"source.media_type: no {mime}"
    try:
        if not b64decode(data, validate=True):
            yield "source.data: empty"
    except NoBase64:
        yield "source.data: no base64"


def _tools(body: Json, messages: Sequence[Json]) -> Iterator[str]:
    tools, choice = body.get("tools"), body.get("tool_choice")
    names = [tool.get("name") for tool in tools or ()]
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique."
    for tool in tools or ():
        if not _NAME.match(str(tool.get("name"))) or (tool.get("input_schema") or {}).get("type") != "object":
            yield f"tools: Input should be a valid tool with an input_schema of type object: {tool!r}"
        if "description" in tool and not tool["description"].strip():
            yield "tools: an empty description"
    kinds = {block.get("type") for message in messages for block in message["content"]}
    if not names and kinds & {"tool_use", "tool_result"}:
        yield "Requests which include `tool_use` or `tool_result` blocks must define tools"
    if choice is None:
        return
    match choice:
        case {"type": "auto" | "any" | "none"} if names:
            pass
        case {"type": "tool", "name": name} if name in names:
            pass
        case _:
            yield f"tool_choice: may only be specified while providing tools, and of their names: {choice!r}"


def _thinking(body: Json, messages: Sequence[Json]) -> Iterator[str]:
    thinking = body.get("thinking")
    if not isinstance(thinking, Mapping) or thinking.get("type") != "enabled":
        return
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int) or not 1024 <= budget < body["max_tokens"]:
        yield "thinking.budget_tokens: at least 1024, and less than max_tokens"
    if (body.get("tool_choice") or {}).get("type") in {"any", "tool"}:
        yield "Thinking may not be enabled when tool_choice forces tool use."
    if body.get("temperature", 1) != 1:
        yield "`temperature` may only be set to 1 when thinking is enabled"
    asked, last = [message for message in messages if message["role"] == "assistant"][-1:], messages[-1]["content"]
    if asked and last[0].get("type") == "tool_result" and "thinking" not in str(asked[0]["content"][0].get("type")):
        yield "Expected `thinking` or `redacted_thinking`, but found `tool_use`: a final assistant message starts with thinking"


def refusal(status: int, message: str, code: str | None) -> Json:
    """Anthropic's error."""
    kinds = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
    kind = code if code in set(kinds.values()) else kinds.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def _key(request: Request) -> str | None:
    """In either header: the SDK has moved from the first to the second."""
    return request.headers.get("x-api-key") or bearer(request)


ANTHROPIC = Wire("/v1/messages", broken_rule, chunks, refusal, _key, lambda message: sse(refusal(529, message, None), "error"))
