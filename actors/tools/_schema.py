"""The JSON Schema that a model is shown for a type, and which types a tool may take.

    str int float bool None     their JSON type              list[X], tuple[X, ...], tuple[X, Y]   array
    Literal, Enum               the values, as an enum       dict[str, X]                          object of X
    datetime, UUID              a string with its format     TypedDict, dataclass, attrs           $defs, closed object
    unions, X | None            anyOf                        pydantic models                       their own schema, closed
    Annotated[X, "text"]        X with the description       anything else                         ConfigError

Written here and not by msgspec, which refuses unions that validation can tell apart (`datetime | str`, two dataclasses)
and knows no `Annotated` text; one walk both describes a type and finds what is not supported, with its path.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from inspect import cleandoc
from types import NoneType
from typing import Any, get_args, get_origin
from uuid import UUID

from actors._errors import CodecError, ConfigError
from actors._records import NOTHING, is_pydantic, is_record, is_struct, members
from actors._types import bare, is_enum, is_literal, is_union, name_of, text_of, written

from ._value import to_value

Schema = dict[str, Any]
REF = "#/$defs/"
LEAVES: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    NoneType: {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    UUID: {"type": "string", "format": "uuid"},
}
_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
SUPPORTED = (
    "str, int, float, bool, None, Literal, Enum, list[...], tuple[...], dict[str, ...], unions, "
    'Annotated[..., "description"], TypedDict, dataclasses, attrs classes, pydantic models, datetime and UUID'
)
_INSTEAD = {
    "Any": "say which types it may be",
    "object": "say which types it may be",
    "list": "say of what: list[str], say",
    "tuple": "say of what: tuple[str, ...], say",
    "dict": "say of what: dict[str, str], say",
    "set": "write list[...] and make it a set in the tool",
    "frozenset": "write list[...] and make it a set in the tool",
    "Sequence": "write list[...]",
    "Iterable": "write list[...]",
    "Mapping": "write dict[str, ...]",
    "bytes": "write str and decode it in the tool",
    "date": "write datetime, or str",
}


class Describer:
    """Describes the types of one tool's parameters; what they share is collected in `defs`."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.defs: dict[str, Schema] = {}
        self._names: dict[Any, str] = {}

    def schema(self, tp: Any, path: str) -> Schema:
        """The schema of a type that stands at this path.

        Raises:
            ConfigError: It, or something in it, is not supported.
        """
        return described(self._schema(bare(tp), path), text_of(tp))

    def _schema(self, tp: Any, path: str) -> Schema:
        leaf = LEAVES.get(tp)
        if leaf is not None:
            return dict(leaf)
        if is_union(tp):
            return {"anyOf": [self.schema(each, path) for each in get_args(tp)]}
        if is_enum(tp) or is_literal(tp):
            return self._values(tp, path)
        return self._record(tp, path) if isinstance(tp, type) and not get_args(tp) else self._container(tp, path)

    def refuse(self, tp: Any, path: str) -> ConfigError:
        """The error that says that this type is not supported, and what to write."""
        origin = get_origin(tp) or tp
        instead = _INSTEAD.get(getattr(origin, "__name__", str(origin)), "take one of those and make it in the tool")
        return ConfigError(
            f"{self.where}: parameter `{path}` is annotated {name_of(tp)}, which a model cannot be told; {instead} (a tool takes {SUPPORTED})"
        )

    def _values(self, tp: Any, path: str) -> Schema:
        values = [written(each) for each in (tp if is_enum(tp) else get_args(tp))]
        types = list(dict.fromkeys(_JSON_TYPES.get(type(each)) for each in values))
        if not values or None in types:
            raise self.refuse(tp, path)
        return {"type": types[0] if len(types) == 1 else types, "enum": values}

    def _container(self, tp: Any, path: str) -> Schema:
        origin, args = get_origin(tp), get_args(tp)
        if origin is list:
            return {"type": "array", "items": self.schema(args[0], f"{path}[]")}
        if origin is dict and args[0] is str:
            return {"type": "object", "additionalProperties": self.schema(args[1], f"{path}.*")}
        if origin is tuple and args[-1:] == (...,):
            return {"type": "array", "items": self.schema(args[0], f"{path}[]")}
        if origin is tuple and args:
            items = [self.schema(each, f"{path}[{index}]") for index, each in enumerate(args)]
            return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items), "maxItems": len(items)}
        raise self.refuse(tp, path)

    def _record(self, cls: Any, path: str) -> Schema:
        if cls in self._names:
            return {"$ref": f"{REF}{self._names[cls]}"}
        if is_pydantic(cls):
            return self._pydantic(cls)
        if not is_record(cls) or is_struct(cls):
            raise self.refuse(cls, path)
        name = self._name(cls)
        try:
            found = members(cls)
        except (NameError, TypeError, SyntaxError) as error:
            raise ConfigError(
                f"{self.where}: parameter `{path}`: the fields of {cls.__qualname__} cannot be read ({error}); "
                "name in its annotations what its module knows"
            ) from None
        properties = {}
        for each in found:
            if each.type is NOTHING:
                raise ConfigError(
                    f"{self.where}: `{path}.{each.key}` of {cls.__qualname__} has no annotation; annotate the field"
                )
            properties[each.key] = with_default(self.schema(each.type, f"{path}.{each.key}"), each.default)
        self.defs[name] = closed(properties, [each.key for each in found if each.required], doc_of(cls))
        return {"$ref": f"{REF}{name}"}

    def _pydantic(self, cls: Any) -> Schema:
        made = _plain(cls.model_json_schema(ref_template=f"{REF}{{model}}"))
        for name, inner in made.pop("$defs", {}).items():
            if self.defs.setdefault(name, inner) != inner:
                raise ConfigError(f"{self.where}: two of its types are called {name}, one below {cls.__qualname__}; rename one")
        if set(made) == {"$ref"}:  # a model that contains itself stands among its own definitions
            return made
        name = self._name(cls)
        self.defs[name] = made
        return {"$ref": f"{REF}{name}"}

    def _name(self, cls: type) -> str:
        name, number = cls.__name__, 2
        while name in self.defs or name in self._names.values():
            name, number = f"{cls.__name__}_{number}", number + 1
        self._names[cls] = name
        return name


