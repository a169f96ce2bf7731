"""What a request holds of a transcript, where an agent's `compact` says so. What is kept is never touched.

It is given all items without a copy of them (`Past`).

def window(items):
    start = max(1, len(items) - 40)
    while start < len(items) and not isinstance(items[start], AssistantItem):
        start += 1
    return items[:1] + items[start:]
"""

from collections.abc import Callable, Sequence
from typing import Any

from actors._errors import ConfigError, TranscriptInvalid, sentence
from actors._waiters import guarded
from actors.models._items import AssistantItem, Item, ResultsItem, UserItem
from actors.models._past import Past
from actors.models._transcript import Validator

Compact = Callable[[tuple[Item, ...]], Sequence[Item]]  # what comes may be a `Past`, which is used as one


def compact_of(agent: str, given: Any) -> Compact | None:
    """What was given, if it can be called; ConfigError if not."""
    if given is not None and not callable(given):
        raise ConfigError(f"{agent}: found compact={given!r}; write a function from the items of a transcript to those to send")
    return given  # type: ignore[no-any-return]  # checked as far as can be


def compacted(agent: str, compact: Compact, items: Sequence[Item]) -> tuple[Item, ...]:
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
