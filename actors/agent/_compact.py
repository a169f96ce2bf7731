"""What a request holds of a transcript, where an agent's `compact` says so. What is kept is never touched.

It is given all items, without a copy: at ten thousand rounds a copy of the pointers, and its end, would be most of a round.

def window(items):
    start = max(1, len(items) - 40)
    while start < len(items) and not isinstance(items[start], AssistantItem):
        start += 1
    return items[:1] + items[start:]
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from actors._errors import ConfigError, TranscriptInvalid, sentence
from actors._waiters import guarded
from actors.models._items import AssistantItem, Item, ResultsItem, UserItem
from actors.models._transcript import Validator


class Past(Sequence[Item]):
    """The items of a transcript, made at no cost and read only. It is used as a tuple: what is cut from it is one.

    It is good for one request: later its last item may have been amended.
    """

    __slots__ = ("_items", "_length", "_shown")

    def __init__(self, items: Sequence[Item], shown: Callable[[int, Item], Item] | None = None) -> None:
        self._items = items
        self._length = len(items)
        self._shown = shown  # what stands in an item's place in a request

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, place: int | slice) -> Item | tuple[Item, ...]:
        places = range(self._length)[place]
        if isinstance(places, range):
            return tuple(map(self._at, places))
        return self._at(places)

    def _at(self, place: int) -> Item:
        item = self._items[place]
        return item if self._shown is None else self._shown(place, item)

    def __iter__(self) -> Iterator[Item]:
        return map(self._at, range(self._length))

    def whole(self) -> tuple[Item, ...]:
        """All of them, at the cost of a copy of the pointers."""
        return tuple(self._items) if self._shown is None else tuple(self)

    def __add__(self, other: Sequence[Item]) -> tuple[Item, ...]:
        return (*self, *other)

    def __radd__(self, other: Sequence[Item]) -> tuple[Item, ...]:
        return (*other, *self)

    def __repr__(self) -> str:
        return f"<the {self._length} items of a transcript>"


Compact = Callable[[tuple[Item, ...]], Sequence[Item]]  # what comes is a `Past`; types know no other word for what can be added


def compact_of(agent: str, given: Any) -> Compact | None:
    """What was given, if it can be called; ConfigError if not."""
    if given is not None and not callable(given):
        raise ConfigError(f"{agent}: found compact={given!r}; write a function from the items of a transcript to those to send")
    return given  # type: ignore[no-any-return]  # checked as far as can be


def compacted(agent: str, compact: Compact, items: Past) -> tuple[Item, ...]:
    """What `compact` makes of these items: a transcript that providers accept.

    Raises:
        ConfigError: It raised, gave no items, or broke a rule; the text says which.
    """
    made, error = guarded(compact, items)
    if error is not None:
        raise ConfigError(f"{agent}.compact raised: {sentence(error)}") from error
    if not isinstance(made, list | tuple | Past) or not all(
        isinstance(item, UserItem | AssistantItem | ResultsItem) for item in made
    ):
        raise ConfigError(f"{agent}.compact returned {type(made).__name__}; return a list or tuple of items of the transcript")
    try:
        Validator().check_request(made)  # a window that moves has no front to remember
    except TranscriptInvalid as broken:
        raise ConfigError(f"what {agent}.compact returned would be refused: {broken}") from None
    return tuple(made)
