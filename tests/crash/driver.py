"""Kills a village again and again, lets it come to rest, and audits it: `python driver.py FOLDER KILLS SEED HOW [SERVER]`.

HOW is `plain`, `broken`, or how many processes share it; it lives in files, or, where the URL of a server is given, in schemas of that
one, or, with `own`, of one that is started for it and crashes with the rest.

Each life is a fork of this process, which has imported everything and runs no thread: a life costs what it lives, not what
Python takes to start. Half of the kills come at a random moment, half at a commit boundary, one boundary after the other: before
the commit is on disk, or after it is and before anybody in the process knows.
"""

import json
import os
import signal
import sqlite3
import sys
import time
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import trio
from attrs import asdict, frozen
from auditor import Report, audit
from msgspec.structs import replace
from postgres_server import Server, in_schema
from village import live

from actors.store import _pg_pool, _pg_watch, _schema, postgres, sqlite
from actors.store._pg_connection import TrioConnection
from actors.store._resolve import resolve_store

PLENTY = 1_000_000
OWN = "own"
NAMES = ("ann", "bob", "cay", "dan")
TROUBLES = ("stop", "kill", "crash")
MOST = 100  # kills of one village: what it has behind it is read at each start


def die() -> None:
    """As a process dies that is killed: now."""
    os.kill(os.getpid(), signal.SIGKILL)


class Killing(sqlite3.Connection):
    """A connection that kills its process at its n-th commit boundary."""

    boundary = 0  # counts down; each commit has two
    between = 0  # counts down at the commits of `broken` that lie in between what belongs together

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        """Run it, or die."""
        if sql != "COMMIT" or not Killing.boundary:
            return super().execute(sql, *args)
        self.pass_()
        done = super().execute(sql, *args)
        self.pass_()
        return done

    @staticmethod
    def pass_() -> None:
        """One boundary is passed, or not."""
        Killing.boundary -= 1
        if not Killing.boundary:
            die()


class KillingOnServer(TrioConnection):
    """The same, on a connection to PostgreSQL. Transactions that only looked are no boundaries."""

    async def commit(self) -> None:
        """Commit, or die."""
        found = await self.execute("SELECT pg_current_xact_id_if_assigned() IS NOT NULL") if Killing.boundary else None
        if found is None or await found.fetchone() != (True,):
            await super().commit()
            return
        Killing.pass_()
        await super().commit()
        Killing.pass_()


def killed_at(boundary: int) -> None:
    """Arm this process."""
    Killing.boundary = boundary
    vars(_schema)["sqlite3"] = _Connecting()
    vars(_pg_pool)["TrioConnection"] = KillingOnServer


class _Connecting:
    """The module `sqlite3`, whose connections kill."""

    connect = staticmethod(partial(sqlite3.connect, factory=Killing))

    def __getattr__(self, name: str) -> Any:
        return getattr(sqlite3, name)


# ------------------------------------------------------------------ the order that must not be
def torn(change: Any) -> tuple[Any, Any] | None:
    """Its cursors, and the rest."""
    if change.cursors is None or not change.items:
        return None
    nothing = {"items": (), "calls": (), "letters": (), "facts": None, "version": None}
    return replace(change, **nothing), replace(change, cursors=None)


def in_between() -> None:
    """Die at the n-th such commit."""
    Killing.between -= 1
    if not Killing.between:
        die()


def broken() -> None:
    """Stores that move their cursors in one transaction and keep what was read in the next."""
    commit, on_server = vars(sqlite)["commit"], vars(postgres)["commit"]

    def apart(db: sqlite3.Connection, change: Any) -> Any:
        parts = torn(change)
        if parts is None:
            return commit(db, change)
        commit(db, parts[0])
        db.execute("COMMIT")  # with the savepoint of this job, if it has one
        in_between()
        db.execute("BEGIN IMMEDIATE")
        db.execute("SAVEPOINT job")  # if it had none, this one ends with the transaction
        return commit(db, parts[1])

    async def apart_on_server(db: TrioConnection, change: Any) -> Any:
        parts = torn(change)
        if parts is None:
            return await on_server(db, change)
        await on_server(db, parts[0])
        await db.commit()
        in_between()
        return await on_server(db, parts[1])

    vars(sqlite)["commit"], vars(postgres)["commit"] = apart, apart_on_server


