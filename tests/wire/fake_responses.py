"""OpenAI's Responses: how the fake server streams, and what it refuses. It keeps nothing, as `store=false` has it."""

import json
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import count
from typing import Any

from attrs import define, field
from fake_chat import bearer, refusal
from fake_server import Answer, Json, Wire, pieces, sse

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_KNOWN = {
    "model", "input", "instructions", "stream", "store", "include", "tools", "tool_choice", "reasoning", "text", "temperature",
    "top_p", "max_output_tokens", "parallel_tool_calls", "metadata", "prompt_cache_key", "truncation",
}  # fmt: skip


def encrypted(text: str) -> str:
    """What the server locks its reasoning in."""
    return sha256(f"o {text}".encode()).hexdigest()


# ------------------------------------------------------------------ the stream
def chunks(answer: Answer, body: Json) -> Iterator[bytes]:
    """The events of an answer, in OpenAI's manner."""
    numbers = count()

    def event(kind: str, **facts: Any) -> bytes:
        return sse({"type": kind, "sequence_number": next(numbers), **facts}, kind)

    shell = {"id": "resp_1", "object": "response", "created_at": 1, "model": body["model"], "parallel_tool_calls": True}
    shell |= {"tool_choice": "auto", "tools": [], "error": None, "incomplete_details": None, "usage": None, "output": []}
    yield event("response.created", response={**shell, "status": "in_progress"})
    done = []
    for index, (item, deltas) in enumerate(_items(answer, body)):
        yield event("response.output_item.added", output_index=index, item=_begun(item))
        for kind, piece in deltas:
            yield event(kind, output_index=index, item_id=item["id"], delta=piece, **_where(kind))
        yield event("response.output_item.done", output_index=index, item=item)
        done.append(item)
    tokens = {"input_tokens": 10 * len(body["input"]), "output_tokens": 7, "total_tokens": 10 * len(body["input"]) + 7}
    usage = {**tokens, "input_tokens_details": {"cached_tokens": 4}, "output_tokens_details": {"reasoning_tokens": 0}}
    end = "incomplete" if answer.finish else "completed"
    why = {"incomplete_details": {"reason": answer.finish}} if answer.finish else {}
    counted = {"usage": usage} if answer.usage else {}
    yield event(f"response.{end}", response={**shell, "status": end, "output": done, **why, **counted})


def _begun(item: Json) -> Json:
    return {**item, "status": "in_progress", **{name: [] for name in ("content", "summary") if name in item}}


def _where(kind: str) -> Json:
    if kind == "response.reasoning_summary_text.delta":
        return {"summary_index": 0}
    return {"content_index": 0, "logprobs": []} if kind == "response.output_text.delta" else {}


