"""What we send on Gemini's wire, pure: a request as contents and a configuration.

As many function responses as there were calls, in a content of the user right behind them; mail in one of its own. What the
model thought stays with it, but each part that came with a thought signature goes back with it, to the model that signed.
Newer models refuse an answer whose first call is unsigned: where somebody else made it, its place is held by a word that
Google documents for that purpose.
"""

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from actors._outcome import Media, Outcome

from ._api import Capabilities, Request
from ._blocks import Block, Thinking, ToolCall
from ._chat import arguments_of, estimated_tokens, tool_name
from ._items import AssistantItem, Item, Result, UserItem

Json = Mapping[str, Any]

UNSIGNED = b"skip_thought_signature_validator"
_FINE = frozenset({"completed", "deferred"})
_MODES: Mapping[str, Json] = {"none": {"mode": "NONE"}, "required": {"mode": "ANY"}}


def content_of(item: Item, model: str, known: Capabilities) -> Json:
    """One item as a content for this model (`provider:model`)."""
    if isinstance(item, UserItem):
        return {"role": "user", "parts": [*_text(item.text), *_shown(item.media, known, images=known.images)]}
    if isinstance(item, AssistantItem):
        return {"role": "model", "parts": _said(item, known, own=item.model == model)}
    return {"role": "user", "parts": [_response(result, known) for result in item.results]}


def body_of(request: Request, model: str, content: Callable[[Item], Json], known: Capabilities) -> dict[str, Any]:
    """What is asked, options aside: the model, the contents, and the configuration as far as the session makes it."""
    config: dict[str, Any] = {"automatic_function_calling": {"disable": True}}
    if request.instructions.strip():
        config["system_instruction"] = request.instructions
    if request.tools:
        declared = [
            {"name": tool.name, "description": tool.description, "parameters_json_schema": dict(tool.parameters)}
            for tool in request.tools
        ]
        config["tools"] = [{"function_declarations": declared}]
        choice = request.tool_choice
        if choice != "auto" and (known.tool_choice_none if choice == "none" else known.tool_choice):
            mode = _MODES.get(choice, {"mode": "ANY", "allowed_function_names": [choice]})
            config["tool_config"] = {"function_calling_config": dict(mode)}
    return {"model": model, "contents": [content(item) for item in request.transcript], "config": config}


def estimated_input(body: Json) -> int:
    """About how many tokens a body's words are."""
    parts = [part for content in body["contents"] for part in content["parts"]]
    return sum(estimated_tokens(part["text"]) for part in parts if "text" in part)


def _text(text: str) -> list[Json]:
    return [{"text": text}] if text.strip() else []


def _said(item: AssistantItem, known: Capabilities, *, own: bool) -> list[Json]:
    parts = [part for block in item.blocks if (part := _part(block, own=own)) is not None]
    first = next((part for part in parts if "function_call" in part), None)
    if known.signed_calls and first is not None and "thought_signature" not in first:
        first["thought_signature"] = UNSIGNED
    return list(parts)


def _part(block: Block, *, own: bool) -> dict[str, Any] | None:
    signature = block.opaque.get("signature") if own and isinstance(block.opaque, Mapping) else None
    signed = {"thought_signature": b64decode(signature)} if signature else {}
    if isinstance(block, ToolCall):
        return {"function_call": {"id": block.id, "name": _name(block.tool), "args": arguments_of(block)}, **signed}
    if isinstance(block, Thinking):
        return {"text": block.text, "thought": True, **signed} if signed else None
    return {"text": block.text, **signed} if block.text.strip() or signed else None


def _response(result: Result, known: Capabilities) -> Json:
    bad = isinstance(result.outcome, Outcome) and result.outcome.status not in _FINE
    told: dict[str, Any] = {
        "id": result.call,
        "name": _name(result.tool),
        "response": {"error" if bad else "output": result.text},
    }
    shown = _shown(result.media, known, images=known.result_images)
    return {"function_response": {**told, **({"parts": shown} if shown else {})}}


def _name(tool: str) -> str:
    name = tool_name(ToolCall("", tool, {}))
    return name if name[0].isalpha() else f"_{name}"[:64]  # Google's names begin with a letter or an underscore


def _shown(media: Sequence[Media], known: Capabilities, *, images: bool) -> list[Json]:
    readable = [
        each for each in media if each.mime.startswith("image/") or (known.documents and each.mime == "application/pdf")
    ]
    return [{"inline_data": {"mime_type": each.mime, "data": each.data}} for each in readable] if images else []
