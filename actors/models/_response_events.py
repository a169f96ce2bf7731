"""What comes back on OpenAI's Responses wire, pure: streamed events as an answer.

An answer is a list of items, each complete when it is done: a message (words or a refusal), reasoning (a summary to read, and
what is encrypted to be sent back), a function call. Deltas are for reading along. The response itself ends completed,
incomplete (and why), or failed.
"""

from collections.abc import Callable
from typing import Any, Literal

from attrs import define, field

from actors._errors import ModelError

from ._blocks import Block, Completion, ModelEvent, Text, TextDelta, Thinking, ThinkingDelta, ToolCall, Usage
from ._chat import estimated_tokens

_SPOKEN = frozenset({"response.output_text.delta", "response.refusal.delta"})
_THOUGHT = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_ENDS = frozenset({"response.completed", "response.incomplete"})
_WORTH_ANOTHER_TRY = frozenset({"server_error", "rate_limit_exceeded", "vector_store_timeout", None})


@define(eq=False)
class Accumulator:
    """Collects the events of one answer: `feed` it each, then take its `completion`."""

    model: str
    _items: dict[int, list[Block]] = field(factory=dict, init=False)
    _response: Any = field(default=None, init=False)
    _refused: bool = field(default=False, init=False)

    @property
    def finished(self) -> bool:
        """Whether the response came to its end: without that there is no completion."""
        return self._response is not None

    def feed(self, event: Any) -> list[ModelEvent]:
        """Take an event, an object with the wire's names as attributes; returns what there is to read in it.

        Raises:
            ModelError: The server says that there will be no answer.
        """
        kind = getattr(event, "type", None)
        if kind in _SPOKEN and event.delta:
            self._refused = self._refused or kind == "response.refusal.delta"
            return [TextDelta(event.delta)]
        if kind in _THOUGHT and event.delta:
            return [ThinkingDelta(event.delta)]
        if kind == "response.output_item.done":
            self._items[event.output_index] = _blocks(event.item)
        elif kind in _ENDS:
            self._response = event.response
            for index, item in enumerate(getattr(event.response, "output", None) or ()):
                self._items.setdefault(index, _blocks(item))
        elif kind == "response.failed":
            error = getattr(event.response, "error", None)
            code = getattr(error, "code", None)
            reason = getattr(error, "message", None) or "the response failed"
            raise ModelError(model=self.model, reason=reason, retryable=code in _WORTH_ANOTHER_TRY)
        return []

    def completion(self, estimate: Callable[[], int]) -> Completion:
        """The whole answer. `estimate` says about how long the request was, for a server that counted nothing."""
        blocks = [block for _, item in sorted(self._items.items()) for block in item]
        return Completion(blocks, self._usage(blocks, estimate), self._stop(blocks))

    def _stop(self, blocks: list[Block]) -> Literal["end", "calls", "length", "refused"]:
        reason = getattr(getattr(self._response, "incomplete_details", None), "reason", None)
        if self._refused or reason == "content_filter":
            return "refused"
        if reason == "max_output_tokens":
            return "length"
        return "calls" if any(isinstance(block, ToolCall) for block in blocks) else "end"

    def _usage(self, blocks: list[Block], estimate: Callable[[], int]) -> Usage:
        usage = getattr(self._response, "usage", None)
        if usage is None:
            said = sum(estimated_tokens(block.text) for block in blocks if not isinstance(block, ToolCall))
            return Usage(1, estimate(), said, estimated=True)
        cached = getattr(getattr(usage, "input_tokens_details", None), "cached_tokens", None) or 0
        return Usage(1, usage.input_tokens, usage.output_tokens, cached_tokens=cached)


def _blocks(item: Any) -> list[Block]:
    kind = getattr(item, "type", None)
    if kind == "message":
        text = "".join(_text(part, "text") or _text(part, "refusal") for part in item.content)
        phase = _text(item, "phase")
        return [Text(text, opaque={"phase": phase} if phase else None)] if text else []
    if kind == "function_call":
        return [ToolCall.from_text(item.name, item.arguments, item.call_id)]
    if kind == "reasoning":
        summary = [_text(part, "text") for part in item.summary]
        words = summary or [_text(part, "text") for part in getattr(item, "content", None) or ()]
        opaque = {"id": item.id, "summary": summary, "encrypted": getattr(item, "encrypted_content", None)}
        return [Thinking("\n\n".join(words), opaque)]
    return []


def _text(source: Any, name: str) -> str:
    value = getattr(source, name, None)
    return value if isinstance(value, str) else ""
