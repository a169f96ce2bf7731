"""The weak cache keyed by object."""

import gc
from itertools import count

from transcripts import says

from actors.models._cache import IdentityCache
from actors.models._items import AssistantItem


def test_it_computes_once_per_object_and_not_per_content() -> None:
    """Equal items may stand in two sessions; each is rendered for itself."""
    number = count(1)
    cache: IdentityCache[AssistantItem, int] = IdentityCache(lambda _: next(number))
    one, other = says("hi"), says("hi")
    assert [cache.get(one), cache.get(one), cache.get(other)] == [1, 1, 2]


def test_it_forgets_with_the_object() -> None:
    """A process that lives for months must not remember every item it sent."""
    cache: IdentityCache[AssistantItem, str] = IdentityCache(lambda item: item.text)
    item = says("hi")
    cache.get(item)
    del item
    gc.collect()
    assert len(cache) == 0
