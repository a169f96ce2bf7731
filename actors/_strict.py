"""From JSON to typed values, strictly: nothing is coerced, nothing is dropped, every problem is told with its path.

    str, bool, None     themselves                       datetime, date, time, UUID, ...   their usual text
    int                 an integer, never a bool         Enum        a member's value, of its own type
    float               a number, an integer too         Literal     one of the values, of its own type
    list, tuple, set    a list                           records     an object with their fields and no other
    dict                an object                        unions      see `union_factory`

A cattrs converter with every hook replaced: its own coerce (`bool("false")` is True there). A hook raises `MisfitError`,
which collects the problems of all fields and elements, not the first alone.
"""

import base64
from collections.abc import Mapping
from inspect import signature
from typing import Any, get_args, get_origin

import cattrs
import msgspec

from ._problems import MISSING, UNKNOWN, Hook, MisfitError, Problem, attempt, mismatch, shown
from ._records import is_pydantic, is_record, is_typeddict, members
from ._types import NONES, TEXTS, bare, is_dict, is_enum, is_list, is_literal, is_union, kinds, name_of, options, written


# ------------------------------------------------------------------ one value
def _str(value: object, tp: Any) -> Any:
    if not isinstance(value, str):
        raise mismatch("str", value)
    return value if tp is str else _narrowed(value, tp)


def _int(value: object, tp: Any) -> Any:
    if type(value) is not int:
        raise mismatch("int", value)
    return value if tp is int else _narrowed(value, tp)


def _float(value: object, tp: Any) -> Any:
    if type(value) is not float and type(value) is not int:
        raise mismatch("float", value)
    try:
        return float(value) if tp is float else _narrowed(value, tp)
    except OverflowError:
        raise mismatch("float", value) from None


def _narrowed(value: object, tp: Any) -> Any:
    """A hook of `str` is also found for its subclasses, a `StrEnum` among them."""
    return _enum_hook(tp)(value, tp) if is_enum(tp) else tp(value)


def _bool(value: object, _: Any) -> bool:
    if value is True or value is False:
        return value
    raise mismatch("bool", value)


def _none(value: object, _: Any) -> None:
    if value is not None:
        raise mismatch("null", value)


def _text(value: object, tp: Any) -> Any:
    text = _str(value, str)
    try:
        return msgspec.convert(text, tp)
    except msgspec.ValidationError:
        raise mismatch(TEXTS[tp], value) from None


def _bytes(value: object, _: Any) -> bytes:
    try:
        data = base64.b64decode(_str(value, str), validate=True)
    except ValueError:
        raise mismatch(TEXTS[bytes], value) from None
    if base64.b64encode(data).decode() != value:  # bits that nobody reads would make two texts of one value
        raise mismatch(TEXTS[bytes], value)
    return data


def _one_of(values: Mapping[tuple[type, Any], Any]) -> Hook:
    expected = " or ".join(msgspec.json.encode(value).decode() for _, value in values)

    def structure(value: object, _: Any) -> Any:
        try:
            return values[type(value), value]
        except (KeyError, TypeError):
            raise mismatch(expected, value) from None

    return structure


def _enum_hook(tp: Any) -> Hook:
    return _one_of({(type(member.value), member.value): member for member in tp})


def _literal_hook(tp: Any) -> Hook:
    return _one_of({(type(written(value)), written(value)): value for value in get_args(tp)})


def _pydantic_hook(tp: Any) -> Hook:
    told: dict[str, Any] = {"strict": True}
    if "extra" in signature(tp.model_validate_json).parameters:  # since pydantic 2.12; before, the model's own setting holds
        told["extra"] = "forbid"
    return lambda value, _: tp.model_validate_json(msgspec.json.encode(value), **told)


# ------------------------------------------------------------------ many values
def _list_factory(tp: Any, converter: cattrs.Converter) -> Hook:
    kind, args = get_origin(tp) or tp, get_args(tp)
    if kind is tuple and tp is not tuple and args[-1:] != (...,):
        return _fixed_tuple(args, converter)
    item = args[0] if args else Any
    hook = converter.get_structure_hook(item)

    def structure(value: object, _: Any) -> Any:
        if not isinstance(value, list):
            raise mismatch("list", value)
        found: list[Problem] = []
        made = [attempt(hook, each, item, index, found) for index, each in enumerate(value)]
        if found:
            raise MisfitError(*found)
        return made if kind is list else kind(made)

    return structure


