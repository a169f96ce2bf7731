"""Kills a village again and again, lets it come to rest, and audits it: `python driver.py FOLDER KILLS SEED [BROKEN]`.

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

import trio
from attrs import asdict, evolve
from auditor import Report, audit
from village import live

from actors.store import _schema, sqlite

PLENTY = 1_000_000
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
        self._pass()
        done = super().execute(sql, *args)
        self._pass()
        return done

    @staticmethod
    def _pass() -> None:
        Killing.boundary -= 1
        if not Killing.boundary:
            die()


def killed_at(boundary: int) -> None:
    """Arm this process."""
    Killing.boundary = boundary
    vars(_schema)["sqlite3"] = _Connecting()


class _Connecting:
    """The module `sqlite3`, whose connections kill."""

    connect = staticmethod(partial(sqlite3.connect, factory=Killing))

    def __getattr__(self, name: str) -> Any:
        return getattr(sqlite3, name)


def broken() -> None:
    """A store that moves its cursors in one transaction and keeps what was read in the next: the order that must not be."""
    commit = vars(sqlite)["commit"]

    def apart(db: sqlite3.Connection, change: Any) -> Any:
        if change.cursors is not None and change.items:
            nothing = {"items": (), "calls": (), "letters": (), "facts": None, "version": None}
            commit(db, evolve(change, **nothing))
            db.execute("COMMIT")  # with the savepoint of this job, if it has one
            Killing.between -= 1
            if not Killing.between:
                die()
            db.execute("BEGIN IMMEDIATE")
            db.execute("SAVEPOINT job")  # if it had none, this one ends with the transaction
            change = evolve(change, cursors=None)
        return commit(db, change)

    vars(sqlite)["commit"] = apart


def one_life(folder: Path, seed: int, messages: int) -> None:
    """In a process of its own."""
    trio.run(live, f"sqlite:///{folder / 'village.db'}", folder / "diary", seed, messages)


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


def kill_once(folder: Path, random: Random, number: int) -> str:
    """One life and its end."""
    seed = random.getrandbits(30)
    if number % 2:
        boundary = 1 + number // 2 % 200

        def life() -> None:
            killed_at(0 if sys.argv[4:] else boundary)
            Killing.between = boundary
            one_life(folder, seed, PLENTY)

        os.waitpid(fork(life), 0)
        return f"boundary {boundary}"
    child = fork(one_life, folder, seed, PLENTY)
    moment = random.uniform(0.02, 0.4)
    time.sleep(moment)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"after {moment:.3f} s"


def leased_life(folder: Path, seed: int, who: str) -> None:
    """As `one_life`, with a lease of half a second."""
    trio.run(live, sqlite.SQLiteStore(str(folder / "village.db"), lease=0.5), folder / "diary", seed, PLENTY, who)


def two(folder: Path, kills: int, seed: int) -> Report:
    """Two processes on one file: one is stopped past its lease, the other takes over, the first comes back; or one is killed."""
    random = Random(seed)
    lives = [fork(leased_life, folder, seed, "ann"), fork(leased_life, folder, seed + 1, "bob")]
    for number in range(kills):
        time.sleep(random.uniform(0.2, 0.5))
        which = number % 2
        if random.random() < 0.5:
            os.kill(lives[which], signal.SIGSTOP)
            time.sleep(1.0)
            os.kill(lives[which], signal.SIGCONT)
        else:
            os.kill(lives[which], signal.SIGKILL)
            os.waitpid(lives[which], 0)
            lives[which] = fork(leased_life, folder, random.getrandbits(30), ("ann", "bob")[which])
    for life in lives:
        os.kill(life, signal.SIGKILL)
        os.waitpid(life, 0)
    return rested(folder, seed)


def main() -> None:
    """Kill, rest, audit, report as JSON."""
    folder, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    if sys.argv[4:] == ["two"]:
        print(json.dumps(asdict(two(folder, kills, seed))))  # noqa: T201
        return
    if sys.argv[4:]:
        broken()
    whole = Report()
    for first in range(0, kills, MOST):
        place = folder / f"village-{first}"
        place.mkdir()
        whole.add(village(place, range(first, min(kills, first + MOST)), seed + first))
    print(json.dumps(asdict(whole)))  # noqa: T201


def village(folder: Path, kills: range, seed: int) -> Report:
    """Kill one again and again; its report."""
    random = Random(seed)
    for number in kills:
        kill_once(folder, random, number)
    return rested(folder, seed)


def rested(folder: Path, seed: int) -> Report:
    """Let it come to rest, and audit it."""
    _, status = os.waitpid(fork(one_life, folder, seed, 0), 0)
    report = audit(folder / "village.db", folder / "diary")
    report.hold(status == 0, f"the last life did not come to rest: status {status}")
    return report


if __name__ == "__main__":
    main()
