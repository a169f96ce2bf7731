"""Which clock a test runs on: trio's own, or, where its module says `virtual_time`, one that jumps when everybody waits."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from postgres_server import VARIABLE, Server, empty, programs
from postgres_stores import Losing
from trio.testing import MockClock

from actors.store import _pg_pool

CLOCKS = {
    "virtual_time": "its async tests run on a clock that jumps to the next deadline",
    "real_time": "it runs on trio's own clock although its module says otherwise: threads know no other",
}


def _jumping(fn: Callable[..., Any], **how: Any) -> Any:
    return trio.run(fn, **{**how, "clock": MockClock(autojump_threshold=0)})


def pytest_configure(config: pytest.Config) -> None:
    """Name the markers; unknown ones are errors."""
    for name, what in CLOCKS.items():
        config.addinivalue_line("markers", f"{name}: {what}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A clock that was chosen goes before the one that the plugin gives to every async test."""
    for item in items:
        chosen = next((mark.name for mark in item.iter_markers() if mark.name in CLOCKS), None)
        if chosen == "virtual_time" and inspect.iscoroutinefunction(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.trio(run=_jumping), append=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store's file will be."""
    return tmp_path / "agents.db"


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server of our own, to stop and start and do harm to; each test leaves it running and whole."""
    if programs() is None:
        pytest.skip(f"no PostgreSQL to do harm to; a server in {VARIABLE} is left alone")
    made = Server()
    yield made
    made.end()


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> type[Losing]:
    """Connections that lose their server when they are told to."""
    monkeypatch.setattr(_pg_pool, "TrioConnection", Losing)
    Losing.lose, Losing.lost = "", 0
    return Losing


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Path | str:
    """Where sessions are kept: a file, or a database."""
    if request.param == "postgres":
        return empty()
    path: Path = request.getfixturevalue("path")
    return path