def _fixed_tuple(items: tuple[Any, ...], converter: cattrs.Converter) -> Hook:
    hooks = [converter.get_structure_hook(item) for item in items]

    def structure(value: object, _: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) != len(items):
            raise mismatch(f"list of {len(items)}", value)
        found: list[Problem] = []
        rows = enumerate(zip(hooks, value, items, strict=True))
        made = tuple(attempt(hook, each, item, index, found) for index, (hook, each, item) in rows)
        if found:
            raise MisfitError(*found)
        return made

    return structure


def _dict_factory(tp: Any, converter: cattrs.Converter) -> Hook:
    key_type, value_type = get_args(tp) or (str, Any)
    key_hook, value_hook = converter.get_structure_hook(key_type), converter.get_structure_hook(value_type)

    def structure(value: object, _: Any) -> dict[Any, Any]:
        if not isinstance(value, Mapping):
            raise mismatch("object", value)
        found: list[Problem] = []
        made = {
            attempt(key_hook, key, key_type, str(key), found): attempt(value_hook, each, value_type, str(key), found)
            for key, each in value.items()
        }
        if found:
            raise MisfitError(*found)
        return made

    return structure


class _Record:
    """Reads one class of records. Its plan is made at the first use, so that a class may contain itself."""

    def __init__(self, cls: Any, converter: cattrs.Converter) -> None:
        self._cls, self._converter = cls, converter
        self._plan: tuple[tuple[str, str, Hook, Any, bool], ...] | None = None

    def _planned(self) -> tuple[tuple[str, str, Hook, Any, bool], ...]:
        find, keyed = self._converter.get_structure_hook, is_typeddict(self._cls)
        return tuple(
            (each.key, each.key if keyed else each.init, find(each.type), each.type, each.required)
            for each in members(self._cls)
        )

    def __call__(self, value: object, _: Any) -> Any:
        if not isinstance(value, Mapping):
            raise mismatch("object", value)
        if self._plan is None:
            self._plan = self._planned()
        found: list[Problem] = []
        made: dict[str, Any] = {}
        for key, init, hook, tp, required in self._plan:
            if key in value:
                made[init] = attempt(hook, value[key], tp, key, found)
            elif required:
                found.append(Problem((key,), MISSING))
        if len(made) != len(value):
            known = {key for key, *_ in self._plan}
            found += [Problem((str(key),), UNKNOWN) for key in value if key not in known]
        if found:
            raise MisfitError(*found)
        return self._cls(**made)


# ------------------------------------------------------------------ one of several types
def union_factory(tp: Any, converter: cattrs.Converter) -> Hook:
    """Read by the member that takes what came.

    Where several could, the most particular goes first: `str` takes what no other member of its kind takes, `float` what is no
    integer; the rest go in the order they are written. A value that fits none is told about all that it might have been.
    """
    members_ = options(tp)
    readers: dict[type, list[tuple[Hook, Any]]] = {}
    for member in sorted(members_, key=lambda each: {str: 2, float: 1}.get(bare(each), 0)):
        for kind in kinds(member):
            readers.setdefault(kind, []).append((converter.get_structure_hook(member), member))
    expected = " or ".join("null" if bare(member) in NONES else name_of(member) for member in members_)

    def structure(value: object, _: Any) -> Any:
        fitting = readers.get(type(value), [])
        if len(fitting) == 1:
            hook, member = fitting[0]
            return hook(value, member)
        told = [f"expected {expected}, got {shown(value)}"]
        for hook, member in fitting:
            found: list[Problem] = []
            made = attempt(hook, value, member, None, found)
            if not found:
                return made
            told.append(f"no {name_of(member)}: {MisfitError(*found)}")
        raise MisfitError(Problem((), "; ".join(told)))

    return structure


def strict_converter() -> cattrs.Converter:
    """A converter that reads strictly; what it writes (`unstructure`) is left as cattrs has it."""
    converter = cattrs.Converter()
    for scalar, hook in ((str, _str), (int, _int), (float, _float), (bool, _bool), (type(None), _none), (bytes, _bytes)):
        converter.register_structure_hook(scalar, hook)
    for text in TEXTS:
        if text is not bytes:
            converter.register_structure_hook(text, _text)
    converter.register_structure_hook_func(lambda tp: tp is None, _none)
    converter.register_structure_hook_factory(is_enum, _enum_hook)
    converter.register_structure_hook_factory(is_literal, _literal_hook)
    converter.register_structure_hook_factory(is_pydantic, _pydantic_hook)
    converter.register_structure_hook_factory(is_record, _Record)
    converter.register_structure_hook_factory(is_list, _list_factory)
    converter.register_structure_hook_factory(is_dict, _dict_factory)
    converter.register_structure_hook_factory(is_union, union_factory)
    return converter
