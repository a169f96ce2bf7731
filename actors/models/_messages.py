"""What we send on Anthropic's wire, pure: a request as its JSON body.

Turns alternate, so what we say between two answers is one user message: the results first, one block per call, then
mail. No block may be blank. Thinking goes back as it came, with its signature, to the model that thought it, and to no
other: a signature of somebody else is refused.

Two rules of the server bind the whole request. Where thinking is on, the answer whose calls were just answered begins with
thinking: a history that another model wrote has none there, so it is asked without. And a history with calls wants tools
declared: an agent that has lost its own declares the names that were called, and is told to call none.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from actors._outcome import Media, Outcome

from ._api import Capabilities, Request
from ._blocks import Block, Text, Thinking, ToolCall
from ._chat import arguments_of, estimated_tokens, tool_name
from ._items import AssistantItem, Item, Result, UserItem

Json = Mapping[str, Any]

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_FINE = frozenset({"completed", "deferred"})
_CHOICES: Mapping[str, Json] = {"none": {"type": "none"}, "required": {"type": "any"}}


def blocks_of(item: Item, model: str, known: Capabilities) -> tuple[Json, ...]:
    """One item as content blocks for this model (`provider:model`)."""
    if isinstance(item, UserItem):
        return (*_text(item.text), *_shown(item.media, known, images=known.images))
    if isinstance(item, AssistantItem):
        return tuple(wired for block in item.blocks for wired in _said(block, own=item.model == model))
    return tuple(_result(result, known) for result in item.results)


def body_of(request: Request, model: str, blocks: Callable[[Item], Sequence[Json]], known: Capabilities) -> dict[str, Any]:
    """The body of a streaming request, options aside."""
    body: dict[str, Any] = {"model": model, "messages": _messages(request.transcript, blocks), "stream": True}
    if request.instructions.strip():
        body["system"] = request.instructions
    tools = [_tool(tool.name, tool.description, tool.parameters) for tool in request.tools]
    lost = {} if tools else {tool_name(call): None for item in request.transcript for call in _calls(item)}
    if tools or lost:
        body["tools"] = tools or [_tool(name, "", {"type": "object"}) for name in lost]
        choice = "none" if lost else request.tool_choice
        if choice != "auto" and (known.tool_choice_none if choice == "none" else known.tool_choice):
            body["tool_choice"] = _CHOICES.get(choice, {"type": "tool", "name": choice})
    return body


def must_not_think(body: Json, thinking: Any) -> bool:
    """Whether the calls just answered were made without thinking, so that the server would refuse to think on."""
    if not isinstance(thinking, Mapping) or thinking.get("type") != "enabled" or len(body["messages"]) < 2:
        return False
    answer, ours = body["messages"][-2:]
    answered = any(block["type"] == "tool_result" for block in ours["content"])
    return answered and answer["content"][0]["type"] not in {"thinking", "redacted_thinking"}


def estimated_input(body: Json) -> int:
    """About how many tokens a body's words are."""
    blocks = [block for message in body["messages"] for block in message["content"]]
    return sum(estimated_tokens(block["text"]) for block in blocks if block["type"] == "text")


def _messages(transcript: Sequence[Item], blocks: Callable[[Item], Sequence[Json]]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for item in transcript:
        role = "assistant" if isinstance(item, AssistantItem) else "user"
        if told and told[-1]["role"] == role:
            told[-1]["content"] += blocks(item)
        else:
            told.append({"role": role, "content": [*blocks(item)]})
    return told


def _calls(item: Item) -> Sequence[ToolCall]:
    return item.calls if isinstance(item, AssistantItem) else ()


def _tool(name: str, description: str, parameters: Json) -> dict[str, Any]:
    told = {"description": description} if description.strip() else {}
    return {"name": name, **told, "input_schema": dict(parameters)}


def _text(text: str) -> list[Json]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _said(block: Block, *, own: bool) -> list[Json]:
    if isinstance(block, Text):
        return _text(block.text)
    if isinstance(block, ToolCall):
        return [{"type": "tool_use", "id": block.id, "name": tool_name(block), "input": arguments_of(block)}]
    return _thought(block) if own and isinstance(block.opaque, Mapping) else []


def _thought(block: Thinking) -> list[Json]:
    if "redacted" in block.opaque:
        return [{"type": "redacted_thinking", "data": block.opaque["redacted"]}]
    return [{"type": "thinking", "thinking": block.text, "signature": block.opaque.get("signature", "")}]


def _result(result: Result, known: Capabilities) -> Json:
    bad = isinstance(result.outcome, Outcome) and result.outcome.status not in _FINE
    content = [*_text(result.text), *_shown(result.media, known, images=known.result_images and not bad)]
    told: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call}
    return {**told, **({"content": content} if content else {}), **({"is_error": True} if bad else {})}


def _shown(media: Sequence[Media], known: Capabilities, *, images: bool) -> list[Json]:
    """What the model can look at; the text names all of it."""
    shown: list[Json] = []
    for each in media:
        if images and (each.mime in _IMAGES or (known.documents and each.mime == "application/pdf")):
            source = {"type": "base64", "media_type": each.mime, "data": b64encode(each.data).decode()}
            shown.append({"type": "image" if each.mime in _IMAGES else "document", "source": source})
    return shown
