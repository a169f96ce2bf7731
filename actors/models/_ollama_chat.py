"""What goes to and fro on Ollama's wire, pure: a request as messages, streamed chunks as an answer.

Calls have no ids there: results are matched by their position, and name their tool. A model cannot be told which tool to call,
or none. The SDK's record of a parameter knows a type, items, an enumeration and a description; the rest of its schema is
told in the description, or the model would never hear of it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from attrs import define, field

from ._api import Capabilities, Request, ToolSchema
from ._blocks import Block, Completion, ModelEvent, Text, TextDelta, Thinking, ThinkingDelta, ToolCall, Usage
from ._chat import arguments_of, estimated_tokens, tool_name
from ._items import AssistantItem, Item, UserItem

Json = Mapping[str, Any]

_TOLD = frozenset({"type", "items", "description", "enum"})


def messages_of(item: Item, model: str, known: Capabilities) -> tuple[Json, ...]:
    """One item as messages for this model (`provider:model`)."""
    if isinstance(item, UserItem):
        images = [media.data for media in item.media if media.mime.startswith("image/")] if known.images else []
        return ({"role": "user", "content": item.text, **({"images": images} if images else {})},)
    if isinstance(item, AssistantItem):
        return (_assistant(item, own=item.model == model),)
    return tuple(
        {"role": "tool", "tool_name": tool_name(ToolCall("", result.tool, {})), "content": result.text}
        for result in item.results
    )


def body_of(request: Request, model: str, messages: list[Json]) -> dict[str, Any]:
    """What is asked, options aside."""
    system = [{"role": "system", "content": request.instructions}] if request.instructions.strip() else []
    tools = [_tool(tool) for tool in request.tools]
    return {"model": model, "messages": [*system, *messages], "stream": True, **({"tools": tools} if tools else {})}


def estimated_input(body: Json) -> int:
    """About how many tokens a body's words are."""
    return sum(estimated_tokens(message["content"]) for message in body["messages"])


def _assistant(item: AssistantItem, *, own: bool) -> Json:
    calls = [{"function": {"name": tool_name(call), "arguments": arguments_of(call)}} for call in item.calls]
    thinking = "".join(block.text for block in item.blocks if isinstance(block, Thinking)) if own else ""
    return {
        "role": "assistant",
        "content": item.text,
        **({"thinking": thinking} if thinking else {}),
        **({"tool_calls": calls} if calls else {}),
    }


def _tool(tool: ToolSchema) -> Json:
    schema = {name: value for name, value in tool.parameters.items() if name != "properties"}
    properties = {name: _property(value) for name, value in tool.parameters.get("properties", {}).items()}
    parameters = {"type": "object", **schema, "properties": properties}
    return {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": parameters}}


def _property(schema: Json) -> Json:
    told = {name: value for name, value in schema.items() if name in _TOLD}
    if set(schema) <= _TOLD | {"title", "default"}:
        return told
    whole = {name: value for name, value in schema.items() if name != "description"}
    words = f"{schema.get('description', '')} JSON Schema: {msgspec.json.encode(whole).decode()}"
    return {**told, "description": words.strip()}


@define(eq=False)
class Accumulator:
    """Collects the chunks of one answer: `feed` it each, then take its `completion`."""

    _blocks: list[Block] = field(factory=list, init=False)
    _last: Any = field(default=None, init=False)

    @property
    def finished(self) -> bool:
        """Whether the model is done: without that there is no completion."""
        return self._last is not None

    def feed(self, chunk: Any) -> list[ModelEvent]:
        """Take a chunk, an object with the wire's names as attributes; returns what there is to read in it."""
        events: list[ModelEvent] = []
        message = chunk.message
        if message.thinking:
            self._say(Thinking(message.thinking))
            events.append(ThinkingDelta(message.thinking))
        if message.content:
            self._say(Text(message.content))
            events.append(TextDelta(message.content))
        for call in message.tool_calls or ():
            self._blocks.append(ToolCall("", call.function.name or "unnamed", dict(call.function.arguments)))
        self._last = chunk if chunk.done else self._last
        return events

    def _say(self, more: Text | Thinking) -> None:
        last = self._blocks[-1] if self._blocks else None
        if isinstance(last, type(more)):
            self._blocks[-1] = type(more)(last.text + more.text)
        else:
            self._blocks.append(more)

    def completion(self, estimate: Callable[[], int]) -> Completion:
        """The whole answer. `estimate` says about how long the request was, for a server that counted nothing."""
        called = any(isinstance(block, ToolCall) for block in self._blocks)
        stop: Literal["end", "calls", "length"] = (
            "length" if self._last.done_reason == "length" else "calls" if called else "end"
        )
        read, written = self._last.prompt_eval_count, self._last.eval_count
        if written is None:
            said = sum(estimated_tokens(block.text) for block in self._blocks if not isinstance(block, ToolCall))
            return Completion(self._blocks, Usage(1, read or estimate(), said, estimated=True), stop)
        return Completion(self._blocks, Usage(1, read or 0, written), stop)
