"""Transcripts for tests, in few letters: `user("hi")`, `asks("a", "b")`, `answers("a", "b")`, `says("done")`."""

from itertools import count

from actors._envelope import NORMAL, Envelope, FromUser, Priority, Sender, UserMessage
from actors._outcome import Media, Outcome
from actors.models._blocks import Text, ToolCall
from actors.models._items import AssistantItem, Result, ResultsItem, UserItem

PERSON = FromUser()
_seq = count(1)


def mail(body: object, sender: Sender = PERSON, *, key: int | str | None = None, priority: Priority = NORMAL) -> Envelope:
    """An envelope as a mailbox would have made it."""
    seq = next(_seq)
    return Envelope(seq if key is None else key, seq, sender, priority, 0, 0.0, None, body)


def user(text: str, *media: Media) -> UserItem:
    """A person's words."""
    return UserItem([mail(UserMessage(text, media))])


def says(text: str) -> AssistantItem:
    """An answer in words."""
    return AssistantItem([Text(text)], "test:model")


def asks(*ids: str, text: str = "", tool: str = "look") -> AssistantItem:
    """An answer that calls a tool, once per id."""
    words = [Text(text)] if text else []
    return AssistantItem([*words, *(ToolCall(name, tool, {"id": name}) for name in ids)], "test:model")


def answers(*ids: str, text: str = "seen") -> ResultsItem:
    """The results of these calls."""
    return ResultsItem([Result(name, "look", Outcome.completed(text)) for name in ids])
