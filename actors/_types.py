"""How annotations are taken apart, and what the values of a type look like in JSON."""

import enum
import types
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin
from uuid import UUID

TEXTS = {  # what is written as text: an example of it
    datetime: "a date and time such as 2026-01-31T09:30:00Z",
    date: "a date such as 2026-01-31",
    time: "a time such as 09:30:00",
    timedelta: "a duration such as PT90S",
    Decimal: 'a decimal number such as "1.50"',
    UUID: "a UUID such as 6f1ed002-ab59-4b0c-8d4c-1f5f4f6f2a11",
    bytes: "base64 text",
}
SETS = (set, frozenset)
LISTS = (list, tuple, *SETS)
NONES = (None, types.NoneType)
NULL: set[type] = {types.NoneType}


def is_union(tp: Any) -> bool:
    """Whether it is a union, in either spelling."""
    return get_origin(tp) in (Union, types.UnionType)


def is_enum(tp: Any) -> bool:
    """Whether it is an enum class."""
    return isinstance(tp, enum.EnumMeta)


def is_literal(tp: Any) -> bool:
    """Whether it is `Literal[...]`."""
    return get_origin(tp) is Literal


def is_list(tp: Any) -> bool:
    """Whether its values are lists in JSON: a list, a tuple, a set or a frozenset."""
    return (get_origin(tp) or tp) in LISTS


def is_dict(tp: Any) -> bool:
    """Whether it is `dict` or `Mapping`."""
    return (get_origin(tp) or tp) in (dict, Mapping)


def layers(tp: Any) -> Iterator[Any]:
    """The type, and what is below its names and notes, level by level: `Annotated`, `NewType`, `type` aliases."""
    while True:
        yield tp
        if get_origin(tp) is Annotated:
            tp = tp.__origin__
        elif isinstance(tp, NewType):
            tp = tp.__supertype__
        elif type(tp).__name__ == "TypeAliasType":
            tp = tp.__value__
        else:
            return


def bare(tp: Any) -> Any:
    """The type below all its names and notes."""
    *_, last = layers(tp)
    return last


def text_of(tp: Any) -> str | None:
    """What an annotation's note says in words: `Annotated[X, "text"]`, or a note that has a description."""
    notes = [note for layer in layers(tp) if get_origin(layer) is Annotated for note in layer.__metadata__]
    texts = [
        each if isinstance(each, str) else getattr(each, "description", getattr(each, "documentation", None)) for each in notes
    ]
    return next((text for text in texts if isinstance(text, str) and text), None)


def options(union: Any) -> list[Any]:
    """A union's members, those of the unions that it names too."""
    return [leaf for each in get_args(union) for leaf in (options(bare(each)) if is_union(bare(each)) else [each])]


def written(value: Any) -> Any:
    """A literal's value as it stands in JSON: an enum's member by its value."""
    return value.value if isinstance(value, enum.Enum) else value


def name_of(tp: Any) -> str:
    """A type as it is written."""
    if tp in NONES:
        return "None"
    return tp.__name__ if isinstance(tp, type) and not get_args(tp) else str(tp).replace("typing.", "")


def kinds(tp: Any) -> set[type]:
    """What values of this type are read from: the types that JSON itself has in Python."""
    tp = bare(tp)
    origin = get_origin(tp) or tp
    if origin is Literal:
        return {type(written(each)) for each in get_args(tp)}
    if is_enum(origin):
        return {type(each.value) for each in origin}
    if origin in LISTS:
        return {list}
    if origin in TEXTS:
        return {str}
    plain: dict[Any, set[type]] = {bool: {bool}, int: {int}, float: {int, float}, str: {str}, None: NULL, types.NoneType: NULL}
    return plain.get(origin, {dict})
