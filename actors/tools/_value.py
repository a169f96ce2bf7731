"""What a tool returned, as plain JSON with media in it."""

import dataclasses
import enum
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import attrs
import msgspec

from actors._errors import CodecError
from actors._json import DEEPEST, INTEGERS, TOO_BIG, TOO_DEEP
from actors._outcome import Media, Outcome
from actors._problems import Path, Problem
from actors._records import is_pydantic
from actors._text import readable

_TEXTS = (datetime, date, time, timedelta, Decimal, UUID)
_HINTS = {
    "bytes": "; return Media(mime, data), or text",
    "coroutine": "; await it, or make the wrapper around the tool async",
    "generator": "; return a list",
    "async_generator": "; return a list, or make the tool itself an async generator",
}


def to_value(result: Any) -> Any:
    """A tool's result as JSON-able values: records, enums, times, ids, tuples and sets become what JSON has. Media are kept.

    Raises:
        CodecError: Something in it has no JSON. The text names the type, and where it stands.
    """
    return _value(result, ())


def returned(result: Any) -> Any:
    """What a tool returned: an outcome by which it defers its call, as it is; else as `to_value`."""
    return result if isinstance(result, Outcome) and result.status == "deferred" else to_value(result)


def _refused(path: Path, reason: str) -> CodecError:
    return CodecError(f"the result has no JSON: {Problem(path, reason).sentence}")


def _value(value: Any, path: Path) -> Any:
    if value is None or isinstance(value, bool | Media):
        return value
    if isinstance(value, enum.Enum):
        return _value(value.value, path)
    if isinstance(value, str):
        return readable(str.__str__(value))
    if isinstance(value, int | float):
        return _number(value, path)
    if isinstance(value, _TEXTS):
        return msgspec.to_builtins(value)
    if len(path) > DEEPEST:
        raise _refused(path[:8], TOO_DEEP)
    return _held(value, path)


def _number(value: float, path: Path) -> float:
    if isinstance(value, int):
        if value not in INTEGERS:
            raise _refused(path, TOO_BIG)
        return int(value)
    if not math.isfinite(value):
        raise _refused(path, f"{value} has no JSON; return None or a str instead")
    return float(value)


def _held(value: Any, path: Path) -> Any:
    """A value that holds others."""
    if isinstance(value, Mapping):
        return _object(value, path)
    if isinstance(value, list | tuple):
        return [_value(each, (*path, index)) for index, each in enumerate(value)]
    if isinstance(value, AbstractSet):  # in one order, so that equal sets read the same
        return sorted((_value(each, path) for each in value), key=lambda each: msgspec.json.encode(each, order="sorted"))
    return _object(_fields(value, path), path)


def _fields(value: Any, path: Path) -> Mapping[str, Any]:
    """The fields of a record."""
    cls = type(value)
    if is_pydantic(cls):
        try:
            dumped: dict[str, Any] = value.model_dump(mode="json")
        except ValueError as error:
            raise _refused(path, str(error)) from None
        return dumped
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    if attrs.has(cls):
        return {each.name: getattr(value, each.name) for each in attrs.fields(cls)}
    if dataclasses.is_dataclass(cls):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(cls)}
    raise _refused(path, f"{cls.__module__}.{cls.__qualname__} is no JSON{_HINTS.get(cls.__name__, '')}")


def _object(value: Mapping[Any, Any], path: Path) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, each in value.items():
        plain = (
            _value(key, path) if isinstance(key, str | int | enum.Enum | UUID | date) and not isinstance(key, bool) else None
        )
        if plain is None or str(plain) in made:
            raise _refused(path, f"the key {key!r} is no str, nor like one; keys of JSON objects are, each once")
        made[str(plain)] = _value(each, (*path, str(plain)))
    return made
