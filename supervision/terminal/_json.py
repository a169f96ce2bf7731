"""An event as one line of JSON, for programs that follow a run: its kind first, then all its fields.

Envelopes are as the codec writes them everywhere; times are RFC 3339; an error is its type and its text, for nobody reads
it back. What has no JSON is shown as Python shows it.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import singledispatch
from typing import Any

import attrs
import msgspec

from actors import CodecError, Envelope, Exit, to_json
from actors.events import AnyEvent


def event_json(event: AnyEvent) -> str:
    """The line, without its end."""
    return msgspec.json.encode({"kind": event.kind, **_fields(event)}).decode()


def _fields(record: Any) -> dict[str, Any]:
    return {field.name: plain(getattr(record, field.name)) for field in attrs.fields(type(record))}


@singledispatch
def plain(value: Any) -> Any:
    """A value of an event in terms of JSON."""
    if attrs.has(type(value)):
        return _fields(value)
    return value if value is None or isinstance(value, str | int | float) else repr(value)


@plain.register
def _(envelope: Envelope) -> Any:
    try:
        return msgspec.json.decode(to_json(envelope))
    except CodecError:  # a plain actor's body may be any object
        return {"id": envelope.id, "seq": envelope.seq, "sender": plain(envelope.sender), "body": repr(envelope.body)}


@plain.register
def _(exit: Exit) -> Any:  # that is what it is
    return {"type": type(exit).__name__.lower(), **_fields(exit)}


@plain.register
def _(time: datetime) -> Any:
    return time.isoformat().replace("+00:00", "Z")


@plain.register
def _(error: BaseException) -> Any:
    return f"{type(error).__name__}: {error}"


@plain.register
def _(data: bytes) -> Any:
    return f"<{len(data)} bytes>"


@plain.register
def _(mapping: Mapping) -> Any:  # type: ignore[type-arg]  # singledispatch takes the bare class
    return {str(key): plain(each) for key, each in mapping.items()}


@plain.register(list)
@plain.register(tuple)
def _(sequence: list[Any] | tuple[Any, ...]) -> Any:
    return [plain(each) for each in sequence]
