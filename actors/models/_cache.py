"""A weak cache keyed by which object it is.

Items compare by content and may hold what cannot be hashed, so a `WeakKeyDictionary` will not take them; but an
item is never rewritten, so what was computed for this very object stays true for as long as it lives.
"""

from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import ref

K = TypeVar("K")
V = TypeVar("V")


class IdentityCache(Generic[K, V]):
    """`get(key)` computes once per object, and forgets with it. A value that refers to its own key is kept for ever."""

    def __init__(self, compute: Callable[[K], V]) -> None:
        self._compute = compute
        self._kept: dict[int, tuple[ref[K], V]] = {}  # an entry leaves before its number can name another object

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V:
        """The value of this object."""
        found = self._kept.get(id(key))
        if found is not None:
            return found[1]
        return self._keep(key)

    def _keep(self, key: K) -> V:
        number, kept = id(key), self._kept
        value = self._compute(key)
        kept[number] = (ref(key, lambda _: kept.pop(number, None)), value)
        return value
