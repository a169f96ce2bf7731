"""What we send on the chat-completions wire, pure: a request as its JSON body.

OpenAI defined the shape and many servers speak it with an accent, so writing is strict. One `role: tool` message per
result, in call order, then mail as a `user` message. Ids are ours. Assistant `content` is `""` beside calls, never null
(chat templates of small servers need a string). Arguments that the model botched go back as valid JSON which holds what
it wrote, and a tool name that no server would take back goes back in letters that it does. Thinking stays here: this wire
has no place for it. Tool results are text: what a tool attached is named in it, not shown.
"""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from actors._outcome import Media

from ._api import Request
from ._blocks import ToolCall
from ._items import AssistantItem, Item, UserItem

Message = Mapping[str, Any]

_NOT_IN_A_TOOL_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_CHARACTERS_PER_TOKEN = 4  # of English, roughly; only where a server counts nothing


def messages_of(item: Item, *, images: bool) -> tuple[Message, ...]:
    """One item as messages. `images`: whether the model can look at what people attach."""
    if isinstance(item, UserItem):
        return (_user(item, images=images),)
    if isinstance(item, AssistantItem):
        return (_assistant(item),)
    return tuple({"role": "tool", "tool_call_id": result.call, "content": result.text} for result in item.results)


def body_of(request: Request, model: str, messages: Sequence[Message]) -> dict[str, Any]:
    """The body of a streaming request, options aside; `messages` are those of the transcript."""
    system = [{"role": "system", "content": request.instructions}] if request.instructions.strip() else []
    body: dict[str, Any] = {"model": model, "messages": [*system, *messages], "stream": True}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
            }
            for tool in request.tools
        ]
        if request.tool_choice in ("none", "required"):
            body["tool_choice"] = request.tool_choice
        elif request.tool_choice != "auto":  # which is what a server does when told nothing, and some know no `tool_choice`
            body["tool_choice"] = {"type": "function", "function": {"name": request.tool_choice}}
    return body


def estimated_tokens(text: str) -> int:
    """About how many tokens a text is."""
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


def estimated_input(body: Mapping[str, Any]) -> int:
    """About how many tokens a body's words are, for servers that do not say."""
    return sum(estimated_tokens(message["content"]) for message in body["messages"] if isinstance(message["content"], str))


def _user(item: UserItem, *, images: bool) -> Message:
    shown = [media for media in item.media if media.mime.startswith("image/")] if images else []
    if not shown:
        return {"role": "user", "content": item.text}
    text = [{"type": "text", "text": item.text}] if item.text else []
    return {
        "role": "user",
        "content": [*text, *({"type": "image_url", "image_url": {"url": _data_url(media)}} for media in shown)],
    }


def _data_url(media: Media) -> str:
    return f"data:{media.mime};base64,{b64encode(media.data).decode()}"


def _assistant(item: AssistantItem) -> Message:
    if not item.calls:
        return {"role": "assistant", "content": item.text}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": _name(call), "arguments": _arguments(call)}}
        for call in item.calls
    ]
    return {"role": "assistant", "content": item.text, "tool_calls": calls}


def _name(call: ToolCall) -> str:
    return _NOT_IN_A_TOOL_NAME.sub("_", call.tool)[:64] or "unnamed"


def _arguments(call: ToolCall) -> str:
    arguments = call.arguments if call.unparsable is None else {"unparsable": call.unparsable}
    return msgspec.json.encode(dict(arguments)).decode()
