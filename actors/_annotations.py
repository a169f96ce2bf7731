"""What a function's annotations mean, also where they are strings that name something local.

A string is resolved by the function's module, and by the names that stood around the function when it was decorated:
a class or an alias defined in the same test, say, which its module does not know.
"""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from types import CellType, FrameType, SimpleNamespace
from typing import Any, get_type_hints

_NAME = re.compile(r"[^\W\d]\w*")


def plain_function(fn: Any) -> Any:
    """The function below its wrappers: partials, bound methods, `functools.wraps`, objects that can be called."""
    while True:
        if isinstance(fn, functools.partial):
            fn = fn.func
        elif inspect.ismethod(fn):
            fn = fn.__func__
        elif hasattr(fn, "__wrapped__"):
            fn = fn.__wrapped__
        elif not inspect.isroutine(fn) and not inspect.isclass(fn) and callable(fn):
            fn = type(fn).__call__
        else:
            return fn


def nearby_names(fn: Callable[..., Any], frame: FrameType | None) -> dict[str, Any]:
    """What the names in the function's string annotations mean where it is being defined; only what is not global.

    Nothing else of the frames is kept: they hold whatever their functions hold.
    """
    texts = [text for text in getattr(fn, "__annotations__", {}).values() if isinstance(text, str)]
    wanted = {name for text in texts for name in _NAME.findall(text)}
    found: dict[str, Any] = {}
    while wanted and frame is not None and frame.f_locals is not frame.f_globals:
        for name in wanted & frame.f_locals.keys():
            found.setdefault(name, frame.f_locals[name])
        frame = frame.f_back
    return found


def _closed_over(fn: Any) -> dict[str, Any]:
    """What the function's body uses from around it; a cell that is not filled yet is left out."""
    cells = zip(getattr(getattr(fn, "__code__", None), "co_freevars", ()), getattr(fn, "__closure__", None) or (), strict=False)
    return {name: cell.cell_contents for name, cell in cells if cell != CellType()}


def resolved(fn: Callable[..., Any], name: str, annotation: Any, names: Mapping[str, Any]) -> Any:
    """What one annotation of this function means.

    Raises:
        NameError: It names something that is not there.
        SyntaxError: It is no expression.
        TypeError: It is no type.
    """
    plain = plain_function(fn)
    module = getattr(plain, "__globals__", {})
    holder: Any = SimpleNamespace(__annotations__={name: annotation})
    return get_type_hints(holder, module, {**_closed_over(plain), **names}, include_extras=True)[name]
