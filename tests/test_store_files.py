"""Files that are no store of ours, and disks that fail while one is in use: what is told, and that nothing is half-kept."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from durable import Effects, played, system_on, until
from sqlite_files import mail, opened
from transcripts import says, user

from actors import (
    StoreError,
)
from actors.agent._record import Commit, State
from actors.models import call, say
from actors.store._schema import MIGRATIONS
from actors.store.sqlite import SQLiteStore


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where the store's file will be."""
    return str(tmp_path / "sessions.db")


# ------------------------------------------------------------------ files that will not do
def foreign(path: str) -> None:
    """A database of somebody else."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE recipes (name)")


def newer(path: str) -> None:
    """A store of a later version."""
    trio.run(_made, path)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")


async def _made(path: str) -> None:
    async with opened(path):
        pass


def no_database(path: str) -> None:
    """A letter."""
    Path(path).write_text("Dear diary, " * 1000)


def corrupt(path: str) -> None:
    """A store that lost a page."""
    trio.run(_made, path)
    with Path(path).open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(40960))


def a_folder(path: str) -> None:
    """A folder of that name."""
    Path(path).mkdir()


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (foreign, "a database of another program; give the path of a new file"),
        (newer, r"has schema \d+, and this version of postroom knows schemas up to \d+; use a newer version"),
        (no_database, "is no SQLite database"),
        (corrupt, "is damaged; restore it"),
        (a_folder, "could not be opened"),
    ],
)
def test_a_file_that_will_not_do_is_refused(path: str, make: Callable[[str], None], told: str) -> None:
    """With what was found and what to do, and before anything is written."""
    make(path)

    async def use() -> None:
        async with opened(path) as store:
            await store.create(State("s", "Clerk"))

    with pytest.raises(StoreError, match=told):
        trio.run(use)


async def test_a_store_that_is_closed_says_so(path: str) -> None:
    """A ref that outlived its system."""
    async with opened(path) as store:
        pass
    with pytest.raises(StoreError, match="is closed"):
        await store.send(mail("hello"))


# ------------------------------------------------------------------ trouble while it is in use
async def works_again(store: SQLiteStore, state: State) -> None:
    """Nothing is half-kept, and work goes on."""
    assert (state.items, state.version, len(store.mailbox("s").unread(0))) == ([], 0, 0)
    await store.commit(state, Commit(append=(user("go"),), mail=(mail("hello"),)))
    assert (len(state.items), state.version, len(store.mailbox("s").unread(0))) == (1, 1, 1)


HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
"""


async def test_a_file_that_another_process_holds_is_told_and_works_again(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell in a transaction, a backup."""
    monkeypatch.setattr("actors.store._schema.BUSY", 0.1)
    async with opened(path) as store:
        state = State("s", "Clerk")
        await store.create(state)
        with subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:  # noqa: ASYNC220
            assert holder.stdout is not None
            await trio.to_thread.run_sync(holder.stdout.readline)
            with pytest.raises(StoreError, match="is locked by another process"):
                await store.send(mail("hello"))
            with pytest.raises(StoreError, match="is locked by another process"):
                await store.commit(state, Commit(append=(user("go"),)))
            holder.communicate(b"\n")
        await works_again(store, state)


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    """A disk of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    made = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=False, capture_output=True
    )
    if not made or made.returncode:
        pytest.skip("this user may not mount a small tmpfs")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


async def test_a_full_disk_is_told_and_work_goes_on_when_there_is_room(small_disk: Path) -> None:
    """The sender hears it; nothing is half-kept."""
    filler = small_disk / "filler"
    async with opened(str(small_disk / "sessions.db")) as store:
        state = State("s", "Clerk")
        await store.create(state)
        await trio.to_thread.run_sync(filler.write_bytes, b"x" * 700_000)
        with pytest.raises(StoreError, match="the disk is full; free some space"):
            await store.send(mail("y" * 500_000))
        with pytest.raises(StoreError, match="the disk is full"):
            await store.commit(state, Commit(append=(says("z" * 500_000),)))
        await trio.to_thread.run_sync(filler.unlink)
        await works_again(store, state)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write what is read-only")
async def test_a_file_that_is_read_only_is_told(path: str) -> None:
    """It names the file and what to change."""
    await _made(path)
    Path(path).chmod(0o444)  # noqa: ASYNC240
    with pytest.raises(StoreError, match="is read-only; make the file and its folder writable"):
        await _made(path)


async def test_a_system_that_mounts_it_read_only_is_told(small_disk: Path) -> None:
    """The same, where root would write all the same."""
    path = str(small_disk / "sessions.db")
    await _made(path)
    await trio.run_process(["mount", "-o", "remount,ro", str(small_disk)])
    with pytest.raises(StoreError, match=r"read-only|could not be opened"):
        await _made(path)
    await trio.run_process(["mount", "-o", "remount,rw", str(small_disk)])
    await _made(path)


async def test_a_session_on_a_full_disk_goes_on_when_there_is_room(small_disk: Path) -> None:
    """Its tool has worked: what came of that is kept as soon as it can be, and the run goes on by itself."""
    filler, effects = small_disk / "filler", Effects()
    agent = played(call("book"), say("booked"), say("still here"))
    async with system_on(small_disk / "sessions.db", agent, deps=effects) as system:
        session = await system.open(agent, session="s", deps=effects)
        await session.send("go")
        await until(lambda: bool(effects.keys))
        with filler.open("wb", buffering=0) as file, suppress(OSError):  # noqa: ASYNC230
            while file.write(b"x" * 4096):
                pass
        effects.ends.set()
        with pytest.raises(StoreError, match="the disk is full; free some space"):
            await session.send("y" * 100_000)
        await trio.to_thread.run_sync(filler.unlink)
        assert await session.wait_answer() == "booked"
        assert await session.ask("and now?") == "still here"
        assert [row.status for row in (await session.record()).calls] == ["completed"]
