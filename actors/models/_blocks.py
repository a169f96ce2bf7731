"""What a model's answer is made of: text, thinking, tool calls, usage. Provider-neutral, frozen."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from attrs import field, frozen


@frozen
class Text:
    """Words of the model; `opaque` is what the provider wants back beside them."""

    text: str
    opaque: Any = field(default=None, kw_only=True)


@frozen
class Thinking:
    """Reasoning the provider let us see; `opaque` is what it wants back unchanged (a signature, an encrypted part)."""

    text: str
    opaque: Any = None


@frozen
class ToolCall:
    """A tool call the model asked for.

    `id` is ours, unique in the session's history (`[a-zA-Z0-9_-]{1,64}`); `provider_id` is the provider's, kept beside it.
    `unparsable` holds the text of arguments that were no JSON object; `arguments` is then empty. `opaque` as in `Thinking`.
    """

    id: str
    tool: str
    arguments: Mapping[str, Any]
    provider_id: str | None = None
    unparsable: str | None = field(default=None, kw_only=True)
    opaque: Any = field(default=None, kw_only=True)

    @classmethod
    def from_text(cls, tool: str, arguments: str, provider_id: str | None = None) -> "ToolCall":
        """A call as adapters make it from what a provider sent; `id` is left to the session."""
        parsed = json_object(arguments)
        if parsed is None:
            return cls("", tool, {}, provider_id, unparsable=arguments)
        return cls("", tool, parsed, provider_id)


def json_object(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is, `{}` for a blank one (servers write that for no arguments), None for anything else."""
    if not text.strip():
        return {}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return None
    return value if isinstance(value, dict) else None


Block = Text | Thinking | ToolCall


def as_blocks(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """A converter; mypy cannot see through a bare `tuple`."""
    return tuple(blocks)


@frozen
class Usage:
    """What one or more requests cost; `estimated` where a completion was cut and the provider never said.

    `cached_tokens` are those of the `input_tokens` that the provider had read before.
    """

    requests: int = 1
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    cost: float | None = None
    cached_tokens: int = field(default=0, kw_only=True)

    @property
    def tokens(self) -> int:
        """In and out."""
        return self.input_tokens + self.output_tokens

    def plus(self, other: "Usage") -> "Usage":
        """Both together; the cost of one whose price is not known counts nothing."""
        cost = self.cost if other.cost is None else other.cost + (self.cost or 0)
        return Usage(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.estimated or other.estimated,
            cost,
            cached_tokens=self.cached_tokens + other.cached_tokens,
        )


@frozen
class Completion:
    """A whole answer: its blocks in order, its usage, and why it ended."""

    blocks: tuple[Block, ...] = field(converter=as_blocks)
    usage: Usage
    stop: Literal["end", "calls", "length", "refused"] = "end"


@frozen
class TextDelta:
    """The next piece of text of the answer in progress."""

    text: str


@frozen
class ThinkingDelta:
    """The next piece of thinking of the answer in progress."""

    text: str


ModelEvent = TextDelta | ThinkingDelta | Completion
