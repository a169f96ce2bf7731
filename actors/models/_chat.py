"""What we send on the chat-completions wire, pure: a request as its JSON body.

OpenAI defined the shape and many servers speak it with an accent, so writing is strict. One `role: tool` message per
result, in call order, then mail as a `user` message. Ids are ours. Assistant `content` is `""` beside calls, not null
(chat templates of small servers need a string), unless the capabilities say otherwise. Arguments that the model botched go back as valid JSON which holds what
it wrote, and a tool name that no server would take back goes back in letters that it does. Thinking stays here but for the
gateways that want their field of it back. Tool results are text: what a tool attached is named in it, not shown.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from actors._outcome import Media

from ._api import Capabilities, Request
from ._blocks import Thinking, ToolCall
from ._items import AssistantItem, Item, UserItem

Message = Mapping[str, Any]

_NOT_IN_A_TOOL_NAME = re.compile(r"[^a-zA-Z0-9_-]")
BRIDGE = "Noted."  # what the assistant says between results and mail, where two turns of ours may not stand in a row
_CHARACTERS_PER_TOKEN = 4  # of English, roughly; only where a server counts nothing


def messages_of(item: Item, model: str, known: Capabilities) -> tuple[Message, ...]:
    """One item as messages for this model (`provider:model`)."""
    if isinstance(item, UserItem):
        return (_user(item, images=known.images),)
    if isinstance(item, AssistantItem):
        return (_assistant(item, model, known),)
    return tuple({"role": "tool", "tool_call_id": _id(result.call, known), "content": result.text} for result in item.results)


def transcribed(
    transcript: Sequence[Item], messages: Callable[[Item], Sequence[Message]], known: Capabilities
) -> list[Message]:
    """The messages of a transcript, with mail behind results as the model's template takes it."""
    told: list[Message] = []
    bridged = known.mail_after_results == "bridge"
    for item in transcript:
        if bridged and isinstance(item, UserItem) and told and told[-1]["role"] == "tool":
            told.append({"role": "assistant", "content": BRIDGE})
        told += messages(item)
    return told


def body_of(request: Request, model: str, messages: Sequence[Message], known: Capabilities) -> dict[str, Any]:
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
        if not (known.tool_choice if request.tool_choice != "none" else known.tool_choice_none):
            pass  # its calls are dealt with as they come
        elif request.tool_choice in ("none", "required"):
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
        "content": [*text, *({"type": "image_url", "image_url": {"url": data_url(media)}} for media in shown)],
    }


def data_url(media: Media) -> str:
    """The media as a URL."""
    return f"data:{media.mime};base64,{b64encode(media.data).decode()}"


def _assistant(item: AssistantItem, model: str, known: Capabilities) -> Message:
    message: dict[str, Any] = {"role": "assistant", "content": item.text}
    if item.calls:
        message["content"] = item.text or known.empty_content
        message["tool_calls"] = [
            {
                "id": _id(call.id, known),
                "type": "function",
                "function": {"name": tool_name(call), "arguments": arguments_text(call)},
            }
            for call in item.calls
        ]
    if known.thinking_field is not None:
        own = item.blocks if item.model == model else ()
        message[known.thinking_field] = "".join(block.text for block in own if isinstance(block, Thinking))
    return message


def _id(call: str, known: Capabilities) -> str:
    """The id on the wire: ours, or nine letters and digits made of it, always the same."""
    return sha256(call.encode()).hexdigest()[:9] if known.short_ids else call


def tool_name(call: ToolCall) -> str:
    """The tool's name in letters that every server takes back, whatever the model invented."""
    return _NOT_IN_A_TOOL_NAME.sub("_", call.tool)[:64] or "unnamed"


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments as an object, which holds what the model wrote if that was none."""
    return dict(call.arguments) if call.unparsable is None else {"unparsable": call.unparsable}


def arguments_text(call: ToolCall) -> str:
    """The arguments as the JSON of an object."""
    return msgspec.json.encode(arguments_of(call)).decode()
