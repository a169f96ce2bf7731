"""A function's parameters, compiled once: what a model is shown, and how what it sends becomes the function's arguments."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args

from attrs import frozen

from actors._annotations import resolved
from actors._errors import BadArguments, ConfigError
from actors._problems import MISSING, Hook, Problem, attempt
from actors._records import NOTHING
from actors._strict import strict_converter
from actors._types import is_union, text_of

from ._context import ToolContext
from ._docstring import split_docstring
from ._schema import Describer, Schema, closed, described, with_default

_EMPTY = inspect.Parameter.empty
_CONVERTER = strict_converter()


@frozen(eq=False)
class Argument:
    """One argument that the model gives: `hook(value, tp)` reads it."""

    name: str
    tp: Any
    hook: Hook
    required: bool


def _as_it_is(value: object, _: Any) -> object:
    return value


@frozen(eq=False)
class Signature:
    """What a function takes from a model, and what it takes from the runtime.

    `context` is the parameter that gets the call's `ToolContext`; `open` says whether it takes arguments by any name.
    """

    tool: str
    description: str
    schema: Mapping[str, Any]
    arguments: tuple[Argument, ...]
    context: str | None
    open: bool = False

    def parse(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The function's arguments, from what a model gave. Strict: nothing is coerced, and nothing is dropped.

        Raises:
            BadArguments: They do not fit; the text tells the model every problem with its path.
        """
        found: list[Problem] = []
        made: dict[str, Any] = {}
        for each in self.arguments:
            if each.name in given:
                made[each.name] = attempt(each.hook, given[each.name], each.tp, each.name, found)
            elif each.required:
                found.append(Problem((each.name,), MISSING))
        if len(made) == len(given) and not found:
            return made
        known = {each.name for each in self.arguments}
        unknown = {name: value for name, value in given.items() if name not in known}
        if found or (unknown and not self.open):
            raise BadArguments(self._told(found, unknown), tool=self.tool)
        return {**made, **unknown}

    def _told(self, found: list[Problem], unknown: Mapping[str, Any]) -> str:
        takes = ", ".join(f"`{each.name}`" for each in self.arguments)
        extra = [] if self.open else [f"unknown argument `{name}` (it takes {takes or 'none'})" for name in unknown]
        return f"bad arguments for {self.tool}: {'; '.join([*(each.sentence for each in found), *extra])}"


def _is_context(tp: Any) -> bool:
    return tp is ToolContext or (is_union(tp) and ToolContext in get_args(tp))


class _Reader:
    """Reads one function's parameters. `where` names the tool in errors; `loose`: the author gave a schema."""

    def __init__(self, fn: Callable[..., Any], where: str, names: Mapping[str, Any], *, loose: bool) -> None:
        self._fn, self._where, self._names, self._loose = fn, where, names, loose
        self._describer = Describer(where)
        self.texts = split_docstring(fn)
        self.context: str | None = None
        self.open = False

    def arguments(self, parameters: list[inspect.Parameter]) -> Iterator[tuple[Argument, Schema, Any]]:
        """Each argument that a model gives, with its schema and its default."""
        for each in parameters:
            if each.kind is each.VAR_KEYWORD and self._loose:
                self.open = True
                continue
            if each.kind not in {each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY}:
                raise self._error(each, f"is {each.kind.description}; a model names its arguments: write `{each.name}: <type>`")
            tp = self._type(each)
            if _is_context(tp):
                if self.context is not None:
                    raise self._error(each, f"is a second ToolContext beside `{self.context}`; take one")
                self.context = each.name
                continue
            schema = self._schema(each, tp)
            hook = _as_it_is if tp is NOTHING else _CONVERTER.get_structure_hook(tp)
            default = NOTHING if each.default is _EMPTY else each.default
            yield Argument(each.name, tp, hook, each.default is _EMPTY), schema, self._shown(default, hook, tp)

    @property
    def defs(self) -> dict[str, Schema]:
        """What the arguments' schemas refer to."""
        return self._describer.defs

    def _type(self, parameter: inspect.Parameter) -> Any:
        if parameter.annotation is _EMPTY:
            if self._loose:
                return NOTHING
            raise self._error(parameter, f"has no annotation; write its type, `{parameter.name}: str` say")
        try:
            return resolved(self._fn, parameter.name, parameter.annotation, self._names)
        except (NameError, SyntaxError, TypeError, AttributeError) as error:
            told = f"is annotated {parameter.annotation!r}, which cannot be resolved ({error}); define it before the tool"
            raise self._error(parameter, told) from None

    def _schema(self, parameter: inspect.Parameter, tp: Any) -> Schema:
        if tp is NOTHING:
            return {}
        schema = self._describer.schema(tp, parameter.name)
        return schema if text_of(tp) else described(schema, self.texts[1].get(parameter.name))

    def _shown(self, default: Any, hook: Hook, tp: Any) -> Any:
        """A default that validation would not take back (None for an `int`) is Python's business, and not shown."""
        shown = with_default({}, default).get("default", NOTHING)
        found: list[Problem] = []
        if shown is not NOTHING:
            attempt(hook, shown, tp, None, found)
        return NOTHING if found else shown

    def _error(self, parameter: inspect.Parameter, told: str) -> ConfigError:
        return ConfigError(f"{self._where}: parameter `{parameter.name}` {told}")


def read_signature(
    fn: Callable[..., Any],
    name: str,
    where: str,
    names: Mapping[str, Any],
    *,
    skip: int = 0,
    schema: Mapping[str, Any] | None = None,
) -> Signature:
    """Compile a function's parameters, without the first `skip`.

    With a `schema` of the author's own, that is shown; parameters that are annotated are still validated, others and `**rest`
    take what comes.

    Raises:
        ConfigError: A parameter is not annotated, or so that a model cannot be told. The text names tool and parameter.
    """
    try:
        parameters = list(inspect.signature(fn).parameters.values())[skip:]
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: its parameters cannot be read ({error}); wrap it in a function of your own") from None
    reader = _Reader(fn, where, names, loose=schema is not None)
    read = list(reader.arguments(parameters))
    if schema is None:
        properties = {each.name: with_default(shown, default) for each, shown, default in read}
        made = closed(properties, [each.name for each, _, _ in read if each.required])
        schema = {**made, "$defs": reader.defs} if reader.defs else made
    return Signature(name, reader.texts[0], schema, tuple(each for each, _, _ in read), reader.context, reader.open)
