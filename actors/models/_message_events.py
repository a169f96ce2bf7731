"""What comes back on Anthropic's wire, pure: streamed events as an answer.

An answer is a list of blocks, each begun, filled by deltas and stopped, told apart by their index. What fills a block:

| block | deltas | becomes |
|---|---|---|
| text | text | words |
| thinking | thinking, then its signature | thinking, the signature kept to be sent back |
| redacted_thinking | none | thinking without words, its data kept |
| tool_use | JSON in pieces | a call |
| of a tool of the server's own | - | nothing: the session declares none |

The reason for which the model stopped comes with the last count of tokens, behind all blocks.
"""

from collections.abc import Callable
from typing import Any, Literal

import msgspec
from attrs import define, field

from ._blocks import Block, Completion, ModelEvent, Text, TextDelta, Thinking, ThinkingDelta, ToolCall, Usage
from ._chat import estimated_tokens
from ._sdk import text_in

_STOPS: dict[str, Literal["end", "calls", "length", "refused"]] = {
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


@define(eq=False)
class _Block:
    """A block that is arriving; `begun` is what it began with."""

    kind: str
    begun: Any
    pieces: list[str] = field(factory=list)
    signature: str = ""

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def finished(self) -> list[Block]:
        if self.kind == "text":
            return [Text(self.text)] if self.pieces else []
        if self.kind == "thinking":
            return [Thinking(self.text, {"signature": self.signature})]
        if self.kind == "redacted_thinking":
            return [Thinking("", {"redacted": text_in(self.begun, "data")})]
        if self.kind == "tool_use":
            return [ToolCall.from_text(text_in(self.begun, "name") or "unnamed", self.text, text_in(self.begun, "id") or None)]
        return []


class Accumulator:
    """Collects the events of one answer: `feed` it each, then take its `completion`."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._stop: str | None = None
        self._counts: dict[str, int] = {}

    @property
    def finished(self) -> bool:
        """Whether the model said why it stopped: without that there is no completion."""
        return self._stop is not None

    def feed(self, event: Any) -> list[ModelEvent]:
        """Take an event, an object with the wire's names as attributes; returns what there is to read in it."""
        kind = getattr(event, "type", None)
        if kind == "content_block_start":
            return self._begin(event.index, event.content_block)
        if kind == "content_block_delta":
            return self._fill(event.index, event.delta)
        if kind == "message_start":
            self._count(getattr(event.message, "usage", None))
        elif kind == "message_delta":
            self._stop = getattr(event.delta, "stop_reason", None) or self._stop
            self._count(getattr(event, "usage", None))
        return []

    def completion(self, estimate: Callable[[], int]) -> Completion:
        """The whole answer. `estimate` says about how long the request was, for a server that counted nothing."""
        blocks = [block for _, arriving in sorted(self._blocks.items()) for block in arriving.finished()]
        called = any(isinstance(block, ToolCall) for block in blocks)
        return Completion(blocks, self._usage(estimate), _STOPS.get(self._stop or "", "calls" if called else "end"))

    def _begin(self, index: int, block: Any) -> list[ModelEvent]:
        arriving = self._blocks[index] = _Block(text_in(block, "type"), block)
        whole = getattr(block, "input", None)
        if isinstance(whole, dict) and whole:  # a server that sends the arguments with the beginning
            arriving.pieces.append(msgspec.json.encode(whole).decode())
        return self._words(arriving, text_in(block, arriving.kind))

    def _fill(self, index: int, delta: Any) -> list[ModelEvent]:
        arriving = self._blocks.get(index)
        if arriving is None:
            return []
        arriving.signature += text_in(delta, "signature")
        if arriving.kind == "tool_use":
            arriving.pieces.append(text_in(delta, "partial_json"))
            return []
        return self._words(arriving, text_in(delta, arriving.kind))

    def _words(self, arriving: _Block, text: str) -> list[ModelEvent]:
        if not text or arriving.kind not in {"text", "thinking"}:
            return []
        arriving.pieces.append(text)
        return [TextDelta(text) if arriving.kind == "text" else ThinkingDelta(text)]

    def _count(self, usage: Any) -> None:
        """Counts are cumulative: what comes later replaces what came before."""
        for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"):
            value = getattr(usage, name, None)
            if isinstance(value, int):
                self._counts[name] = value

    def _usage(self, estimate: Callable[[], int]) -> Usage:
        counts = dict(self._counts)
        if "output_tokens" not in counts or "input_tokens" not in counts:
            said = sum(estimated_tokens(block.text) for block in self._blocks.values())
            read = counts["input_tokens"] if "input_tokens" in counts else estimate()
            return Usage(1, read, counts.get("output_tokens", said), estimated=True)
        output = counts.pop("output_tokens")
        return Usage(1, sum(counts.values()), output, cached_tokens=counts.get("cache_read_input_tokens", 0))
