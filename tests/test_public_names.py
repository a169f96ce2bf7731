"""What users import: each name once, each explained, each error named where it is raised."""

import ast
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

FACES = ("actors", "actors.models", "actors.events", "actors.testing", "supervision")
each_face = pytest.mark.parametrize("face", FACES)


def _module(face: str) -> Any:
    return importlib.import_module(face)


def _own(face: str) -> list[Any]:
    """The classes and functions of ours that a face offers."""
    found = [getattr(_module(face), name) for name in _module(face).__all__]
    return [
        thing
        for thing in found
        if isinstance(thing, type | FunctionType) and thing.__module__.startswith(("actors", "supervision"))
    ]


def _methods(cls: type) -> Iterator[tuple[str, Any]]:
    for name, found in vars(cls).items():
        plain = getattr(found, "__func__", getattr(found, "fget", found))
        if not name.startswith("_") and isinstance(plain, FunctionType):
            yield f"{cls.__name__}.{name}", plain


def _functions(face: str) -> dict[str, Any]:
    found = {thing.__name__: thing for thing in _own(face) if isinstance(thing, FunctionType)}
    classes = [thing for thing in _own(face) if isinstance(thing, type)]
    return found | {name: method for cls in classes for name, method in _methods(cls)}


def _defined(face: str) -> set[str]:
    """The public names of a face: what a package's `__init__` imports or defines, what a plain module defines."""
    path = Path(_module(face).__file__)
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and path.name == "__init__.py":
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in found if not name.startswith("_")}


@each_face
def test_all_is_what_is_public(face: str) -> None:
    """What `import *`, the documentation and a reader's eye find is one list without doubles."""
    assert sorted(_module(face).__all__) == sorted(_defined(face))


@each_face
def test_every_public_class_and_function_says_what_it_does(face: str) -> None:
    """A reader without the source gets along."""
    bare = [
        thing.__name__
        for thing in _own(face)
        if not (thing.__doc__ or "").strip() or thing.__doc__.startswith(f"{thing.__name__}(")
    ]
    bare += [name for name, function in _functions(face).items() if not inspect.getdoc(function)]
    assert bare == []


@each_face
def test_a_docstring_names_the_errors_its_function_raises(face: str) -> None:
    """Who calls a function knows what to catch; the class may say it for all its methods."""
    errors = {
        name for name, found in vars(_module("actors")).items() if isinstance(found, type) and issubclass(found, Exception)
    }
    silent = []
    for name, function in _functions(face).items():
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        calls = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)]
        raised = {call.func.id for call in calls if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)}
        told = (inspect.getdoc(function) or "") + (inspect.getdoc(getattr(_module(face), name.split(".")[0])) or "")
        silent += [f"{name} raises {error}" for error in sorted(raised & errors) if error not in told]
    assert silent == []


def test_every_error_is_public() -> None:
    """What can reach a user can be caught by name."""
    defined = [
        found for found in vars(_module("actors._errors")).values() if isinstance(found, type) and issubclass(found, Exception)
    ]
    assert {error.__name__ for error in defined} <= set(_module("actors").__all__)


@pytest.mark.parametrize("face", ["actors", "supervision"])
def test_a_public_name_comes_from_one_place(face: str) -> None:
    """No name means two things, whichever face it is imported from."""
    other = _module("supervision" if face == "actors" else "actors")
    shared = set(_module(face).__all__) & set(other.__all__)
    assert {name for name in shared if getattr(_module(face), name) is not getattr(other, name)} == set()
