"""Watches across processes, deaths and versions: the event and the mail that tells it are in one transaction."""

import os
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trio
from postgres_server import empty
from test_store import kept
from test_store_watches import told, watch
from transcripts import says

from actors import Status, Store
from actors._limits import SESSION_DEFAULTS
from actors.agent._record import Commit, State
from actors.store._pg_schema import MIGRATIONS as PG_MIGRATIONS
from actors.store._rows import write_limits
from actors.store._schema import MIGRATIONS, OURS
from actors.store.postgres import PostgresStore
from actors.store.sqlite import SQLiteStore

LIMITS = write_limits(SESSION_DEFAULTS)
BEGINS = Commit(status=Status.RUNNING, run=1)
TOLD = ["run_started", "status"]
PLACES: dict[str, tuple[Callable[[str], Store], Callable[[Path], str]]] = {
    "sqlite": (SQLiteStore, lambda folder: str(folder / "sessions.db")),
    "postgres": (PostgresStore, lambda _folder: empty()),
}


@pytest.fixture(params=list(PLACES))
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Store, Store]]:
    """Two on one place, as two processes have them."""
    make, where = PLACES[request.param]
    place = where(tmp_path)
    one, two = make(place), make(place)
    await one.open()
    await two.open()
    yield one, two
    await two.close()
    await one.close()


async def heard(store: Store) -> list[str]:
    """What the watcher is told, once it is."""
    with trio.fail_after(10):
        while not told(store):
            await store.tend()
            await trio.sleep(0.01)
    return [kind for kind, _ in told(store)]


async def test_a_session_of_another_process_is_watched(stores: tuple[Store, Store]) -> None:
    """Whoever commits the event looks for those that watch, wherever they are."""
    here, there = stores
    state, watcher = await kept(here), await kept(there, "w")
    await there.commit(watcher, watch())
    await here.commit(state, BEGINS)
    assert await heard(there) == TOLD


async def test_two_that_watch_each_other_do_not_wait_for_each_other(stores: tuple[Store, Store]) -> None:
    """Each commit writes into the other's mailbox."""
    states = {"s": (stores[0], await kept(stores[0])), "w": (stores[1], await kept(stores[1], "w"))}
    await stores[0].commit(states["s"][1], watch("w"))
    await stores[1].commit(states["w"][1], watch("s"))

    async def work(store: Store, state: State) -> None:
        for run in range(1, 21):
            await store.commit(state, Commit(run=run))

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for store, state in states.values():
                nursery.start_soon(work, store, state)
        for session, (store, _) in states.items():
            while len(told(store, session)) < 20:
                await store.tend()
                await trio.sleep(0.01)
    assert [[data["run"] for _, data in told(store, session)] for session, (store, _) in states.items()] == [
        [*range(1, 21)]
    ] * 2


# ------------------------------------------------------------------ deaths
DIES = """
import os, signal, sqlite3, sys, trio
from functools import partial
from actors.store import _schema
from test_watches_apart import BEGINS, SQLiteStore, kept, watch

class Dying(sqlite3.Connection):
    when = ""
    def execute(self, sql, *args):
        if sql == "COMMIT" and self.when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = super().execute(sql, *args)
        if sql == "COMMIT" and self.when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return done

async def main(path, when):
    _schema.sqlite3 = type("S", (), {**vars(sqlite3), "connect": staticmethod(partial(sqlite3.connect, factory=Dying))})
    store = SQLiteStore(path)
    await store.open()
    state, watcher = await kept(store), await kept(store, "w")
    await store.commit(watcher, watch())
    Dying.when = when
    await store.commit(state, BEGINS)

trio.run(main, *sys.argv[1:])
"""


@pytest.mark.parametrize(("when", "events"), [("before", []), ("after", TOLD)])
async def test_a_process_that_dies_loses_no_event_and_tells_none_twice(tmp_path: Path, when: str, events: list[str]) -> None:
    """Killed before the commit neither is there, killed behind it both are; whoever goes on from there tells it once."""
    path = str(tmp_path / "sessions.db")
    done = await trio.run_process(
        [sys.executable, "-c", DIES, path, when], check=False, cwd=Path(__file__).parent, env=_env(), capture_stderr=True
    )
    assert done.returncode == -9, done.stderr
    store = SQLiteStore(path)
    await store.open()
    state, watcher = await store.load("s"), await store.load("w")
    assert state is not None
    assert watcher is not None
    assert ([kind for kind, _ in told(store)], state.run) == (events, 1 if events else 0)
    await store.commit(state, BEGINS)
    await store.commit(state, Commit(append=(says("done"),)))
    assert [kind for kind, _ in told(store)] == [*TOLD, "answer"]
    await store.close()


def _env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


# ------------------------------------------------------------------ versions
async def lives_on(store: Store) -> None:
    """Sessions that were kept before there were watches can be watched."""
    await store.open()
    state = await store.load("s")
    assert state is not None
    watcher = await kept(store, "w")
    await store.commit(watcher, watch())
    await store.commit(state, BEGINS)
    assert [kind for kind, _ in told(store)] == TOLD
    await store.close()


async def test_a_file_from_before_there_were_watches_is_brought_forward(tmp_path: Path) -> None:
    """With all that is in it."""
    path = str(tmp_path / "sessions.db")
    with closing(sqlite3.connect(path)) as db:
        db.executescript(MIGRATIONS[0])
        db.execute("PRAGMA user_version = 1")
        db.execute(f"PRAGMA application_id = {OURS}")
        db.execute(
            "INSERT INTO sessions (id, agent, status, limits, facts, codec) VALUES ('s', 'Worker', 'ready', ?, '{}', 1)",
            (LIMITS,),
        )
        db.execute("INSERT INTO mailboxes (box) VALUES (1)")
        db.commit()
    await lives_on(SQLiteStore(path))


async def test_a_database_from_before_there_were_watches_is_brought_forward() -> None:
    """With all that is in it."""
    url = empty()
    with psycopg.connect(url) as db:
        db.execute(PG_MIGRATIONS[0].encode())
        db.execute("UPDATE postroom SET schema = 1")
        values: Any = ("s", "Worker", "ready", 0, 0, "{}", 1)
        db.execute(
            "INSERT INTO sessions (id, agent, status, version, epoch, facts, codec) VALUES (%s, %s, %s, %s, %s, %s, %s)", values
        )
        db.execute("INSERT INTO mailboxes (box, address, limits) SELECT key, id, %s FROM sessions", (LIMITS,))
    await lives_on(PostgresStore(url))
