"""A transcript as one request sees it, without a copy.

At ten thousand rounds a copy of the pointers, and its end, would be half of a round. A transcript grows behind, and nothing in it is
rewritten but its last item, which may be amended while it is unanswered. So what it was at a moment is its length, and its last item.
"""

from collections.abc import Iterator, Sequence
from typing import overload

from ._items import Item


class Past(Sequence[Item]):
    """All items there are now, whatever comes behind them. It is used as a tuple: what is cut from it, or added to it, is one."""

    __slots__ = ("_items", "_last", "_length")

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._length = len(items)
        self._last = items[-1] if items else None

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
        if place == self._length - 1 and self._last is not None:
            return self._last
        return self._items[place]

    def __iter__(self) -> Iterator[Item]:
        return iter(self.whole())

    def __add__(self, other: Sequence[Item]) -> tuple[Item, ...]:
        return (*self.whole(), *other)

    def __radd__(self, other: Sequence[Item]) -> tuple[Item, ...]:
        return (*other, *self.whole())

    def __repr__(self) -> str:
        return f"<the {self._length} items of a transcript>"

    def whole(self) -> tuple[Item, ...]:
        """All of them, at the cost of a copy of the pointers."""
        items = self._items
        if len(items) == self._length and (not items or items[-1] is self._last):
            return tuple(items)
        return tuple(map(self._at, range(self._length)))


def whole(items: Sequence[Item]) -> tuple[Item, ...]:
    """These, as a tuple."""
    return items.whole() if isinstance(items, Past) else tuple(items)
