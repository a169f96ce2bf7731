"""What comes back on the chat-completions wire, pure: streamed chunks as an answer.

Servers speak this wire with an accent, so reading is lenient. A tool call arrives in deltas that share an `index`, or
whole in one chunk, and servers repeat or leave out `index`, `id` and `name`. To which call a delta belongs:

| the delta has | it goes to |
|---|---|
| an index not seen yet | a new call |
| no name | the call with its index and id, else the last one with its index, else the last one |
| a name, and another id than that call | a new call (servers that number every call 0) |
| a name, while that call's arguments are whole | a new call (servers without ids) |
| a name otherwise | that call (servers that repeat it) |

The last chunk that counts is the one with a `finish_reason`; usage may follow it. A stream that ends without one was cut,
and there is no completion.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from attrs import define, field

from ._blocks import Block, Completion, ModelEvent, Text, TextDelta, Thinking, ThinkingDelta, ToolCall, Usage, json_object
from ._chat import estimated_tokens
from ._sdk import text_in

_STOPS: dict[str, Literal["end", "calls", "length", "refused"]] = {"length": "length", "content_filter": "refused"}


@define(eq=False)
class _Words:
    """A run of text or thinking that is arriving."""

    block: type[Text | Thinking]
    pieces: list[str] = field(factory=list)

    def finished(self) -> Block:
        return self.block("".join(self.pieces))


@define(eq=False)
class _Call:
    """A tool call that is arriving."""

    index: int | None
    id: str | None = None
    name: str = ""
    arguments: list[str] = field(factory=list)

    def take(self, id: str | None, name: str, arguments: str) -> None:  # the wire's word
        self.id = self.id or id
        if name != self.name and not any(self.arguments):
            self.name += name  # a name may come in pieces, and be repeated behind them
        self.arguments.append(arguments)

    def whole(self) -> bool:
        text = "".join(self.arguments)
        return bool(text) and json_object(text) is not None

    def finished(self) -> Block:
        return ToolCall.from_text(self.name or "unnamed", "".join(self.arguments), self.id)


class Accumulator:
    """Collects the chunks of one answer: `feed` it each, then take its `completion`."""

    def __init__(self) -> None:
        self._parts: list[_Words | _Call] = []
        self._finish: str | None = None
        self._refused = False
        self._usage: Usage | None = None

    @property
    def finished(self) -> bool:
        """Whether the model said why it stopped: without that there is no completion."""
        return self._finish is not None

    def feed(self, chunk: Any) -> list[ModelEvent]:
        """Take a chunk, an object with the wire's names as attributes; returns what there is to read in it."""
        usage = getattr(chunk, "usage", None)
        if usage is not None:
            self._usage = Usage(1, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))
        # With the option `n` there are more answers than this one; nobody reads them.
        ours = [choice for choice in getattr(chunk, "choices", None) or () if not getattr(choice, "index", 0)]
        return [event for choice in ours for event in self._choice(choice)]

    def completion(self, estimate: Callable[[], int]) -> Completion:
        """The whole answer. `estimate` says about how long the request was, for a server that counted nothing."""
        blocks = tuple(part.finished() for part in self._parts)
        called = any(isinstance(block, ToolCall) for block in blocks)
        stop = "refused" if self._refused else _STOPS.get(self._finish or "", "calls" if called else "end")
        return Completion(blocks, self._usage or _estimate(estimate(), self._parts), stop)

    def _choice(self, choice: Any) -> list[ModelEvent]:
        self._finish = getattr(choice, "finish_reason", None) or self._finish
        delta = getattr(choice, "delta", None)
        events: list[ModelEvent] = []
        thought, said = _parted(getattr(delta, "content", None))
        thinking = text_in(delta, "reasoning_content") or text_in(delta, "reasoning") or thought
        if thinking:
            self._words(Thinking).append(thinking)
            events.append(ThinkingDelta(thinking))
        refusal = text_in(delta, "refusal")
        self._refused = self._refused or bool(refusal)
        text = said + refusal
        if text:
            self._words(Text).append(text)
            events.append(TextDelta(text))
        for call in getattr(delta, "tool_calls", None) or ():
            self._call(call)
        return events

    def _words(self, block: type[Text | Thinking]) -> list[str]:
        last = self._parts[-1] if self._parts else None
        if not isinstance(last, _Words) or last.block is not block:
            last = _Words(block)
            self._parts.append(last)
        return last.pieces

    def _call(self, delta: Any) -> None:
        index, id, function = getattr(delta, "index", None), text_in(delta, "id"), getattr(delta, "function", None)
        name, arguments = text_in(function, "name"), text_in(function, "arguments")
        whole = getattr(function, "arguments", None)
        if isinstance(whole, dict):  # a server that does not write JSON into JSON
            arguments = msgspec.json.encode(whole).decode()
        found = self._found(index, id)
        if found is None or _begins(found, id, name):
            found = _Call(index)
            self._parts.append(found)
        found.take(id or None, name, arguments)

    def _found(self, index: int | None, id: str) -> _Call | None:
        calls = [part for part in self._parts if isinstance(part, _Call) and (index is None or part.index == index)]
        same = [call for call in calls if id and call.id == id]
        found = same or calls
        return found[-1] if found else None


def _begins(last: _Call, id: str, name: str) -> bool:
    """Whether a delta that could go on with `last` begins another call instead."""
    if not name:
        return False
    if id and last.id:
        return id != last.id
    if last.index is None and not id and last.name not in ("", name):
        return True
    return last.whole()


def _estimate(input_tokens: int, parts: list[_Words | _Call]) -> Usage:
    said = "".join(piece for part in parts for piece in (part.pieces if isinstance(part, _Words) else part.arguments))
    return Usage(1, input_tokens, estimated_tokens(said), estimated=True)


def _parted(content: Any) -> tuple[str, str]:
    """Thinking and words of a content, which is a text, or (Mistral's) a list of parts of either kind."""
    if not isinstance(content, list):
        return "", content if isinstance(content, str) else ""
    thought = said = ""
    for part in content:
        facts = part if isinstance(part, Mapping) else vars(part)
        if facts.get("type") == "thinking":
            thought += _parted(facts.get("thinking"))[1]
        else:
            said += str(facts.get("text") or "")
    return thought, said


def _count(usage: Any, name: str) -> int:
    value = getattr(usage, name, None)
    return value if isinstance(value, int) else 0
