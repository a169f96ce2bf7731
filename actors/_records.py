"""What the fields of a record are: one answer for attrs, dataclasses, TypedDicts and msgspec structs.

The schema a model is shown, the validation of what it sends and the codec all ask here, so they cannot disagree about
a field's name in JSON or about which fields may be left out.
"""

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any, NotRequired, Required, TypeAlias, get_origin, get_type_hints

import attrs
import msgspec
from attrs import frozen

Record: TypeAlias = type[Any]
NOTHING = attrs.NOTHING


@frozen
class Member:
    """One field: its key in JSON, where it is read, how its class takes it, its type, and its default if it has one.

    `type` is NOTHING for a field without an annotation; `default` is NOTHING where there is none or a factory makes it.
    """

    key: str
    attribute: str
    init: str
    type: Any
    required: bool
    default: Any


def is_record(tp: Any) -> bool:
    """Whether `members` can tell its fields: an attrs class, a dataclass, a TypedDict or a msgspec struct."""
    if not isinstance(tp, type):
        return typing.is_typeddict(tp)
    return attrs.has(tp) or dataclasses.is_dataclass(tp) or is_struct(tp) or typing.is_typeddict(tp) or _is_old_typeddict(tp)


def is_struct(tp: Any) -> bool:
    """Whether it is a msgspec struct."""
    return isinstance(tp, type) and issubclass(tp, msgspec.Struct)


def is_typeddict(tp: Any) -> bool:
    """Whether it is a TypedDict, `typing`'s or `typing_extensions`'."""
    return isinstance(tp, type) and (typing.is_typeddict(tp) or _is_old_typeddict(tp))


def is_pydantic(tp: Any) -> bool:
    """Whether it is a pydantic model; told by its methods, since pydantic is optional and not imported here."""
    return isinstance(tp, type) and hasattr(tp, "model_json_schema") and hasattr(tp, "model_validate_json")


def _is_old_typeddict(tp: type) -> bool:
    return issubclass(tp, dict) and hasattr(tp, "__required_keys__") and hasattr(tp, "__total__")


def keys(cls: Record) -> set[str]:
    """The keys that a class's fields have in JSON; also while its annotations cannot be resolved yet."""
    if is_struct(cls):
        return set(cls.__struct_encode_fields__)
    return {part.alias for part in attrs.fields(cls)} if attrs.has(cls) else {part.name for part in dataclasses.fields(cls)}


def members(cls: Record) -> tuple[Member, ...]:
    """The fields that a record is built from, in order. NameError where an annotation cannot be resolved."""
    if is_struct(cls):
        return tuple(_of_struct(cls))
    hints = get_type_hints(cls, include_extras=True)
    if attrs.has(cls):
        return tuple(_of_attrs(cls, hints))
    if dataclasses.is_dataclass(cls):
        return tuple(_of_dataclass(cls, hints))
    return tuple(_of_typeddict(cls, hints))


def _of_struct(cls: Any) -> list[Member]:
    return [
        Member(
            part.encode_name,
            part.name,
            part.name,
            part.type,
            part.required,
            NOTHING if part.default is msgspec.NODEFAULT else part.default,
        )
        for part in msgspec.structs.fields(cls)
    ]


def _of_attrs(cls: Any, hints: Mapping[str, Any]) -> list[Member]:
    found = []
    for part in attrs.fields(cls):
        if part.init:
            made = isinstance(part.default, attrs.Factory)  # type: ignore[arg-type]  # attrs types its class as a function
            default = NOTHING if made else part.default
            hint = hints.get(part.name, NOTHING)
            found.append(Member(part.alias, part.name, part.alias, hint, part.default is NOTHING, default))
    return found


def _of_dataclass(cls: Any, hints: Mapping[str, Any]) -> list[Member]:
    found = []
    for part in dataclasses.fields(cls):
        if part.init:
            default = NOTHING if part.default is dataclasses.MISSING else part.default
            required = default is NOTHING and part.default_factory is dataclasses.MISSING
            found.append(Member(part.name, part.name, part.name, hints[part.name], required, default))
    return found


def _of_typeddict(cls: Any, hints: Mapping[str, Any]) -> list[Member]:
    found = []
    for key, hint in hints.items():
        # `__required_keys__` is wrong where annotations are strings: a wrapper that could be resolved has the last word.
        wrapper, required = get_origin(hint), key in cls.__required_keys__
        if wrapper is Required or wrapper is NotRequired:
            required, hint = wrapper is Required, hint.__args__[0]  # noqa: PLW2901
        found.append(Member(key, key, key, hint, required, NOTHING))
    return found
