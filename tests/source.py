"""The project's own source files, parsed: what the tests of its shape read."""

import ast
from functools import cache
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).parents[1]


@frozen(eq=False)
class Module:
    """One file: its dotted name (a package's `__init__` has the package's), its lines, its syntax tree."""

    name: str
    path: Path
    lines: int
    tree: ast.Module

    @property
    def package(self) -> str:
        """The package that a relative import in it starts from."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    def __str__(self) -> str:
        return self.name


def _read(path: Path) -> Module:
    text = path.read_text()
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(name, path, text.count("\n"), ast.parse(text))


@cache
def modules(*folders: str) -> tuple[Module, ...]:
    """Every Python file under these folders of the project, by name."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return tuple(_read(path) for path in paths)
