"""What every durable store promises of its writes: by the owner alone, in their order, whole or not at all, in tables it knows."""

import json
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from subprocess import PIPE
from typing import Any

import msgspec
import psycopg
import pytest
import trio
from attrs import define, evolve, fields
from postgres_server import empty
from postgres_stores import rows
from transcripts import answers, asks, mail, says, user

from actors import (
    AgentMessage,
    CallRecord,
    Control,
    FromSession,
    FromToolCall,
    FromUser,
    LeaseLost,
    Outcome,
    SessionRecord,
    Status,
    StopRun,
    StoreError,
    ToolCallFinished,
    UserMessage,
    VersionConflict,
)
from actors._limits import SESSION_DEFAULTS
from actors.agent._record import Commit, Draft, State, TimerRow, WatchRow, deferred, ended
from actors.models._blocks import Usage
from actors.store import _pg_schema, _schema
from actors.store.postgres import PostgresStore
from actors.store.sqlite import SQLiteStore

HERE = Path(__file__).parent
TABLES = {  # of a store, with what tells rows apart
    "sessions": "key", "mailboxes": "box", "mail": "body", "items": "item", "calls": "session, id", "timers": "session, id",
    "watches": "watcher, id", "continuations": "token",
}  # fmt: skip
ASKED = CallRecord("call_1", "look", {"id": "call_1"}, "started", run=1)
DONE = Outcome.completed("seen")
END = Draft("s", ToolCallFinished("call_1", "look", DONE), FromToolCall("s", "call_1"))
EYE = WatchRow("w1", "t", datetime(2999, 1, 1, tzinfo=UTC), ("answer",))
TEA = TimerRow("t1", mail("tea").sent_at, "tea", "is ready")
OF_THE_LOOP = {
    "an amendment": Commit(amend=user("more")),
    "items": Commit(append=(says("ok"),)),
    "the cursor of mail": Commit(mail_cursor=1),
    "the cursor of control": Commit(control_cursor=1),
    "the cursor of handlers": Commit(handled_cursor=1),
    "a status": Commit(status=Status.RUNNING),
    "counters": Commit(run=2, turn=3, rounds=1, hops=4),
    "a stop": Commit(stop=mail(Control(StopRun()))),
    "calls that are asked for": Commit(append=(asks("call_2"),), calls=(CallRecord("call_2", "look", {"id": "call_2"}),)),
    "what was shown": Commit(fetched=("call_1",), refused={"#1": "[not shown]"}),
    "limits": Commit(limits=evolve(SESSION_DEFAULTS, max_unread=3)),
    "mail to another": Commit(mail=(Draft("t", AgentMessage("hello"), FromSession("s")),)),
    "nothing but its version": Commit(),
}
OF_CALLS = {
    "the start of a call": Commit(calls=(evolve(ASKED, status="started", token="x"),), loop=False),
    "the end of a call, with its mail": Commit(calls=(ended(ASKED, DONE),), mail=(END,), loop=False),
    "a call that is deferred": Commit(
        calls=(deferred(evolve(ASKED, id="call_8"), "a person has to say yes", "x"),), loop=False
    ),
    "mail": Commit(mail=(Draft("t", AgentMessage("hello"), FromSession("s")),), loop=False),
    "a timer": Commit(timers=(evolve(TEA, id="t2"),), loop=False),
    "a timer that fired": Commit(timers_gone=("t1",), loop=False),
    "a watch": Commit(watches=(EYE,), loop=False),
    "a watch that ended": Commit(watches_gone=("w1",), loop=False),
    "what was spent": Commit(spent=Usage(1, 2, 3), loop=False),
    "what was fetched": Commit(fetched=("call_7",), loop=False),
}
WRITES = OF_THE_LOOP | OF_CALLS


