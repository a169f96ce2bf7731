"""Which tools an agent has: its class's marked methods, and what stands in its `tools`."""

import inspect
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from actors._errors import ConfigError

from ._tool import UNMARKED, Mark, Tool, compiled, mark_of, where_of

COLLECTED = "__postroom_tools__"


def as_tool(found: Any) -> Tool:
    """What an agent has in its `tools` as a `Tool`: a `Tool`, a function marked with `tool`, or any function.

    Raises:
        ConfigError: It is none of these, or see `Tool`.
    """
    if isinstance(found, Tool):
        return found
    if not callable(found):
        raise ConfigError(f"{found!r} is no tool; write a function, or Tool(...)")
    return _made(compiled(found, mark_of(found, UNMARKED), where_of(found)))


def collect(cls: type) -> Mapping[str, Tool]:
    """The tools that a class's methods are, by name, in the order they were written, bases first. Made once for each class.

    Raises:
        ConfigError: One cannot be a tool as it is written, or two have one name.
    """
    made: Mapping[str, Tool] | None = vars(cls).get(COLLECTED)
    if made is None:
        made = MappingProxyType(by_name((_of_method(cls, name, mark) for name, mark in _marked(cls).items()), cls.__qualname__))
        setattr(cls, COLLECTED, made)
    return made


def by_name(tools: Iterable[Tool], where: str) -> dict[str, Tool]:
    """Tools by name; ConfigError where two have one."""
    found: dict[str, Tool] = {}
    for each in tools:
        if each.name in found:
            raise ConfigError(f"{where} has two tools called {each.name!r}; give one another with name=")
        found[each.name] = each
    return found


def _marked(cls: type) -> dict[str, Mark]:
    """Which attributes are tools: those whose nearest decorated definition is one and that are not taken away since."""
    marks: dict[str, Mark] = {}
    for base in reversed(cls.__mro__):
        for name, raw in vars(base).items():
            mark = mark_of(raw)
            if mark is not None:
                marks[name] = mark
            elif name in marks and not callable(getattr(raw, "__func__", raw)):
                del marks[name]
    return marks


def _of_method(cls: type, name: str, mark: Mark) -> Tool:
    raw = inspect.getattr_static(cls, name)
    fn = getattr(raw, "__func__", raw)
    where = f"tool {cls.__qualname__.rpartition('<locals>.')[2]}.{name}"
    return _made(compiled(fn, mark, where, method=raw if hasattr(raw, "__get__") else None))


def _made(fields: dict[str, Any]) -> Tool:
    made = object.__new__(Tool)
    made.__attrs_init__(**fields)
    return made
