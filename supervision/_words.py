"""What people and agents say to a session, held against what may be said."""

from collections.abc import Sequence

from actors._envelope import AgentMessage, UserMessage
from actors._errors import ConfigError
from actors._outcome import Media
from actors._text import check_text


def as_words(address: str, body: object) -> UserMessage | AgentMessage | None:
    """What people and agents say, if this is that. `ConfigError` if it says nothing, `CodecError` if it is no text."""
    if isinstance(body, str):
        body = UserMessage(body)
    if not isinstance(body, (UserMessage, AgentMessage)):
        return None
    text: object = body.text
    media: Sequence[object] = getattr(body, "media", ())
    if not isinstance(text, str) or not all(isinstance(each, Media) for each in media):
        raise TypeError(f"a message to {address} has a str for its text and Media beside it; found {body!r}")
    if not text.strip() and not media:
        raise ConfigError(f"an empty message to {address} was refused; write some words, or attach media")
    check_text(f"a message to {address}", text)
    return body
