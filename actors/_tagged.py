"""Writes what `_strict` reads, and tells the records of a union apart by a `type` key, so that nothing is lost.

records in a union          {"type": <name>, fields...}; the name is the class's, or the one that a table gives
sets                        lists in one order, so that equal sets have equal JSON
Any, object                 JSON with media in it, see `_json`
"""

from collections.abc import Mapping
from typing import Any, TypeVar, Union, get_args, get_origin

import cattrs
import msgspec

from ._errors import ConfigError
from ._json import INTEGERS, TOO_BIG, escaped, restored, unfit
from ._outcome import Media
from ._problems import MISSING, Hook, MisfitError, Problem, mismatch, shown
from ._records import NOTHING, is_pydantic, is_record, is_typeddict, keys, members
from ._strict import strict_converter, union_factory
from ._types import SETS, TEXTS, bare, is_dict, is_enum, is_list, is_literal, is_union, name_of, options, written

TAG = "type"
Write = Any  # a callable of one value; cattrs calls it so
Tags = Mapping[str, type]


def tag_of(value: Mapping[str, Any], known: Tags) -> type:
    """The class that an object's `type` names.

    Raises:
        MisfitError: It names none of the known, or is missing.
    """
    if TAG not in value:
        raise MisfitError(Problem((TAG,), MISSING))
    try:
        return known[value[TAG]]
    except (KeyError, TypeError):
        expected = " or ".join(f'"{name}"' for name in known)
        raise MisfitError(Problem((TAG,), f"expected {expected}, got {shown(value[TAG])}")) from None


def fields_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object without its `type`."""
    fields = dict(value)
    del fields[TAG]
    return fields


def check_taggable(cls: Any) -> None:
    """Whether this class leaves the key `type` to the codec.

    Raises:
        ConfigError: It does not, or its fields cannot be told at all.
    """
    if is_pydantic(cls):
        taken = any(TAG in {name, field.alias} for name, field in cls.model_fields.items())
    elif is_record(cls) and not is_typeddict(cls):
        own = cls.__struct_config__.tag_field if issubclass(cls, msgspec.Struct) else None
        taken = own == TAG or TAG in keys(cls)
    else:
        raise ConfigError(
            f"{name_of(cls)} has no fields that the codec knows; write an attrs class, a dataclass, a pydantic model or a msgspec struct"
        )
    if taken:
        raise ConfigError(
            f"{name_of(cls)} has a field `{TAG}`, which is where its JSON says which class it is; rename the field"
        )


class _Unions:
    """The unions of one converter: those that a table gives names to, and those named by their classes."""

    def __init__(self, tables: Mapping[Any, Tags]) -> None:
        self._tables = tables

    def tags(self, tp: Any) -> Tags:
        """Which of a union's members are told by a tag: all its records, where there are several."""
        if tp in self._tables:
            return self._tables[tp]
        found = [bare(each) for each in options(tp)]
        records = [each for each in found if is_pydantic(each) or (is_record(each) and not is_typeddict(each))]
        if len(records) < 2:
            return {}
        for each in records:
            check_taggable(each)
        named = {each.__name__: each for each in records}
        if len(named) < len(records):
            raise ConfigError(f"{name_of(tp)} has two classes of one name, which JSON could not tell apart; rename one")
        return named

    def reader(self, tp: Any, converter: cattrs.Converter) -> Hook:
        """Reads a union."""
        tags = self.tags(tp)
        others = tuple(each for each in options(tp) if bare(each) not in tags.values())
        plain = union_factory(Union[others], converter) if len(others) > 1 else None  # noqa: UP007  # made of a tuple
        single = converter.get_structure_hook(others[0]) if len(others) == 1 else None
        readers = {cls: converter.get_structure_hook(cls) for cls in tags.values()}

        def structure(value: object, _: Any) -> Any:
            if tags and isinstance(value, Mapping):
                cls = tag_of(value, tags)
                return readers[cls](fields_of(value), cls)
            if plain is not None:
                return plain(value, tp)
            if single is not None:
                return single(value, others[0])
            raise mismatch("object", value)

        return structure

    def writer(self, tp: Any, converter: cattrs.Converter) -> Write:
        """Writes a union."""
        writers = {cls: (name, converter.get_unstructure_hook(cls)) for name, cls in self.tags(tp).items()}
        found = [bare(each) for each in options(tp)]
        widened = float in found and int not in found
        holders = [each for each in options(tp) if is_list(bare(each)) or is_dict(bare(each))]

        def unstructure(value: Any) -> Any:
            tagged = writers.get(type(value))
            if tagged is not None:
                name, write = tagged
                return {TAG: name, **write(value)}
            for each in holders:
                if isinstance(value, get_origin(bare(each)) or bare(each)):
                    return converter.unstructure(value, unstructure_as=each)
            return converter.unstructure(_write_float(value) if widened else value)

        return unstructure