def _items(answer: Answer, body: Json) -> Iterator[tuple[dict[str, Any], list[tuple[str, str]]]]:
    number = len(body["input"])
    if answer.thinking:
        summary = [{"type": "summary_text", "text": answer.thinking}]
        locked = encrypted(answer.thinking) if "reasoning.encrypted_content" in body.get("include", ()) else None
        told = [("response.reasoning_summary_text.delta", piece) for piece in pieces(answer.thinking)]
        yield {"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": locked}, told
    if answer.text:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        told = [("response.output_text.delta", piece) for piece in pieces(answer.text)]
        yield {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": content}, told
    for index, (name, arguments) in enumerate(answer.calls):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        told = [("response.function_call_arguments.delta", piece) for piece in pieces(text)]
        facts = {"call_id": f"call_{number}_{index}", "name": name, "arguments": text, "status": "completed"}
        yield {"type": "function_call", "id": f"fc_{number}_{index}", **facts}, told


# ------------------------------------------------------------------ the rules
def broken_rule(body: Any) -> str | None:
    """The first rule that a request's body breaks, with the place; None if a strict provider would take it."""
    return next(_broken(body), None)


def _broken(body: Any) -> Iterator[str]:
    yield from (f"Unknown parameter: {name!r}" for name in sorted(set(body) - _KNOWN))
    if body.get("stream") is not True or body.get("store") is not False or not body.get("model"):
        yield "stream, store, model: this server streams, keeps nothing, and wants to know what"
    if "instructions" in body and not body["instructions"].strip():
        yield "instructions: empty"
    items = body.get("input")
    if not isinstance(items, list) or not items:
        yield "input: at least one item is required"
        return
    yield from _Reader().read(items)
    yield from _tools(body)


@define(eq=False)
class _Reader:
    """Reads a history from the front, with the calls that still want their output."""

    open: list[str] = field(factory=list)
    used: set[str] = field(factory=set)
    reasoning: bool = False  # the item before was one, and wants to be followed by what it led to

    def read(self, items: Sequence[Json]) -> Iterator[str]:
        for number, item in enumerate(items):
            kind, theirs = item.get("type"), _of_the_model(item)
            if self.reasoning and not theirs:
                yield f"input[{number}]: Item of type 'reasoning' was provided without its required following item."
            if self.open and kind not in {"function_call", "function_call_output"}:
                yield f"No tool output found for function call {self.open[0]}."
            yield from (f"input[{number}]: {rule}" for rule in self._item(item))
            self.reasoning = kind == "reasoning"
        if self.open:
            yield f"No tool output found for function call {self.open[0]}."
        if _of_the_model(items[-1]):
            yield "input: there is nothing to answer behind the model's own words"

    def _item(self, item: Json) -> Iterator[str]:
        match item:
            case {"type": "message", "role": "user", "content": [_, *_] as parts}:
                yield from (f"not a part: {part!r}" for part in parts if not _is_part(part))
            case {"type": "message", "role": "assistant", "content": str(text)}:
                if not text.strip():
                    yield "an empty message"
            case {"type": "reasoning", "id": str(), "summary": list(parts), "encrypted_content": str(locked)}:
                if locked != encrypted("\n\n".join(part["text"] for part in parts)):
                    yield "The encrypted content could not be verified."
            case {"type": "function_call", "call_id": str(name), "name": str(tool), "arguments": str(text)}:
                yield from self._call(name, tool, text)
            case {"type": "function_call_output", "call_id": str(name), "output": str() | [_, *_] as output}:
                yield from self._output(name, output)
            case _:
                yield f"Invalid value: {item!r}"

    def _call(self, name: str, tool: str, text: str) -> Iterator[str]:
        if not _NAME.match(name) or not _NAME.match(tool):
            yield f"Invalid 'call_id' or 'name': {name!r}, {tool!r}"
        if name in self.used:
            yield f"Duplicate call_id: {name}"
        self.used.add(name)
        self.open.append(name)
        try:
            fine = isinstance(json.loads(text), dict)
        except ValueError:
            fine = False
        if not fine:
            yield f"Invalid 'arguments': {text!r}"

    def _output(self, name: str, output: Any) -> Iterator[str]:
        if name not in self.open:
            yield f"No tool call found for function call output with call_id {name}."
            return
        self.open.remove(name)
        if isinstance(output, list):
            yield from (f"not a part: {part!r}" for part in output if not _is_part(part))


def _of_the_model(item: Json) -> bool:
    return item.get("type") in {"reasoning", "function_call"} or item.get("role") == "assistant"


def _is_part(part: Any) -> bool:
    match part:
        case {"type": "input_text", "text": str(text)}:
            return bool(text)
        case {"type": "input_image", "image_url": str(url)}:
            return url.startswith(("https://", "data:image/"))
        case {"type": "input_file", "filename": str(), "file_data": str(url)}:
            return url.startswith("data:application/pdf;base64,")
    return False


def _tools(body: Json) -> Iterator[str]:
    names = []
    for tool in body.get("tools", ()):
        match tool:
            case {"type": "function", "name": str(name), "parameters": {"type": "object"}} if _NAME.match(name):
                names.append(name)
            case _:
                yield f"tools: not a function: {tool!r}"
    if len(set(names)) < len(names) or body.get("tools") == []:
        yield "tools: none, or two of one name"
    match body.get("tool_choice"):
        case None:
            pass
        case "none" | "auto" | "required" if names:
            pass
        case {"type": "function", "name": name} if name in names:
            pass
        case choice:
            yield f"tool_choice: {choice!r} not found in 'tools'"


RESPONSES = Wire(
    "/v1/responses", broken_rule, chunks, refusal, bearer, lambda message: sse(refusal(500, message, None), "error"), base="/v1"
)
