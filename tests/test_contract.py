"""The public contract in `contract/api`: what is built has its names, its parameters and its defaults.

The stubs promise the whole; `NOT_YET` says what is still to come. A promise that is kept must leave that list, so the
list shrinks and never lies. More optional keyword parameters than promised are fine; fewer are not.
"""

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from attrs import frozen

API = Path(__file__).parent / "contract" / "api"
STUBS = {
    "actors": API / "actors" / "__init__.pyi",
    "actors.events": API / "actors" / "events.pyi",
    "actors.models": API / "actors" / "models.pyi",
    "actors.testing": API / "actors" / "testing.pyi",
    "supervision": API / "supervision" / "__init__.pyi",
}
NOT_YET = {  # what comes with it: the names; a parameter as `function(parameter)`
    "agents writing to each other": """
        actors.Helper actors.Agent.helpers
    """,
    "policy: rules, wrappers, hooks, approvals": """
        actors.Tool.bind actors.Agent.policy
        actors.When actors.Attached actors.Rule actors.CallContext actors.Next actors.Layer actors.Timeout actors.Retries
        actors.Cache actors.Truncate actors.Label actors.Approve actors.Continue actors.Deny actors.Defer actors.Answer
        actors.Annotate actors.Decision actors.Command actors.ToolHook actors.Before actors.After actors.Wrapper actors.Wrap
        actors.ToolPolicy
        supervision.Approval supervision.System.approvals supervision.System.approve supervision.System.deny
        supervision.open_system(policy)
    """,
}
LATER = {name for names in NOT_YET.values() for name in names.split()}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Kind = inspect._ParameterKind
ANY = object()  # a default that the stub leaves open
NONE = inspect.Parameter.empty
MISSING = object()


@frozen(eq=False)
class Promise:
    """One name that a stub promises, and the syntax that promises it (one for each overload)."""

    module: str
    path: tuple[str, ...]
    nodes: tuple[ast.AST, ...]

    @property
    def name(self) -> str:
        """As a user writes it."""
        return ".".join((self.module, *self.path))

    @property
    def owner(self) -> str:
        """What it stands in."""
        return self.name.rpartition(".")[0]

    def __str__(self) -> str:
        return self.name