# ------------------------------------------------------------------ writing
def _write_text(value: Any) -> Any:
    return msgspec.to_builtins(value) if isinstance(value, tuple(TEXTS)) else value


def _write_str(value: Any) -> Any:
    return str.__str__(value) if isinstance(value, str) else value


def _write_float(value: Any) -> Any:
    return float(value) if type(value) is int else value  # so that equal values have equal JSON


def _write_pydantic(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True, round_trip=True)


def _list_writer(tp: Any, converter: cattrs.Converter) -> Write:
    kind, args = get_origin(tp) or tp, get_args(tp)
    if kind is tuple and tp is not tuple and args[-1:] != (...,):
        hooks = [converter.get_unstructure_hook(each) for each in args]
        return lambda value: [hook(each) for hook, each in zip(hooks, value, strict=True)]
    hook = converter.get_unstructure_hook(args[0] if args else Any)
    if kind in SETS:
        return lambda value: sorted((hook(each) for each in value), key=msgspec.json.encode)
    return lambda value: [hook(each) for each in value]


def _dict_writer(tp: Any, converter: cattrs.Converter) -> Write:
    key_type, value_type = get_args(tp) or (str, Any)
    key_hook, value_hook = converter.get_unstructure_hook(key_type), converter.get_unstructure_hook(value_type)
    return lambda value: {key_hook(key): value_hook(each) for key, each in value.items()}


class _RecordWriter:
    """Writes one class of records. Its plan is made at the first use, so that a class may contain itself."""

    def __init__(self, cls: Any, converter: cattrs.Converter) -> None:
        self._cls, self._converter = cls, converter
        self._plan: tuple[tuple[str, str, Write], ...] | None = None

    def __call__(self, value: Any) -> dict[str, Any]:
        if self._plan is None:
            types = [(each, Any if each.type is NOTHING else each.type) for each in members(self._cls)]
            self._plan = tuple((each.key, each.attribute, self._converter.get_unstructure_hook(tp)) for each, tp in types)
        if isinstance(value, dict):  # a TypedDict's: without the keys that it leaves out, with those that it should not have
            hooks = {key: hook for key, _, hook in self._plan}
            return {key: hooks[key](each) if key in hooks else each for key, each in value.items()}
        return {key: hook(getattr(value, attribute)) for key, attribute, hook in self._plan}


def tagged_converter(tables: Mapping[Any, Tags]) -> cattrs.Converter:
    """A strict converter for both directions, without loss. `tables` gives names to the records of some unions."""
    converter, unions = strict_converter(), _Unions(tables)
    any_int = converter.get_structure_hook(int)
    read_media = converter.get_structure_hook(Media)

    def anything(tp: Any) -> bool:
        return tp is Any or tp is object or isinstance(tp, TypeVar)

    def named(tp: Any) -> bool:
        return bare(tp) is not tp

    def read_anything(value: Any, _: Any) -> Any:
        if found := unfit(value):
            raise MisfitError(found)
        return restored(value, lambda inner: read_media(inner, Media))

    def read_int(value: Any, tp: Any) -> Any:
        made = any_int(value, tp)
        if value not in INTEGERS:
            raise MisfitError(Problem((), TOO_BIG))
        return made

    converter.register_structure_hook(int, read_int)
    converter.register_structure_hook_func(anything, read_anything)
    converter.register_structure_hook_factory(is_union, unions.reader)
    converter.register_unstructure_hook_func(anything, escaped)
    converter.register_unstructure_hook(str, _write_str)
    converter.register_unstructure_hook(float, _write_float)
    for tp in TEXTS:
        converter.register_unstructure_hook(tp, _write_text)
    converter.register_unstructure_hook_func(is_enum, written)
    converter.register_unstructure_hook_func(is_literal, written)
    converter.register_unstructure_hook_func(is_pydantic, _write_pydantic)
    converter.register_unstructure_hook_factory(is_record, _RecordWriter)
    converter.register_unstructure_hook_factory(is_list, _list_writer)
    converter.register_unstructure_hook_factory(is_dict, _dict_writer)
    converter.register_unstructure_hook_factory(is_union, unions.writer)
    converter.register_unstructure_hook_factory(named, lambda tp: converter.get_unstructure_hook(bare(tp)))
    return converter