def doc_of(cls: type) -> str | None:
    """What a class's author wrote about it; not what a decorator wrote."""
    doc = cls.__dict__.get("__doc__") or ""
    return None if not doc or doc.startswith(f"{cls.__name__}(") else cleandoc(doc)


def closed(properties: Mapping[str, Schema], required: Iterable[str], description: str | None = None) -> Schema:
    """An object with these properties and no other."""
    made: Schema = {"type": "object", "properties": dict(properties), "required": list(required), "additionalProperties": False}
    return described(made, description)


def with_default(schema: Schema, default: Any) -> Schema:
    """The schema with a default, where it is JSON."""
    if default is NOTHING:
        return schema
    try:
        return {**schema, "default": to_value(default)}
    except CodecError:
        return schema


def described(schema: Schema, text: str | None) -> Schema:
    """The schema with this description, in place of its own if it has one."""
    return {"description": text, **{key: each for key, each in schema.items() if key != "description"}} if text else schema


def _each_schema(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """The schema with the schemas in it changed; what are names or values there is left."""
    made: Schema = {}
    for key, value in schema.items():
        if key in {"properties", "$defs", "patternProperties"}:
            made[key] = {name: change(each) for name, each in value.items()}
        elif key in {"anyOf", "oneOf", "allOf", "prefixItems"}:
            made[key] = [change(each) for each in value]
        elif key in {"items", "additionalProperties"} and isinstance(value, dict):
            made[key] = change(value)
        else:
            made[key] = value
    return made


def _plain(schema: Schema) -> Schema:
    """A pydantic schema without the titles it makes up, its objects closed as validation has them."""
    made = _each_schema({key: value for key, value in schema.items() if key != "title"}, _plain)
    if "properties" in made:
        made["additionalProperties"] = False
    return made
