"""What an MCP server answered to a call, as the value of an outcome."""

import base64
import json
from typing import Any

from actors._errors import ToolError
from actors._outcome import Media


def value_of(result: Any) -> Any:
    """Text, JSON, `Media`, or a list of these, in the server's order; None where it said nothing.

    Structured content stands after the text that comes with it; where one of the two only repeats the other, it is told once.

    Raises:
        ToolError: The server says that the call failed; the text is its own.
    """
    blocks = [_block(each) for each in result.content]
    if result.is_error:
        raise ToolError("\n".join(each for each in blocks if isinstance(each, str)) or "the server gave no reason")
    structured = result.structured_content
    if structured is not None:
        blocks = _with(structured, blocks)
    return blocks[0] if len(blocks) == 1 else blocks or None


def _with(structured: Any, blocks: list[Any]) -> list[Any]:
    if isinstance(structured, dict) and set(structured) == {"result"} and blocks:
        return blocks  # the SDK's wrapper around what is no object, which the blocks tell
    told = [index for index, each in enumerate(blocks) if isinstance(each, str) and _is_json_of(each, structured)]
    if not told:
        return [*blocks, structured]
    return [structured if index == told[0] else each for index, each in enumerate(blocks) if index not in told[1:]]


def _is_json_of(text: str, value: Any) -> bool:
    try:
        return bool(json.loads(text) == value)
    except ValueError:
        return False


def _block(block: Any) -> Any:
    kind = block.type
    if kind == "text":
        return block.text
    if kind in {"image", "audio"}:
        return Media(block.mime_type, base64.b64decode(block.data))
    if kind == "resource":
        held = block.resource
        if getattr(held, "text", None) is not None:
            return held.text
        return Media(held.mime_type or "application/octet-stream", base64.b64decode(held.blob), str(held.uri))
    if kind == "resource_link":
        return f"[{block.title or block.name}]({block.uri})"
    return f"[{kind}: a kind of content this version does not know]"