@define
class Ground:
    """Where a store stands."""

    place: str
    postgres: bool

    @asynccontextmanager
    async def store(self) -> AsyncIterator[PostgresStore | SQLiteStore]:
        """A store on it."""
        made = PostgresStore(self.place) if self.postgres else SQLiteStore(self.place)
        await made.open()
        try:
            yield made
        finally:
            await made.close()

    async def do(self, store: PostgresStore | SQLiteStore, query: str) -> list[tuple[Any, ...]]:
        """Do this to its tables, past it."""
        if isinstance(store, SQLiteStore):
            found: list[tuple[Any, ...]] = await store._open().do(lambda db: db.execute(query).fetchall())
            return found
        return rows(self.place, query)

    async def books(self, store: PostgresStore | SQLiteStore) -> dict[str, Any]:
        """All that is in its tables."""
        queries = {name: f"SELECT * FROM {name} ORDER BY {order}" for name, order in TABLES.items()}
        if isinstance(store, SQLiteStore):
            return {name: await self.do(store, query) for name, query in queries.items()}
        with psycopg.connect(self.place) as server:
            return {name: server.execute(query.encode()).fetchall() for name, query in queries.items()}

    async def broken(self, store: PostgresStore | SQLiteStore, table: str, *, mended: bool = False) -> None:
        """Let every write to this table fail, or no more."""
        if isinstance(store, SQLiteStore):
            for what in ("INSERT", "UPDATE"):
                await self.do(
                    store,
                    f"DROP TRIGGER broken_{what}"
                    if mended
                    else f"CREATE TRIGGER broken_{what} BEFORE {what} ON {table} BEGIN SELECT RAISE(ABORT, 'broken'); END",
                )
        elif mended:
            await self.do(store, f"DROP TRIGGER broken ON {table}")
        else:
            await self.do(store, _BREAK.format(table=table))

    def version(self, schema: int | None = None) -> int:
        """Which schema a store that is closed says it has; with `schema`, after it was made to say that."""
        if self.postgres:
            if schema is not None:
                rows(self.place, f"UPDATE postroom SET schema = {schema}")
            return int(rows(self.place, "SELECT schema FROM postroom")[0][0])
        with closing(sqlite3.connect(self.place)) as db:
            if schema is not None:
                db.execute(f"PRAGMA user_version = {schema}")
            return int(db.execute("PRAGMA user_version").fetchone()[0])


_BREAK = """
CREATE OR REPLACE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'broken'; END $$;
CREATE TRIGGER broken BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION broken()
"""