def _names(node: ast.AST) -> list[str]:
    """What this statement of a stub defines; type variables are its own business."""
    if isinstance(node, Function | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    if isinstance(node, ast.Assign) and not (isinstance(node.value, ast.Call)):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []


def _promises(module: str, body: list[ast.stmt], path: tuple[str, ...] = ()) -> Iterator[Promise]:
    found: dict[str, list[ast.AST]] = {}
    for node in body:
        for name in _names(node):
            found.setdefault(name, []).append(node)
    for name, nodes in found.items():
        yield Promise(module, (*path, name), tuple(nodes))
        if isinstance(nodes[0], ast.ClassDef):
            yield from _promises(module, nodes[0].body, (*path, name))


PROMISES = [promise for module, path in STUBS.items() for promise in _promises(module, ast.parse(path.read_text()).body)]


def _built(promise: Promise) -> Any:
    """The object behind a promise; MISSING where there is nothing, ANY where it is a field of instances."""
    try:
        found: Any = importlib.import_module(promise.module)
    except ModuleNotFoundError:
        return MISSING
    for part in promise.path:
        if isinstance(found, type) and not hasattr(found, part):
            hints = {name for base in found.__mro__ for name in vars(base).get("__annotations__", {})}
            return ANY if part in hints or f"self.{part} = " in inspect.getsource(found) else MISSING
        found = getattr(found, part, MISSING)
    return found


def _default(node: ast.expr | None) -> Any:
    if node is None:
        return NONE
    if isinstance(node, ast.Constant):
        return ANY if node.value is ... else node.value
    if isinstance(node, ast.Name):
        return getattr(importlib.import_module("actors"), node.id)
    return ast.literal_eval(node)


def _parameters(node: Function) -> dict[str, tuple[Kind, Any]]:
    """The promised parameters of a function, without self: name to kind and default."""
    args, found = node.args, {}
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
    for argument, default in zip(positional, defaults, strict=True):
        kind = Kind.POSITIONAL_ONLY if argument in args.posonlyargs else Kind.POSITIONAL_OR_KEYWORD
        found[argument.arg] = (kind, _default(default))
    for argument, value in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        found[argument.arg] = (Kind.KEYWORD_ONLY, _default(value))
    if args.vararg:
        found["*"] = (Kind.VAR_POSITIONAL, NONE)
    if args.kwarg:
        found["**"] = (Kind.VAR_KEYWORD, NONE)
    return {name: what for name, what in found.items() if name not in {"self", "cls"}}


def _signature(found: Any) -> dict[str, tuple[Kind, Any]]:
    """The same of what is built."""
    stars = {Kind.VAR_POSITIONAL: "*", Kind.VAR_KEYWORD: "**"}
    parameters = inspect.signature(found).parameters.values()
    return {
        stars.get(part.kind, part.name): (part.kind, part.default) for part in parameters if part.name not in {"self", "cls"}
    }


def _same_default(promised: Any, built: Any, *, overloaded: bool) -> bool:
    if promised is NONE or built is NONE:
        return promised is built or (overloaded and promised is NONE)
    return promised is ANY or built is attrs.NOTHING or bool(promised == built)


def _check_parameters(promise: Promise, found: Any) -> list[str]:
    built, wrong = _signature(found), []
    overloaded = len(promise.nodes) > 1
    promised = {name: what for node in promise.nodes if isinstance(node, Function) for name, what in _parameters(node).items()}
    name = promise.owner if promise.path[-1] == "__init__" else promise.name
    for parameter, (kind, default) in promised.items():
        if f"{name}({parameter})" in LATER:
            wrong += [f"{parameter} is built: take it out of NOT_YET"] if parameter in built else []
        elif parameter not in built:
            wrong.append(f"{parameter} is missing")
        elif built[parameter][0] is not kind and kind is not Kind.POSITIONAL_ONLY:
            wrong.append(f"{parameter} is {built[parameter][0].description}, promised {kind.description}")
        elif not _same_default(default, built[parameter][1], overloaded=overloaded):
            wrong.append(f"{parameter} has the default {built[parameter][1]!r}, promised {default!r}")
    stars = {Kind.VAR_POSITIONAL, Kind.VAR_KEYWORD}
    more = [name for name, (kind, default) in built.items() if name not in promised and default is NONE and kind not in stars]
    return wrong + [f"{name} is required, and not promised" for name in more]


def _check_function(promise: Promise, node: Function, found: Any) -> list[str]:
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    if "property" in decorators:
        return ["is a method, promised a property"] if inspect.isroutine(found) and not inspect.isdatadescriptor(found) else []
    if isinstance(node, ast.AsyncFunctionDef) and not inspect.iscoroutinefunction(found):
        told = str(inspect.signature(found).return_annotation)
        return [] if "Awaitable" in told or "Coroutine" in told else ["is not async"]
    return _check_parameters(promise, found)


def _check_class(promise: Promise, node: ast.ClassDef, found: Any) -> list[str]:
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
    known = [getattr(importlib.import_module(promise.module), base, getattr(ast, base, None)) for base in bases]
    return [f"is no {base.__name__}" for base in known if isinstance(base, type) and base not in found.__mro__]


def _check(promise: Promise, found: Any) -> list[str]:
    node = promise.nodes[0]
    if isinstance(node, ast.ClassDef):
        return _check_class(promise, node, found)
    if isinstance(node, Function) and found is not ANY:
        target = getattr(importlib.import_module(promise.module), promise.path[0]) if node.name == "__init__" else found
        return _check_function(promise, node, target)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return [] if found == node.value.value else [f"is {found!r}, promised {node.value.value!r}"]
    return []


def _later(promise: Promise) -> bool:
    parts = promise.name.split(".")
    return any(".".join(parts[:length]) in LATER for length in range(1, len(parts) + 1))


@pytest.mark.parametrize("promise", [promise for promise in PROMISES if not _later(promise)], ids=str)
def test_what_is_built_keeps_its_promise(promise: Promise) -> None:
    """A script written against the contract runs, and goes on running."""
    found = _built(promise)
    assert found is not MISSING, f"{promise.name} is missing"
    assert _check(promise, found) == []


@pytest.mark.parametrize("name", sorted(name for name in LATER if "(" not in name))
def test_what_is_to_come_is_promised_and_not_there_yet(name: str) -> None:
    """The list of what is missing never lies."""
    promises = [promise for promise in PROMISES if promise.name == name] or [Promise(name, (), ())]
    assert name in STUBS or promises[0].nodes, "nobody promised it"
    assert _built(promises[0]) is MISSING, "it is built: take it out of NOT_YET"


@pytest.mark.parametrize("name", sorted(name for name in LATER if "(" in name))
def test_a_parameter_to_come_is_promised(name: str) -> None:
    """A parameter in the list stands in the contract."""
    function, _, parameter = name.removesuffix(")").partition("(")
    [promise] = [
        promise
        for promise in PROMISES
        if promise.name in {function, f"{function}.__init__"} and isinstance(promise.nodes[0], Function)
    ]
    assert parameter in {name for node in promise.nodes if isinstance(node, Function) for name in _parameters(node)}
