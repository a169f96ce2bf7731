"""Envelopes as JSON: tagged, strict, lossless. Stores, HTTP, events and hooks all speak it.

    to_json     writes an envelope, reads it back and compares: what is written can be read, and is the same again
    from_json   takes exactly what `to_json` writes; whatever else it finds is told with its path
    tags        `type` says which sender, body or action an object is; ours stand in the tables below, users' are registered

Never in JSON: the reply token of an ask, which means something in one process only.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any, NewType, TypeVar

import msgspec
from attrs import frozen

from ._envelope import (
    ID_FORM,
    MINTED_FORM,
    Action,
    AgentMessage,
    CallDeferred,
    CancelAllAttached,
    CancelCalls,
    ContinuationResult,
    Control,
    DropTimer,
    EndSession,
    Envelope,
    FromActor,
    FromSession,
    FromSystem,
    FromToolCall,
    FromUser,
    Pause,
    Priority,
    Resume,
    Sender,
    SetTimer,
    StopRun,
    TimerFired,
    ToolCallFinished,
    UserMessage,
    WatchedEvent,
)
from ._errors import CodecError, ConfigError
from ._json import unfit
from ._problems import Hook, MisfitError, Problem, attempt, mismatch
from ._tagged import TAG, check_taggable, fields_of, tag_of, tagged_converter
from ._types import name_of

T = TypeVar("T")

SENDERS: dict[str, type] = {
    "user": FromUser,
    "session": FromSession,
    "actor": FromActor,
    "tool_call": FromToolCall,
    "system": FromSystem,
}
ACTIONS: dict[str, type] = {
    "pause": Pause,
    "resume": Resume,
    "stop_run": StopRun,
    "cancel_calls": CancelCalls,
    "cancel_all_attached": CancelAllAttached,
    "set_timer": SetTimer,
    "drop_timer": DropTimer,
    "call_deferred": CallDeferred,
    "end_session": EndSession,
}
BODIES: dict[str, type] = {
    "user_message": UserMessage,
    "agent_message": AgentMessage,
    "tool_call_finished": ToolCallFinished,
    "continuation_result": ContinuationResult,
    "watched_event": WatchedEvent,
    "timer_fired": TimerFired,
    "control": Control,
}

_Body = NewType("_Body", object)
_Id = NewType("_Id", str)
_Instant = NewType("_Instant", datetime)
_INSTANT_FORM = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|\+00:00)\Z")

_classes = dict(BODIES)  # every body that has JSON, by its tag
_tags = {cls: tag for tag, cls in BODIES.items()}
_converter = tagged_converter({Sender: SENDERS, Action: ACTIONS})


@frozen
class _Row:
    """An envelope as it stands in JSON."""

    id: _Id
    seq: int
    sender: Sender
    priority: Priority
    hops: int
    sent_at: _Instant
    trace: str | None
    body: _Body


# ------------------------------------------------------------------ users' bodies
def register(cls: type[T], *, tag: str | None = None) -> type[T]:
    """Give a message class of one's own a place in JSON; also usable as a decorator.

    It may be an attrs class, a dataclass, a pydantic model or a msgspec struct. `tag` (default: the class's name) is what the
    JSON's `type` says; choose it once, since stored mail keeps it. An `Agent`'s `@handle` types are registered already. A
    class made anew under its old module and name takes the old one's place, as on a reload.

    Raises:
        ConfigError: The tag is taken, the class is registered under another, or its fields cannot be told.
    """
    tag = cls.__name__ if tag is None else tag
    check_taggable(cls)
    known = _classes.get(tag)
    if known is not None and known is not cls:
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ConfigError(
                f"the tag {tag!r} of {_full(cls)} is taken by {_full(known)}; register one of them with another: register(..., tag=...)"
            )
        del _tags[known]
    if _tags.get(cls, tag) != tag:
        raise ConfigError(
            f"{_full(cls)} is registered as {_tags[cls]!r} already, and cannot also be {tag!r}; stored mail has one tag"
        )
    _classes[tag], _tags[cls] = cls, tag
    return cls


def _full(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


# ------------------------------------------------------------------ hooks of the envelope's own fields
def read_body(value: object, _: Any = None) -> Any:
    """A body from plain JSON; `MisfitError` if it is none."""
    if not isinstance(value, Mapping):
        raise mismatch("object", value)
    cls = tag_of(value, _classes)
    return _converter.get_structure_hook(cls)(fields_of(value), cls)


def write_body(body: object, _: Any = None) -> dict[str, Any]:
    """A body as plain JSON; `MisfitError` if nobody registered its class."""
    tag = _tags.get(type(body))
    if tag is None:
        raise MisfitError(
            Problem((), f"{_full(type(body))} has no JSON; register it with actors.register({name_of(type(body))})")
        )
    return {TAG: tag, **_converter.get_unstructure_hook(type(body))(body)}


def _read_id(value: object, _: Any) -> str:
    if isinstance(value, str) and ID_FORM.match(value):
        return value
    raise mismatch("an id of 1 to 64 of A-Z a-z 0-9 . _ : -", value)


def _read_instant(value: object, _: Any) -> datetime:
    if not isinstance(value, str) or not _INSTANT_FORM.match(value):
        raise mismatch("a UTC time such as 2026-01-31T09:30:00.000000Z", value)
    return msgspec.convert(value, datetime)


_converter.register_structure_hook(_Body, read_body)
_converter.register_structure_hook(_Id, _read_id)
_converter.register_structure_hook(_Instant, _read_instant)
_sender_hook = _converter.get_unstructure_hook(Sender)


def write_sender(sender: Sender, _: Any = None) -> dict[str, Any]:
    """A sender as plain JSON."""
    doc: dict[str, Any] = _sender_hook(sender)
    return doc


def write_envelope(envelope: Envelope, _: Any = None) -> dict[str, Any]:
    """An envelope as plain JSON."""
    found: list[Problem] = []
    doc = {
        "id": envelope.id,
        "seq": envelope.seq,
        "sender": attempt(write_sender, envelope.sender, None, "sender", found),
        "priority": envelope.priority.value,
        "hops": envelope.hops,
        "sent_at": envelope.sent_at.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "trace": envelope.trace,
        "body": attempt(write_body, envelope.body, None, "body", found),
    }
    if found:
        raise MisfitError(*found)
    return doc


def read_envelope(doc: object, _: Any = None) -> Envelope:
    """An envelope from plain JSON; `MisfitError` if it is none."""
    row: _Row = _converter.structure(doc, _Row)
    number = int(row.id[2:]) if MINTED_FORM.match(row.id) and "-" not in row.id[2:] else None
    key = number if number is not None and row.id == f"m-{number}" else row.id
    return Envelope(key, row.seq, row.sender, row.priority, row.hops, row.sent_at.timestamp(), row.trace, row.body)


# ------------------------------------------------------------------ from hooks to one error
def _made(hook: Hook, value: object, what: str) -> Any:
    found: list[Problem] = []
    made = attempt(hook, value, None, None, found)
    if found:
        raise CodecError(f"{what}: {MisfitError(*found)}")
    return made


def _plain(hook: Hook, value: object, what: str) -> dict[str, Any]:
    doc: dict[str, Any] = _made(hook, value, what)
    if found := unfit(doc):
        raise CodecError(f"{what}: {found.sentence}")
    return doc


def _prove_same(body: object, again: object, doc: dict[str, Any], what: str) -> None:
    """A class without an equality of its own is compared by what it writes."""
    by_identity = type(body).__eq__ is object.__eq__
    if (write_body(again) != doc) if by_identity else (again != body):
        raise CodecError(f"{what}: {body!r} would come back as {again!r}; hold in its fields what their annotations say")


# ------------------------------------------------------------------ the face
def to_json(envelope: Envelope) -> str:
    """The envelope as JSON, which `from_json` reads back to an equal one.

    Raises:
        CodecError: Its body is of a class that nobody registered, or holds what has no JSON or would not come back the same.
            The text names the class, or the path.
    """
    what = f"{envelope.id} has no JSON"
    doc = _plain(write_envelope, envelope, what)
    again = _made(read_envelope, doc, what)
    _prove_same(envelope.body, again.body, doc["body"], what)
    if again.sender != envelope.sender:
        raise CodecError(f"{what}: `sender`: {envelope.sender!r} would come back as {again.sender!r}")
    return msgspec.json.encode(doc).decode()


def from_json(text: str | bytes) -> Envelope:
    """The envelope that this JSON is.

    Raises:
        CodecError: It is none, to the letter: a key that is not ours, a type or a tag that is wrong. The text names each path.
    """
    try:
        doc = msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"this is no JSON: {error}") from None
    envelope: Envelope = _made(read_envelope, doc, "this is no envelope")
    return envelope


def unstructure_body(body: object) -> dict[str, Any]:
    """The body as plain JSON in Python, with its tag; `structure_body` reads it back to an equal one.

    Raises:
        CodecError: As `to_json`.
    """
    what = f"a {name_of(type(body))} has no JSON"
    doc = _plain(write_body, body, what)
    _prove_same(body, _made(read_body, doc, what), doc, what)
    return doc


def structure_body(doc: Mapping[str, Any]) -> Any:
    """The body that this object is.

    Raises:
        CodecError: As `from_json`.
    """
    return _made(read_body, doc, "this is no body")


def digest(body: object) -> bytes | None:
    """16 bytes that equal bodies share and others do not; None for a body that has no JSON."""
    if type(body) not in _tags:
        return None
    try:
        doc = _plain(write_body, body, "")
    except CodecError:
        return None
    return blake2b(msgspec.json.encode(doc, order="sorted"), digest_size=16).digest()