@pytest.fixture(params=["postgres", "sqlite"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    """An empty one."""
    postgres = request.param == "postgres"
    return Ground(empty() if postgres else str(tmp_path / "sessions.db"), postgres)


async def at_work(store: PostgresStore | SQLiteStore) -> State:
    """A session that has begun something, and another one that it knows."""
    state = State("s", "Clerk")
    for each in (state, State("t", "Clerk")):
        await store.create(each)
    await store.send(Draft("s", UserMessage("go"), FromUser()))
    await store.commit(state, Commit(append=(asks("call_1"), answers("call_1"), user("and")), calls=(ASKED,), timers=(TEA,)))
    return state


async def refuses(ground: Ground, store: PostgresStore | SQLiteStore, write: Commit, error: type[Exception]) -> None:
    """This write is refused, and leaves no trace."""
    state = await store.load("s")
    assert state is not None
    before = (state.record(), await ground.books(store))
    with pytest.raises(error, match="nothing was kept"):
        await store.commit(state, write)
    assert (state.record(), await ground.books(store)) == before


# ------------------------------------------------------------------ by whom, and in which order
async def test_each_kind_of_write_survives(ground: Ground) -> None:
    """What is refused below is something; and what is kept is found by the next owner, field by field."""
    async with ground.store() as store:
        state = await at_work(store)
        for name, write in WRITES.items():
            before = await ground.books(store)
            await store.commit(state, write)
            assert await ground.books(store) != before, name
            seen = await store.look("s")
            assert seen is not None
            for each in fields(State):
                assert getattr(seen[0], each.name) == getattr(state, each.name), (name, each.name)


async def test_each_kind_of_write_is_refused_to_one_who_is_not_the_owner_any_more(ground: Ground) -> None:
    """By the epoch, whatever it writes: items, ends of calls, mail, timers."""
    async with ground.store() as store:
        await at_work(store)
        await ground.do(store, "UPDATE sessions SET epoch = epoch + 1 WHERE id = 's'")
        for write in WRITES.values():
            await refuses(ground, store, write, LeaseLost)


async def test_a_process_that_slept_past_its_lease_writes_nothing_any_more(ground: Ground) -> None:
    """It was stopped, not told: the first write of any kind, and each after it, is refused before anything of it is there."""
    command = [sys.executable, str(HERE / "sleeper.py"), ground.place, "0.3"]
    place = {"PYTHONPATH": f"{HERE.parent}:{HERE}"}
    async with ground.store() as store:
        store.release(await at_work(store))
        async with sleeping(command, place) as sleeper:
            await trio.sleep(0.6)
            taken = await taken_over(store)
            await store.commit(taken, Commit(append=(says("I have it"),)))
            before = await ground.books(store)
            assert await sleeper.wakes() == dict.fromkeys(WRITES, "LeaseLost")
            assert await ground.books(store) == before
            await store.commit(taken, Commit(append=(user("more"),)))


async def taken_over(store: PostgresStore | SQLiteStore) -> State:
    """The session, as soon as its owner's lease is over."""
    with trio.fail_after(20):
        while True:
            with suppress(LeaseLost):
                found = await store.load("s")
                assert found is not None
                return found
            await trio.sleep(0.05)


@define
class Sleeper:
    """A process that is stopped."""

    process: trio.Process

    async def wakes(self) -> Any:
        """Have it go on; what it found."""
        self.process.send_signal(signal.SIGCONT)
        assert self.process.stdin is not None
        await self.process.stdin.send_all(b"\n")
        return json.loads(await said(self.process))


@asynccontextmanager
async def sleeping(command: list[str], place: dict[str, str]) -> AsyncIterator[Sleeper]:
    """One that holds the session, and is stopped then."""
    process = await trio.lowlevel.open_process(command, stdin=PIPE, stdout=PIPE, env=os.environ | place)
    try:
        assert await said(process) == b"holds\n"
        process.send_signal(signal.SIGSTOP)
        yield Sleeper(process)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


async def said(process: trio.Process) -> bytes:
    """Its next line."""
    assert process.stdout is not None
    line = b""
    with trio.fail_after(30):
        while not line.endswith(b"\n"):
            more = await process.stdout.receive_some()
            assert more, "it ended"
            line += more
    return line


async def test_a_call_of_a_tool_with_an_impossible_name_is_kept(ground: Ground) -> None:
    """A model may ask for anything; PostgreSQL has no room for one of these characters."""
    async with ground.store() as store:
        state = await at_work(store)
        await store.commit(state, Commit(calls=(CallRecord("call_2", "lo\0ok", {"id": "call_2"}),)))
        seen = await store.look("s")
        assert seen is not None
        assert seen[0].calls["call_2"].tool == "lo\ufffdok"


async def test_each_commit_of_a_loop_compares_the_version(ground: Ground) -> None:
    """Two loops of one session cannot both go on; calls may end at any time."""
    async with ground.store() as store:
        state = await at_work(store)
        await ground.do(store, "UPDATE sessions SET version = version + 1 WHERE id = 's'")
        for write in OF_THE_LOOP.values():
            await refuses(ground, store, write, VersionConflict)
        for write in OF_CALLS.values():
            await store.commit(state, write)


async def test_a_late_owner_neither_renews_nor_lets_go_of_nor_deletes_what_another_one_has(ground: Ground) -> None:
    """It still runs, and knows of nothing."""
    async with ground.store() as late, ground.store() as owner:
        state = await at_work(late)
        await ground.do(late, f"UPDATE sessions SET holder = '{owner.holder}', epoch = epoch + 1{_until(ground)}")
        taken = await owner.load("s")
        assert taken is not None
        await late.tend()
        with pytest.raises(LeaseLost, match="is run by another process"):
            await late.delete("s")
        late.release(state)
        with pytest.raises(LeaseLost):
            await late.load("s")
        await owner.commit(taken, Commit(append=(says("ok"),)))


def _until(ground: Ground) -> str:
    return "" if ground.postgres else ", held_until = 9e9"


# ------------------------------------------------------------------ whole or not at all
async def test_whatever_of_a_commit_fails_nothing_of_it_is_kept(ground: Ground) -> None:
    """The end of a call, the mail that tells of it, the item, the cursor: one transaction."""
    write = Commit(
        append=(says("ok"),), mail_cursor=1, calls=(ended(ASKED, DONE), deferred(evolve(ASKED, id="call_2"), "asked", "x")), mail=(END,), timers=(evolve(TEA, id="t2"),), watches=(EYE,)
    )  # fmt: skip
    async with ground.store() as store:
        state = await at_work(store)
        for table in TABLES:
            before = (state.record(), await ground.books(store), len(store.mailbox("s").unread(0)))
            await ground.broken(store, table)
            with pytest.raises(StoreError, match="nothing was kept"):
                await store.commit(state, write)
            await ground.broken(store, table, mended=True)
            assert (state.record(), await ground.books(store), len(store.mailbox("s").unread(0))) == before, table
        await store.commit(state, write)
        assert (state.live, [each.seq for each in store.mailbox("s").unread(0)]) == ({}, [1, 2])


@pytest.mark.parametrize("text", ["\ud800", "a\0b"])
async def test_a_message_that_cannot_be_written_harms_no_other(ground: Ground, text: str) -> None:
    """Half a character, a character that PostgreSQL has no room for: its sender hears it, if anybody does."""
    draft = Draft("s", UserMessage("hello"), FromUser())
    async with ground.store() as store:
        await store.create(State("s", "Clerk"))
        with suppress(StoreError):
            await store.send(msgspec.structs.replace(draft, trace=text))
        seq = store.mailbox("s").unread_count()
        assert (await store.send(draft)).seq == seq + 1


# ------------------------------------------------------------------ tables of other versions
NEXT = "CREATE TABLE more (a integer)"


async def test_a_newer_schema_is_refused(ground: Ground) -> None:
    """An old version would write what the new one cannot read; it changes nothing, and says what to do."""
    async with ground.store():
        pass
    newer = ground.version(ground.version() + 1)
    with pytest.raises(StoreError, match=f"has schema {newer}, and this version of postroom knows .* use a newer version"):
        async with ground.store():
            pass
    assert ground.version() == newer


async def test_an_older_schema_is_brought_forward_with_all_that_is_in_it(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step by step, in one transaction; a step that fails leaves it as it was, also for the version that made it."""
    async with ground.store() as store:
        before = (await at_work(store)).record()
    old = ground.version()
    with_steps(monkeypatch, NEXT, "CREATE TABLE more (broken")
    with pytest.raises(StoreError):
        await record_on(ground)
    assert ground.version() == old
    monkeypatch.undo()
    assert await record_on(ground) == before
    with_steps(monkeypatch, NEXT, "CREATE TABLE yet (a integer)")
    assert (await record_on(ground), ground.version()) == (before, old + 2)
    monkeypatch.undo()
    with pytest.raises(StoreError, match="use a newer version"):
        await record_on(ground)


def with_steps(monkeypatch: pytest.MonkeyPatch, *steps: str) -> None:
    """A version of ours that knows more schemas."""
    for module in (_schema, _pg_schema):
        monkeypatch.setattr(module, "MIGRATIONS", (*module.MIGRATIONS, *steps))


async def record_on(ground: Ground) -> SessionRecord:
    """The session of this ground, taken over."""
    async with ground.store() as store:
        state = await store.load("s")
        assert state is not None
        return state.record()
