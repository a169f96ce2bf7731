"""What we send on OpenAI's Responses wire, pure: a request as its JSON body.

Nothing is stored there: each request carries the whole history as items, and reasoning goes back encrypted, each item of it
in front of what it led to, to the model that reasoned and to no other. A call and its output are items of their own,
held together by our id.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from actors._outcome import Media

from ._api import Capabilities, Request
from ._blocks import Block, Text, ToolCall
from ._chat import arguments_text, data_url, estimated_tokens, tool_name
from ._items import AssistantItem, Item, Result, UserItem

Json = Mapping[str, Any]


def items_of(item: Item, model: str, known: Capabilities) -> tuple[Json, ...]:
    """One item as input items for this model (`provider:model`)."""
    if isinstance(item, UserItem):
        content = _content(item.text, item.media, known, images=known.images)
        return ({"type": "message", "role": "user", "content": content},)
    if isinstance(item, AssistantItem):
        return tuple(wired for block in item.blocks for wired in _said(block, own=item.model == model))
    return tuple(_output(result, known) for result in item.results)


def body_of(request: Request, model: str, items: Callable[[Item], Sequence[Json]], known: Capabilities) -> dict[str, Any]:
    """The body of a streaming request, options aside."""
    body: dict[str, Any] = {
        "model": model,
        "input": [wired for item in request.transcript for wired in items(item)],
        "stream": True,
        "store": False,
    }
    if known.thinking:
        body["include"] = ["reasoning.encrypted_content"]
    if request.instructions.strip():
        body["instructions"] = request.instructions
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
                "strict": False,
            }
            for tool in request.tools
        ]
        if request.tool_choice in ("none", "required"):
            body["tool_choice"] = request.tool_choice
        elif request.tool_choice != "auto":
            body["tool_choice"] = {"type": "function", "name": request.tool_choice}
    return body


def estimated_input(body: Json) -> int:
    """About how many tokens a body's words are."""
    return sum(estimated_tokens(text) for item in body["input"] for text in _words(item))


def _words(item: Json) -> list[str]:
    parts = item.get("content") or item.get("output") or item.get("arguments") or ""
    return [parts] if isinstance(parts, str) else [part.get("text", "") for part in parts]


def _said(block: Block, *, own: bool) -> list[Json]:
    if isinstance(block, ToolCall):
        called = {"call_id": block.id, "name": tool_name(block), "arguments": arguments_text(block)}
        return [{"type": "function_call", **called}]
    if isinstance(block, Text):
        phase = block.opaque.get("phase") if own and isinstance(block.opaque, Mapping) else None
        said = {"type": "message", "role": "assistant", "content": block.text, **({"phase": phase} if phase else {})}
        return [said] if block.text.strip() else []
    if not own or not isinstance(block.opaque, Mapping) or not block.opaque.get("encrypted"):
        return []
    summary = [{"type": "summary_text", "text": text} for text in block.opaque.get("summary", ())]
    reasoning = {"id": block.opaque.get("id"), "summary": summary, "encrypted_content": block.opaque["encrypted"]}
    return [{"type": "reasoning", **reasoning}]


def _output(result: Result, known: Capabilities) -> Json:
    shown = _content(result.text, result.media, known, images=known.result_images)
    only_words = all(part["type"] == "input_text" for part in shown)
    return {"type": "function_call_output", "call_id": result.call, "output": result.text if only_words else shown}


def _content(text: str, media: Sequence[Media], known: Capabilities, *, images: bool) -> list[Json]:
    parts: list[Json] = [{"type": "input_text", "text": text}] if text else []
    for each in media if images else ():
        if each.mime.startswith("image/"):
            parts.append({"type": "input_image", "image_url": data_url(each), "detail": "auto"})
        elif known.documents and each.mime == "application/pdf":
            parts.append({"type": "input_file", "filename": each.name or "attached.pdf", "file_data": data_url(each)})
    return parts
