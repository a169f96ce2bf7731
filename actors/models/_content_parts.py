"""What comes back on Gemini's wire, pure: streamed responses as an answer.

Each chunk has parts: words, thoughts, whole calls. A thought signature stays on its part: parts with one are never joined
with others. A prompt that was blocked gets no candidate, only the reason.
"""

from base64 import b64encode
from collections.abc import Callable
from typing import Any, Literal

from attrs import define, field

from ._blocks import Block, Completion, ModelEvent, Text, TextDelta, Thinking, ThinkingDelta, ToolCall, Usage
from ._chat import estimated_tokens

_DONE = frozenset({"STOP", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER", "FINISH_REASON_UNSPECIFIED"})


@define(eq=False)
class _Words:
    """A run of text or thinking that is arriving."""

    block: type[Text | Thinking]
    pieces: list[str] = field(factory=list)
    signature: str | None = None


@define(eq=False)
class Accumulator:
    """Collects the chunks of one answer: `feed` it each, then take its `completion`."""

    _parts: list[_Words | ToolCall] = field(factory=list, init=False)
    _finish: str | None = field(default=None, init=False)
    _counts: Any = field(default=None, init=False)

    @property
    def finished(self) -> bool:
        """Whether the model said why it stopped: without that there is no completion."""
        return self._finish is not None

    def feed(self, chunk: Any) -> list[ModelEvent]:
        """Take a chunk, an object with the SDK's names as attributes; returns what there is to read in it."""
        self._counts = getattr(chunk, "usage_metadata", None) or self._counts
        blocked = getattr(getattr(chunk, "prompt_feedback", None), "block_reason", None)
        if blocked is not None:
            self._finish = "BLOCKED"
        events: list[ModelEvent] = []
        for candidate in (getattr(chunk, "candidates", None) or ())[:1]:
            for part in getattr(getattr(candidate, "content", None), "parts", None) or ():
                events += self._part(part)
            reason = getattr(candidate, "finish_reason", None)
            self._finish = str(getattr(reason, "value", reason)) if reason is not None else self._finish
        return events

    def completion(self, estimate: Callable[[], int]) -> Completion:
        """The whole answer. `estimate` says about how long the request was, for a server that counted nothing."""
        blocks = [_finished(part) for part in self._parts]
        return Completion(blocks, self._usage(blocks, estimate), self._stop(blocks))

    def _part(self, part: Any) -> list[ModelEvent]:
        signature = b64encode(part.thought_signature).decode() if part.thought_signature else None
        call = part.function_call
        if call is not None:
            opaque = {"signature": signature} if signature else None
            self._parts.append(ToolCall("", call.name or "unnamed", dict(call.args or {}), call.id, opaque=opaque))
            return []
        text = part.text if isinstance(part.text, str) else ""
        if not text and signature is None:
            return []
        words = self._words(Thinking if part.thought else Text, signed=signature is not None)
        words.pieces.append(text)
        words.signature = signature
        if not text:
            return []
        return [ThinkingDelta(text) if part.thought else TextDelta(text)]

    def _words(self, block: type[Text | Thinking], *, signed: bool) -> _Words:
        last = self._parts[-1] if self._parts else None
        if signed or not isinstance(last, _Words) or last.block is not block or last.signature is not None:
            last = _Words(block)
            self._parts.append(last)
        return last

    def _stop(self, blocks: list[Block]) -> Literal["end", "calls", "length", "refused"]:
        if self._finish == "MAX_TOKENS":
            return "length"
        if self._finish not in _DONE:
            return "refused"
        return "calls" if any(isinstance(block, ToolCall) for block in blocks) else "end"

    def _usage(self, blocks: list[Block], estimate: Callable[[], int]) -> Usage:
        if self._counts is None:
            said = sum(estimated_tokens(block.text) for block in blocks if not isinstance(block, ToolCall))
            return Usage(1, estimate(), said, estimated=True)
        output = self._count("candidates_token_count") + self._count("thoughts_token_count")
        return Usage(1, self._count("prompt_token_count"), output, cached_tokens=self._count("cached_content_token_count"))

    def _count(self, name: str) -> int:
        value = getattr(self._counts, name, None)
        return value if isinstance(value, int) else 0


def _finished(part: _Words | ToolCall) -> Block:
    if isinstance(part, ToolCall):
        return part
    opaque = {"signature": part.signature} if part.signature else None
    return part.block("".join(part.pieces), opaque=opaque)
