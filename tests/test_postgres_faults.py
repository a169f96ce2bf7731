"""A server that fails while a system is at work on it: full, locked, read-only, gone, without its tables. The real things.

Each is told to whoever sends, in words that say what to do; nothing is half-kept; and work goes on when it is over.
"""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trio
from attrs import evolve
from durable import Clerk, Effects, outcomes, played, said, system_on, until
from postgres_server import Server, empty, in_schema
from postgres_stores import Losing, opened, rows
from sqlite_files import mail
from transcripts import says, user

from actors import Status, StoreError
from actors._limits import SESSION_DEFAULTS
from actors.agent._record import Commit, State
from actors.events import ToolFinished
from actors.models import call, say, slow
from actors.store import _pg_pool
from supervision import SessionRef, System


@pytest.fixture
def url(server: Server) -> str:
    """A schema of its own there."""
    return empty(server.url())


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is waited for elsewhere, for seconds, is not here."""
    monkeypatch.setattr(_pg_pool, "PATIENCE", 0.1)


@asynccontextmanager
async def at_work(url: str) -> AsyncIterator[tuple[System, SessionRef, Effects]]:
    """A session whose tool is under way; two answers are to come."""
    agent, effects = played(call("book"), say("booked"), say("still here")), Effects()
    async with system_on(url, agent, deps=effects) as system:
        session = await system.open(agent, session="s", deps=effects)
        await session.send("go")
        await until(lambda: bool(effects.keys))
        yield system, session, effects


async def goes_on(session: SessionRef, effects: Effects) -> None:
    """The run by itself, then whoever speaks; what the tool did was done once."""
    assert await session.wait_answer() == "booked"
    assert await session.ask("and now?") == "still here"
    record = await session.record()
    assert (outcomes(record), effects.keys) == (["completed"], ["s/call_1"])


async def harmed(url: str, told: str, harm: Callable[[], Any], heal: Callable[[], Any], words: str = "hello") -> None:
    """A tool ends and somebody speaks while the server is harmed: he is told; then it is healed, and all goes on."""
    async with at_work(url) as (_system, session, effects):
        await trio.to_thread.run_sync(harm)
        effects.ends.set()
        try:
            with pytest.raises(StoreError, match=told) as caught:
                await session.send(words)
            assert "nothing was kept" in str(caught.value)
            await trio.sleep(0.3)
        finally:
            await trio.to_thread.run_sync(heal)
        await goes_on(session, effects)
        assert said(await session.record()) == ["go", "and now?"]


# ------------------------------------------------------------------ gone
async def test_a_server_that_is_gone(server: Server, url: str) -> None:
    """Killed, as by a crash; whoever runs it starts it again."""
    await harmed(url, "cannot be reached; see that the server runs", server.stop, server.start)


async def test_a_server_that_is_gone_while_a_model_answers(server: Server, url: str) -> None:
    """What could not be kept is asked for again, however long it takes and however often that fails."""
    agent = played(slow(0.1, say("lost")), say("here"), say("still here"))
    async with system_on(url, agent) as system:
        session = await system.open(agent, session="s", deps=Effects())
        await session.send("go")
        await until(lambda: session.status is Status.RUNNING)
        await trio.to_thread.run_sync(server.stop)
        await trio.sleep(1.0)
        await trio.to_thread.run_sync(server.start)
        assert await session.wait_answer() == "here"
        assert said(await session.record()) == ["go"]


async def test_a_system_ends_although_its_server_is_gone(server: Server, url: str) -> None:
    """Nothing waits for ever; what it held is free when its lease has run out, or its process has ended."""
    async with at_work(url):
        await trio.to_thread.run_sync(server.stop)
    await trio.to_thread.run_sync(server.start)
    async with system_on(url, played(say("I see")), deps=Effects()) as system:
        rows(url, "DELETE FROM leases")
        assert await system.session("s").wait_answer() == "I see"


async def test_a_server_that_crashes_again_and_again(server: Server, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was on its way, a COMMIT or the reply to it: each message and each commit is kept once, and nobody hears of it."""
    monkeypatch.setattr(_pg_pool, "PATIENCE", 15.0)
    seqs: list[int] = []
    async with opened(url) as store:
        state, over = State("s", "Clerk", limits=evolve(SESSION_DEFAULTS, max_unread=100_000)), trio.Event()
        await store.create(state)

        async def send(who: int) -> None:
            while not over.is_set():
                seqs.append((await store.send(mail("hello", f"{who}-{len(seqs)}" if who % 2 else None))).seq)

        async def commit() -> None:
            while not over.is_set():
                await store.commit(state, Commit(append=(user("go"), says("ok"))))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(commit)
            for who in range(4):
                nursery.start_soon(send, who)
            for _ in range(4):
                await trio.sleep(0.2)
                await trio.to_thread.run_sync(server.stop)
                await trio.to_thread.run_sync(server.start)
            await trio.sleep(0.2)
            over.set()
        assert sorted(seqs) == list(range(1, len(seqs) + 1)) == [each.seq for each in store.mailbox("s").unread(0)]
        assert rows(url, "SELECT count(*), max(seq) FROM mail") == [(len(seqs), len(seqs))]
        assert rows(url, "SELECT count(*) FROM items") == [(2 * state.version,)] == [(len(state.items),)]


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_the_end_of_a_call_whose_reply_is_lost_is_shown_once(
    url: str, losing: type[Losing], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The server was away for too long to tell: whatever became of it, the call is over, and everybody hears of it once."""
    monkeypatch.setattr(_pg_pool, "PATIENCE", 0.0)
    ends: list[str] = []
    async with at_work(url) as (system, session, effects):
        system.listen(lambda event: ends.append(str(event.call)) if isinstance(event, ToolFinished) else None)
        losing.lose = moment
        effects.ends.set()
        await goes_on(session, effects)
    assert (losing.lost, ends) == (1, ["call_1"])


# ------------------------------------------------------------------ full
@pytest.fixture
def small(server: Server, tmp_path: Path) -> Iterator[Path]:
    """A disk of four megabytes, as a tablespace."""
    place = server.folder / "small"
    place.mkdir()
    mount = shutil.which("mount")
    done = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=4m,mode=0777", "tmpfs", place], check=False, capture_output=True
    )
    if not done or done.returncode:
        pytest.skip("this user may not mount a small tmpfs")
    (place / "data").mkdir()
    with suppress(PermissionError):
        shutil.chown(place / "data", "nobody")
    rows(server.url(), f"CREATE TABLESPACE small LOCATION '{place}/data'")
    yield place
    rows(server.url(), "DROP SCHEMA IF EXISTS tight CASCADE")
    rows(server.url(), "DROP TABLESPACE small")
    subprocess.run(["umount", "-l", place], check=True)


async def test_a_disk_that_is_full(server: Server, small: Path) -> None:
    """The one that the tables are on."""
    rows(server.url(), "CREATE SCHEMA tight")
    url = in_schema(server.url(), "tight").replace("options=", "options=-cdefault_tablespace%3Dsmall%20")
    filler = small / "filler"

    def fill() -> None:
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(os.urandom(4096)):
                pass

    noise = os.urandom(200_000).hex()
    await harmed(url, "is on a disk that is full; free some space", fill, filler.unlink, noise)


# ------------------------------------------------------------------ locked, read-only, dropped
async def test_tables_that_somebody_locks(server: Server, url: str) -> None:
    """A shell in a transaction, a migration of somebody's."""
    shell, short = psycopg.connect(url), url.replace("options=", "options=-clock_timeout%3D100%20")
    await harmed(
        short, "is locked by another transaction; end it", lambda: shell.execute("LOCK TABLE mail, sessions"), shell.close
    )


async def test_a_server_that_becomes_read_only(server: Server, url: str) -> None:
    """It is a standby now, or somebody looks after it."""

    def switch(to: str) -> None:
        rows(server.url(), f"ALTER SYSTEM SET default_transaction_read_only = {to}")
        rows(server.url(), "SELECT pg_reload_conf()")
        rows(server.url(), "SELECT pg_sleep(0.1)")

    await harmed(url, "is read-only; give the address of the primary", lambda: switch("on"), lambda: switch("off"))


async def test_tables_that_are_not_there_for_a_while(server: Server, url: str) -> None:
    """Somebody restores them."""
    await harmed(
        url, "lacks a table; restore it", lambda: rows(url, "ALTER TABLE mailboxes RENAME TO away"),
        lambda: rows(url, "ALTER TABLE away RENAME TO mailboxes"),
    )  # fmt: skip


async def test_a_newer_schema_is_told_by_the_system(server: Server, url: str) -> None:
    """On entering, before anything runs."""
    async with system_on(url, Clerk):
        pass
    rows(url, "UPDATE postroom SET schema = 99")
    with pytest.raises(StoreError, match="use a newer version"):
        async with system_on(url, Clerk):
            pass
