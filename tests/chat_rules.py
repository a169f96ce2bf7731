"""What a provider takes as a chat-completions request, and a little less: the rules of the fake server, pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import define, field

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_MAY_FOLLOW: dict[str, set[str | None]] = {  # roles that may stand before each role; None is the beginning
    "system": {None},
    "user": {None, "system", "assistant", "tool"},
    "assistant": {"user", "tool"},
    "tool": {"calls", "tool"},
}

Json = Mapping[str, Any]


def broken_rule(body: Any) -> str | None:
    """The first rule that a request's body breaks, with the place; None if a strict provider would take it."""
    return next(_broken(body), None)


def _broken(body: Any) -> Iterator[str]:
    if not isinstance(body, dict) or not isinstance(body.get("model"), str) or not body["model"]:
        yield "model: names the model"
        return
    if body.get("stream") is not True:
        yield "stream: this server only streams"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        yield "messages: a list of at least one message"
        return
    yield from _Reader().read(messages)
    yield from _tools(body)


@define(eq=False)
class _Reader:
    """Reads a transcript from the front, with the calls that still want their result."""

    open: list[str] = field(factory=list)
    used: set[str] = field(factory=set)

    def read(self, messages: Sequence[Json]) -> Iterator[str]:
        before: str | None = None
        for number, message in enumerate(messages):
            role = message.get("role")
            place = f"messages[{number}]"
            if role not in _MAY_FOLLOW:
                yield f"{place}: no role {role!r}"
                return
            if self.open and role != "tool":
                yield f"{place}: the tool calls before it want their results first: {', '.join(self.open)}"
            elif before not in _MAY_FOLLOW[role]:
                yield f"{place}: a {role} message does not stand behind {before or 'nothing'}"
            yield from (f"{place}: {rule}" for rule in self._message(role, message))
            before = "calls" if self.open and role == "assistant" else role
        if self.open:
            yield f"messages: the last tool calls want their results: {', '.join(self.open)}"
        if before not in ("user", "tool"):
            yield f"messages: the last one is of the user or of a tool, not of the {before}"

    def _message(self, role: str, message: Json) -> Iterator[str]:
        content = message.get("content")
        if role == "assistant":
            yield from self._assistant(message)
        elif role == "tool":
            if not isinstance(content, str):
                yield "a tool's content is a string"
            if message.get("tool_call_id") != (self.open[0] if self.open else None):
                yield f"result of {message.get('tool_call_id')!r}, but the next open call is {self.open[:1]}"
            del self.open[:1]
        elif isinstance(content, list) and role == "user":
            yield from (f"no part {part!r}" for part in content if not _is_part(part))
        elif not isinstance(content, str) or not content.strip():
            yield f"a {role} message has content"

    def _assistant(self, message: Json) -> Iterator[str]:
        calls = message.get("tool_calls")
        if not isinstance(message.get("content"), str):
            yield "an assistant's content is a string, also beside calls"
        elif calls is None and not message["content"].strip():
            yield "an assistant message has content or tool calls"
        if calls == []:
            yield "an empty list of tool calls"
        for call in calls or ():
            yield from _call(call)
            if call.get("id") in self.used:
                yield f"the call id {call.get('id')!r} was used before"
            self.used.add(str(call.get("id")))
            self.open.append(str(call.get("id")))


def _call(call: Json) -> Iterator[str]:
    function = call.get("function") or {}
    if call.get("type") != "function" or not _is_name(call.get("id")):
        yield f"a call has type function and an id of [a-zA-Z0-9_-]{{1,64}}, not {call!r}"
    if not _is_name(function.get("name")):
        yield f"no tool name: {function.get('name')!r}"
    try:
        arguments = json.loads(function.get("arguments", ""))
    except (TypeError, ValueError):
        arguments = None
    if not isinstance(arguments, dict):
        yield f"a call's arguments are the JSON of an object, not {function.get('arguments')!r}"


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.match(value) is not None


def _is_part(part: Any) -> bool:
    match part:
        case {"type": "text", "text": str(text)}:
            return bool(text)
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return url.startswith(("https://", "data:image/"))
    return False


def _tools(body: Json) -> Iterator[str]:
    names = []
    for tool in body.get("tools") or ():
        match tool:
            case {"type": "function", "function": {"name": str(name), "parameters": {"type": "object"}}} if _NAME.match(name):
                names.append(name)
            case _:
                yield f"tools: not a function with a name and an object as parameters: {tool!r}"
    if len(set(names)) < len(names):
        yield "tools: two of one name"
    if body.get("tools") == []:
        yield "tools: an empty list"
    match body.get("tool_choice"):
        case None | "none" | "auto" | "required" if names or body.get("tool_choice") is None:
            pass
        case {"type": "function", "function": {"name": str(name)}} if name in names:
            pass
        case choice:
            yield f"tool_choice: {choice!r} needs tools it can mean"
    if body.get("stream_options") is not None and set(body["stream_options"]) - {"include_usage", "include_obfuscation"}:
        yield f"stream_options: {body['stream_options']!r}"
