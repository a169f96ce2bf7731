"""No file too long to read at one sitting, no function too long for one screen, no net wider than it must be."""

import ast
from collections import Counter
from statistics import median

import pytest
from source import Module, modules

FILE, FUNCTION, PARAMETERS, MEDIAN = 400, 60, 6, 120  # lines, lines, positional ones without self, lines
MODULES = modules("actors", "supervision", "benchmarks", "tests")
PARTS = modules("actors", "supervision")
each_module = pytest.mark.parametrize("module", MODULES, ids=str)

WIDE = {  # module, function, what it catches: why it must
    ("actors._problems", "attempt", "Exception"): "a user's class, called to read a value, raises what it likes",
    (
        "actors.tools._call",
        "_caught",
        "BaseException",
    ): "a tool raises what it likes, asyncio's cancel too; its call has failed, no more",
    ("actors.tools._worker", "answer", "BaseException"): "an error that left a worker pickled would be raised in the parent",
    (
        "actors.store._writer",
        "_settle",
        "Exception",
    ): "a commit that is kept: what fails as memory follows is told to whoever made it",
    ("actors._waiters", "guarded", "Exception"): "foreign code that must not kill: predicates, callbacks of events",
    ("actors._waiters", "guarded_async", "Exception"): "the same, where it is awaited: tools",
    ("supervision._lives", "run", "BaseException"): "where the failure of a life becomes an exit",
    ("supervision._lives", "_say_goodbye", "BaseException"): "`on_stop` is foreign, and the life must end all the same",
    ("supervision.terminal._target", "imported", "Exception"): "a user's module, imported by name, raises what it likes",
}

CROWDED = {  # module, function: why it may take more
    ("actors._mailbox", "_keep"): "the hot path of every message: a record of its parts would cost what the envelope does",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(module: Module) -> list[Function]:
    return [node for node in ast.walk(module.tree) if isinstance(node, Function)]


def _wide(tree: ast.AST) -> list[str]:
    """What the handlers directly in this piece of code catch, where that is everything or nearly."""
    caught = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            types = [node.type] if not isinstance(node.type, ast.Tuple) else node.type.elts
            caught += [ast.unparse(kind) if kind else "everything" for kind in types]
    return [kind for kind in caught if kind in {"BaseException", "Exception", "everything"}]


@each_module
def test_a_file_is_read_at_one_sitting(module: Module) -> None:
    """One concept, one file: what is longer holds two."""
    assert module.lines <= FILE


def test_most_files_are_short() -> None:
    """The median is what a reader meets."""
    assert median(module.lines for module in PARTS if module.lines) <= MEDIAN


@each_module
def test_a_function_fits_one_screen(module: Module) -> None:
    """What is longer does more than one thing."""
    sizes = {node.name: (node.end_lineno or 0) - node.lineno + 1 for node in _functions(module)}
    assert {name: size for name, size in sizes.items() if size > FUNCTION} == {}


@each_module
def test_a_call_can_be_read_without_counting(module: Module) -> None:
    """More than six positional parameters are a record that has no name yet."""
    found = {}
    for node in _functions(module):
        names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        found[node.name] = len([name for name in names if name not in {"self", "cls"}])
    assert {name: count for name, count in found.items() if count > PARAMETERS and (module.name, name) not in CROWDED} == {}


def test_everything_is_caught_only_where_the_table_says() -> None:
    """A net that catches everything hides the bug that nobody expected."""
    nets = Counter[tuple[str, str, str]]()
    for module in PARTS:
        outer = Counter(_wide(module.tree))
        for function in _functions(module):
            inner = [node for node in ast.walk(function) if isinstance(node, Function) and node is not function]
            own = Counter(_wide(function)) - sum((Counter(_wide(node)) for node in inner), Counter())
            nets += Counter({(module.name, function.name, kind): count for kind, count in own.items()})
            outer -= own
        nets += Counter({(module.name, "", kind): count for kind, count in outer.items()})
    assert set(nets) == set(WIDE), "the table of allowed places and the places differ"
    assert max(nets.values(), default=1) == 1
