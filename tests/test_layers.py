"""The architecture, as a table that is enforced: a module may import only modules of rows above its own.

One message, top to bottom: a ref makes an envelope, the router admits it, the mailbox keeps it, a receive point takes
it, the agent's turn decides, a model answers, calls run as children, their ends are mail again, an exit reaches the
supervisor, which looks it up in its table. No step reaches back to an earlier file but by sending mail.

To add a module, add a row where it is read: its name, then what a reader finds there. `#` starts a heading.
"""

import ast
import sys
from collections.abc import Iterator

import pytest
from source import Module, modules

TABLE = """
# the kernel: what happened, and how mail travels
actors._exit                how a life ends, as a value
actors._errors              every error, split by who must act
actors._outcome             what became of a tool call, as a value
actors._envelope            what travels: senders, bodies, the envelope, the receipt

# models: what is said to a model, and what it answers
actors.models._blocks       what an answer is made of
actors.models._render       mail as a model reads it
actors.models._items        the transcript's items
actors.models._api          what a model is to this project

# sub-packages whose modules are imported by their full names
actors.agent                a session's turn, and what drives it
actors.store                where sessions are kept
actors.tools                functions a model may call
"""

ROWS = [line.split(maxsplit=1)[0] for line in TABLE.splitlines() if line and not line.startswith("#")]
MODULES = modules("actors", "supervision")
SCRIPTS = "supervision.examples."  # they stand outside and use the public face, as a user's script does

OUTSIDE = {  # which package may be imported where; the rest of the world nowhere
    "attrs": ("actors", "supervision"),
    "cattrs": ("actors", "supervision"),
    "msgspec": ("actors", "supervision"),
    "trio": ("actors", "supervision"),
    "trio_util": ("actors", "supervision"),
    "outcome": ("actors", "supervision"),
    "openai": ("actors.models.openai",),
    "httpx": ("actors.models.openai",),
    "rich": ("supervision.terminal",),
}
LATE = {"actors.models._resolve"}  # the one place that imports inside a function: SDKs load when a model is used
EMPTY = {"actors.agent", "actors.store", "actors.tools", "supervision.terminal"}  # packages without a face of their own


def _imports(module: Module, tree: ast.AST | None = None) -> Iterator[tuple[str, int]]:
    """What a module imports, by absolute name, with the line."""
    known = {other.name for other in MODULES}
    for node in ast.walk(tree or module.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = module.package.split(".")[: len(module.package.split(".")) - node.level + 1]
                base = ".".join([*up, base] if base else up)
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield (full if full in known else base), node.lineno


def _inside(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


each_module = pytest.mark.parametrize("module", MODULES, ids=str)
each_part = pytest.mark.parametrize("module", [module for module in MODULES if not module.name.startswith(SCRIPTS)], ids=str)


def test_the_table_names_every_module_once() -> None:
    """A file that is in no row is a wall nobody decided on."""
    files = [module.name for module in MODULES if not module.name.startswith(SCRIPTS)]
    assert sorted(ROWS) == sorted(files)


@each_part
def test_a_module_imports_only_rows_above(module: Module) -> None:
    """Whoever reads from the top never meets a name from further down."""
    above = set(ROWS[: ROWS.index(module.name)]) if module.name in ROWS else set(ROWS)
    ours = [(name, line) for name, line in _imports(module) if _inside(name, "actors", "supervision")]
    assert [f"line {line}: {name}" for name, line in ours if name not in above] == []


@each_module
def test_actors_never_imports_supervision(module: Module) -> None:
    """`actors` says what happened; `supervision` says what happens next."""
    if module.name.startswith("actors"):
        assert not [name for name, _ in _imports(module) if _inside(name, "supervision")]


@each_part
def test_no_module_imports_its_own_root(module: Module) -> None:
    """A part that imports the whole cannot be read, or loaded, before it."""
    root = module.name.split(".", maxsplit=1)[0]
    assert root not in {name for name, _ in _imports(module)}


@each_module
def test_imports_stand_at_the_top(module: Module) -> None:
    """What a file needs is said where it begins."""
    functions = [
        node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    ]
    late = {f"line {line}: {name}" for function in functions for name, line in _imports(module, function)}
    assert not late or module.name in LATE


@each_module
def test_nothing_hides_behind_type_checking(module: Module) -> None:
    """An import for the type checker alone is a knot that somebody tied."""
    names = {node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(module.tree) if isinstance(node, ast.Attribute)}
    assert "TYPE_CHECKING" not in names


@each_module
def test_the_outside_is_imported_where_the_table_says(module: Module) -> None:
    """The core runs without any SDK, and drawing is nobody's business but the terminal's."""
    roots = {name.split(".", maxsplit=1)[0] for name, _ in _imports(module)}
    outside = roots - {"actors", "supervision"} - sys.stdlib_module_names
    assert sorted(root for root in outside if not _inside(module.name, *OUTSIDE.get(root, ()))) == []


@pytest.mark.parametrize("name", sorted(EMPTY))
def test_a_package_without_a_face_is_empty(name: str) -> None:
    """A name is re-exported once, by the package that users import."""
    trees = [module.tree.body for module in MODULES if module.name == name]
    assert not any(trees)
