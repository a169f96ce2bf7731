"""Which method handles a message: read off the annotations when the class is made.

    one handler per message type       a second one in the same class chain is a TypeError when the class is made
    inherited                          a subclass has its bases' handlers; a method of the same name replaces one
    a union's members                  count singly
    several fit                        the handler of the first class in the message's MRO wins; `object` catches the rest

A base that is no actor may have handlers too.
"""

import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from ._annotations import nearby_names, resolved

F = TypeVar("F", bound=Callable[..., Any])
Handler = Callable[[Any, Any], Any]
MARK = "__postroom_handles__"


def handle(fn: F) -> F:
    """Mark a method, sync or async, as the handler of the message type it annotates.

    It takes `self` and one message. What it returns answers an `ask` (`NO_REPLY`: `reply` will, later). What it raises
    crashes the actor, but for `Reject` and the refusals that it got from other actors.
    """
    setattr(fn, MARK, True)
    return fn


def _types_of(owner: type, name: str, fn: Callable[..., Any], frame: FrameType | None) -> tuple[type, ...]:
    where = f"{owner.__qualname__}.{name}"
    parameters = list(inspect.signature(fn).parameters.values())[1:]
    required = [each for each in parameters if each.default is inspect.Parameter.empty]
    if len(parameters) < 1 or len(required) > 1 or parameters[0].kind not in {
        inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD,
    }:  # fmt: skip
        raise TypeError(f"{where} takes {len(parameters)} arguments; a handler takes self and one message")
    parameter = parameters[0]
    if parameter.annotation is inspect.Parameter.empty:
        raise TypeError(f"{where} does not say what it handles; annotate {parameter.name!r} with the message's class")
    try:
        annotation = resolved(fn, parameter.name, parameter.annotation, {**nearby_names(fn, frame), owner.__name__: owner})
    except (NameError, AttributeError, SyntaxError) as error:
        raise TypeError(
            f"{where}: its annotation {parameter.annotation!r} cannot be resolved ({error}); define the class before the actor"
        ) from None
    return tuple(dict.fromkeys(_member(where, each) for each in _members(annotation)))


def _members(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in {Union, types.UnionType}:
        return tuple(leaf for member in get_args(annotation) for leaf in _members(member))
    return (annotation,)


def _member(where: str, annotation: Any) -> type:
    if annotation is Any:
        return object
    origin = get_origin(annotation) or annotation
    if origin is None:
        return types.NoneType
    if not isinstance(origin, type):
        raise TypeError(f"{where} handles {annotation!r}, which is no class; a message is told by its class")
    return origin


def handled_by(owner: type, frame: FrameType | None) -> dict[str, tuple[type, ...]]:
    """Which of the class's own methods handle what, by name. `frame`: where it is being defined."""
    return {name: _types_of(owner, name, fn, frame) for name, fn in vars(owner).items() if getattr(fn, MARK, False)}


def _inherited(owner: type) -> Iterator[tuple[str, tuple[type, ...]]]:
    """What the bases' methods handle, the farthest base first; a base that is no actor may have handlers too."""
    for base in reversed(owner.__mro__[1:]):
        known = vars(base).get("__handled__")
        yield from (handled_by(base, None) if known is None else known).items()


def handlers_of(owner: type, own: Mapping[str, tuple[type, ...]]) -> dict[type, Handler]:
    """The class's table, message type to function, inherited ones included. TypeError if two methods handle one type."""
    table: dict[type, str] = {}
    for name, kinds in {**dict(_inherited(owner)), **own}.items():
        if not callable(getattr(owner, name)):  # `name = None` in a subclass takes a handler away
            continue
        for kind in kinds:
            if kind in table:
                raise TypeError(
                    f"{owner.__qualname__} has two handlers for {kind.__qualname__}: {table[kind]} and {name}; keep one"
                )
            table[kind] = name
    return {kind: getattr(owner, name) for kind, name in table.items()}


def resolve(table: Mapping[type, Handler], kind: type) -> Handler | None:
    """The handler for a message of this class, by its MRO."""
    for base in kind.__mro__:
        found = table.get(base)
        if found is not None:
            return found
    return None
