"""What became of a tool call, as a value, and how a value is worded for a model."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec
from attrs import field, frozen

from ._text import check_text

OutcomeStatus = Literal["completed", "failed", "timed_out", "cancelled", "denied", "deferred", "not_started", "orphaned"]


@frozen
class Media:
    """Bytes for a model to look at: an image, a PDF, a sound. `mime` is an IANA media type such as `image/png`.

    Raises:
        TypeError: A field is of another type.
        CodecError: `mime` or `name` is no text in UTF-8.
    """

    mime: str
    data: bytes
    name: str | None = None

    def __attrs_post_init__(self) -> None:
        given: tuple[tuple[object, Any], ...] = (self.mime, str), (self.data, bytes), (self.name, str | None)
        if not all(isinstance(value, kind) for value, kind in given):
            raise TypeError(f"found {self!r}; write Media(mime, data, name), where data is bytes and the others are str")
        check_text("a Media", self.mime)
        check_text("a Media", self.name)

    def __repr__(self) -> str:
        data: object = self.data
        told = f"<{len(data)} bytes>" if isinstance(data, bytes) else repr(data)
        return f"Media(mime={self.mime!r}, data={told}, name={self.name!r})"


@frozen
class Outcome:
    """The end of a tool call: how it ended, with what, when it began and how long it took.

    `value` is JSON, a `str`, a `Media` or a list of those; `error` is a sentence for the model and for people;
    `started` is aware UTC, None if it never ran; `duration` is in seconds.
    """

    status: OutcomeStatus
    value: Any = None
    error: str | None = None
    started: datetime | None = None
    duration: float | None = None

    @classmethod
    def completed(cls, value: Any) -> "Outcome":
        """The tool returned `value`."""
        return cls("completed", value)

    @classmethod
    def failed(cls, error: str) -> "Outcome":
        """The tool raised, or could not be called as asked; `error` says why."""
        return cls("failed", error=error)

    @classmethod
    def denied(cls, message: str) -> "Outcome":
        """A policy or a person said no; `message` is for the model."""
        return cls("denied", error=message)

    @classmethod
    def deferred(cls, reason: str) -> "Outcome":
        """What a tool returns for somebody to answer later, by the continuation token of its context; `reason` is for the model."""
        return cls("deferred", error=reason)

    @property
    def text(self) -> str:
        """What a model reads: the value if it completed, else the status and the sentence."""
        if self.status == "completed":
            return value_text(self.value)
        if self.status == "orphaned":
            return "outcome unknown; it may have run"
        return f"{self.status}: {self.error}" if self.error else self.status


@frozen
class _Flat:
    """A value split into the text a model reads and the media that go beside it."""

    text: str
    media: tuple[Media, ...] = field(default=())


def value_text(value: Any) -> str:
    """Word a tool's value for a model: text as it is, None as `done`, media as a placeholder, else compact JSON."""
    return flatten(value).text


def flatten(value: Any) -> _Flat:
    """Split a tool's value into text and media."""
    if value is None:
        return _Flat("done")
    if isinstance(value, str):
        return _Flat(value)
    if isinstance(value, Media):
        return _Flat(f"[attached {value.mime}]", (value,))
    if isinstance(value, list | tuple) and any(isinstance(part, Media) for part in value):
        parts = [flatten(part) for part in value]
        return _Flat("\n".join(part.text for part in parts), tuple(media for part in parts for media in part.media))
    media: list[Media] = []
    return _Flat(msgspec.json.encode(_with_placeholders(value, media)).decode(), tuple(media))


def _with_placeholders(value: Any, media: list[Media]) -> Any:
    """The value with a word in the place of each media in it, which are collected."""
    if isinstance(value, Media):
        media.append(value)
        return f"[attached {value.mime}]"
    if isinstance(value, Mapping):
        return {key: _with_placeholders(each, media) for key, each in value.items()}
    return [_with_placeholders(each, media) for each in value] if isinstance(value, list | tuple) else value
