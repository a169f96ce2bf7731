"""What people, agents and hosts say to a session, held against what may be said."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import get_args

from attrs import evolve

from actors._envelope import AgentMessage, UserMessage
from actors._errors import ConfigError, UnknownToken
from actors._outcome import Media, Outcome, OutcomeStatus
from actors._text import check_text, readable
from actors.tools._value import to_value

TOKEN = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def as_words(address: str, body: object) -> UserMessage | AgentMessage | None:
    """What people and agents say, if this is that. `ConfigError` if it says nothing, `CodecError` if it is no text."""
    if isinstance(body, str):
        body = UserMessage(body)
    if not isinstance(body, (UserMessage, AgentMessage)):
        return None
    text: object = body.text
    media: Sequence[object] = getattr(body, "media", ())
    if not isinstance(text, str) or (media and not all(isinstance(each, Media) for each in media)):
        raise TypeError(f"a message to {address} has a str for its text and Media beside it; found {body!r}")
    if not text.strip() and not media:
        raise ConfigError(f"an empty message to {address} was refused; write some words, or attach media")
    check_text(f"a message to {address}", text)
    return body


def as_answer(token: str, outcome: Outcome) -> Outcome:
    """What a host answers a deferred call with, if it is an end that a tool could have. Raises as `System.complete`."""
    given: tuple[tuple[object, type], ...] = (outcome, Outcome), (token, str)
    if not all(isinstance(value, kind) for value, kind in given):
        raise TypeError(f"complete(token, outcome) takes a str and an Outcome; found {type(token).__name__} and {outcome!r}")
    if outcome.status == "deferred" or outcome.status not in get_args(OutcomeStatus):
        raise ConfigError(
            f"a deferred call ends with an outcome that is final, such as Outcome.completed(value); found status {outcome.status!r}"
        )
    facts: tuple[tuple[object, object], ...] = (
        (outcome.error, str | None),
        (outcome.started, datetime | None),
        (outcome.duration, float | int | None),
    )
    if not all(isinstance(value, kind) for value, kind in facts) or (outcome.started and outcome.started.tzinfo is None):  # type: ignore[arg-type]
        raise TypeError(f"an outcome has a str for its error, an aware UTC time and seconds; found {outcome!r}")
    if not TOKEN.match(token):
        raise UnknownToken(token=readable(token))
    error = None if outcome.error is None else readable(outcome.error)
    return evolve(outcome, value=to_value(outcome.value), error=error)