# ------------------------------------------------------------------ lives
@frozen
class Ground:
    """Where a village stands: its diary, and the store that its sessions are kept in."""

    folder: Path
    url: str

    @classmethod
    def new(cls, folder: Path, number: int, server: str) -> "Ground":
        """A place where nothing is yet."""
        place = folder / f"village-{number}"
        place.mkdir()
        if not server:
            return cls(place, f"sqlite:///{place / 'village.db'}")
        schema = f"village_{os.getpid()}_{number}"
        with psycopg.connect(server, autocommit=True) as db:
            db.execute(f"CREATE SCHEMA {schema}".encode())
        return cls(place, in_schema(server, schema))

    @property
    def diary(self) -> Path:
        """What happened outside the store."""
        return self.folder / "diary"


def one_life(ground: Ground, seed: int, messages: int) -> None:
    """In a process of its own."""
    trio.run(live, ground.url, ground.diary, seed, messages)


def leased_life(ground: Ground, seed: int, who: str) -> None:
    """As `one_life`, with a lease of half a second, beside others."""
    vars(_pg_watch)["RESCAN"] = 0.25
    store = resolve_store(ground.url)
    again: Any = type(store)
    trio.run(live, again(getattr(store, "path", ground.url), lease=0.5), ground.diary, seed, PLENTY, who)


def fork(fn: Any, *args: Any) -> int:
    """Run it in a fork; its process id."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        fn(*args)
        status = 0
    finally:
        os._exit(status)


def kill_once(ground: Ground, random: Random, number: int) -> str:
    """One life and its end."""
    seed = random.getrandbits(30)
    if number % 2:
        boundary = 1 + number // 2 % 200

        def life() -> None:
            killed_at(0 if sys.argv[4] == "broken" else boundary)
            Killing.between = boundary
            one_life(ground, seed, PLENTY)

        os.waitpid(fork(life), 0)
        return f"boundary {boundary}"
    child = fork(one_life, ground, seed, PLENTY)
    moment = random.uniform(0.02, 0.4)
    time.sleep(moment)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"after {moment:.3f} s"


def several(ground: Ground, kills: int, seed: int, count: int, server: Server | None) -> Report:
    """So many processes on one store: one is stopped past its lease, and others take over until it comes back; or one is killed.

    Where the database is our own, it crashes as well.
    """
    random = Random(seed)

    def begun(which: int) -> int:
        return fork(leased_life, ground, random.getrandbits(30), NAMES[which])

    lives = [begun(which) for which in range(count)]
    for number in range(kills):
        time.sleep(random.uniform(0.2, 0.5))
        which = number % count
        trouble = random.choice(TROUBLES[: 2 + (server is not None)])
        if trouble == "stop":
            os.kill(lives[which], signal.SIGSTOP)
            time.sleep(1.0)
            os.kill(lives[which], signal.SIGCONT)
        elif trouble == "kill":
            os.kill(lives[which], signal.SIGKILL)
        elif server is not None:
            server.stop()
            time.sleep(0.3)
            server.start()
        gone = [each for each, life in enumerate(lives) if ended(life, wait=trouble == "kill" and each == which)]
        lives = [begun(each) if each in gone else life for each, life in enumerate(lives)]
    for life in lives:
        os.kill(life, signal.SIGKILL)
        os.waitpid(life, 0)
    return rested(ground, seed)


def ended(life: int, *, wait: bool) -> bool:
    """Whether a life is over: killed, or given up because its store was gone when it began."""
    return os.waitpid(life, 0 if wait else os.WNOHANG) != (0, 0)


def village(ground: Ground, kills: range, seed: int) -> Report:
    """Kill one again and again; its report."""
    random = Random(seed)
    for number in kills:
        kill_once(ground, random, number)
    return rested(ground, seed)


def rested(ground: Ground, seed: int) -> Report:
    """Let it come to rest, and audit it."""
    _, status = os.waitpid(fork(one_life, ground, seed, 0), 0)
    report = audit(ground.url, ground.diary)
    report.hold(status == 0, f"the last life did not come to rest: status {status}")
    return report


def main() -> None:
    """Kill, rest, audit, report as JSON."""
    folder, kills, seed, how = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    whole = Report()
    if how == "broken":
        broken()
    own = Server() if sys.argv[5:] == [OWN] else None
    url = own.url() if own is not None else "".join(sys.argv[5:])
    if how.isdecimal():
        whole = several(Ground.new(folder, 0, url), kills, seed, int(how), own)
    else:
        for first in range(0, kills, MOST):
            place = Ground.new(folder, first, url)
            whole.add(village(place, range(first, min(kills, first + MOST)), seed + first))
    print(json.dumps(asdict(whole)))  # noqa: T201


if __name__ == "__main__":
    main()
