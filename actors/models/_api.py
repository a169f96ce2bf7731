"""What a model is to this project: a name, its capabilities, and a stream of events for a request."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, Protocol

from attrs import field, frozen

from ._blocks import ModelEvent
from ._items import Item
from ._past import whole


@frozen
class ToolSchema:
    """A tool as a model is told of it; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@frozen
class Request:
    """One request, provider-neutral. `tool_choice` may also be the name of a tool; `options` pass through (temperature, ...).

    `transcript` is a tuple, made when it is looked at first.
    """

    instructions: str
    _items: Sequence[Item] = field(alias="transcript", eq=whole)
    tools: tuple[ToolSchema, ...] = ()
    tool_choice: Literal["auto", "none", "required"] | str = "auto"  # noqa: PYI051  # the literals document the usual ones
    options: Mapping[str, Any] = field(factory=lambda: MappingProxyType({}))

    @cached_property
    def transcript(self) -> tuple[Item, ...]:
        """The items that the model is to go on from."""
        return whole(self._items)


@frozen(kw_only=True)
class Capabilities:
    """What a model can be told, and what its server wants to see. Adapters read this record; they ask for no names.

    Attributes:
        tool_choice: It can be told to call a tool, or which.
        tool_choice_none: It can be told to call no tool, while its tools stay declared.
        images: It looks at images in user turns.
        result_images: It looks at images in results of tools.
        documents: It reads PDFs, where it looks at images.
        mail_after_results: How mail reaches it behind results: as a user `turn`, or as one behind a `bridge`, a word of the
            assistant between the two.
        thinking: Its own thinking goes back to it, as its wire has it.
        signed_calls: Its server refuses an answer whose first call has no signature.
        thinking_field: On the chat wire, the field of an assistant message in which thinking goes back, `""` if there was none.
        empty_content: On the chat wire, the content of an assistant message that only calls.
        short_ids: Its server takes call ids of nine letters and digits, no others.
        counts: Its server takes the option that asks for a count of tokens at the end of a stream.
        output_tokens: How many tokens of answer to ask for where the server wants to be told.
    """

    tool_choice: bool = True
    tool_choice_none: bool = True
    images: bool = False
    result_images: bool = False
    documents: bool = False
    mail_after_results: Literal["turn", "bridge"] = "turn"
    thinking: bool = False
    signed_calls: bool = False
    thinking_field: str | None = None
    empty_content: str | None = ""
    short_ids: bool = False
    counts: bool = True
    output_tokens: int | None = None


@frozen
class Price:
    """What tokens cost, per million, in a currency of the user's choice."""

    input: float
    output: float
    cached: float | None = None


class Model(Protocol):
    """Anything that answers requests. An answer's last event is its `Completion`; nothing follows it.

    Leaving the context before that cancels the request; nothing of the answer counts then.

    Who mints what: the calls of a completion have `id=""` and the provider's id, if it gave one, as `provider_id`. The
    session replaces `id` by one of its own before the item enters the transcript, and only that one is ever sent back.
    One object may serve many sessions at once, and one `trio.run` after another.
    """

    @property
    def name(self) -> str:
        """`provider:model`."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What it can be told."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
        """Ask; the context yields the events.

        Raises:
            ModelError: There will be no completion; on entry or while the events are read.
        """
        ...
