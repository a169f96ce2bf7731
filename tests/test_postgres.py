"""The PostgreSQL store alone: owners, replies that are lost, servers that are gone, and what others sent."""

import os

import psycopg
import pytest
import trio
from attrs import evolve, fields
from postgres_server import PASSWORD, Server, empty
from postgres_stores import Losing, opened, pause, rows, until
from sqlite_files import mail
from test_sqlite import OUTCOME, WORDS, busy_state, one_round
from transcripts import user

from actors import ConfigError, IdConflict, LeaseLost, Status, StoreError, UserMessage, VersionConflict
from actors.agent._record import Commit, State
from actors.store import _pg_pool, _pg_watch
from actors.store._holder import new_holder
from actors.store._pg_connection import resolved
from actors.store._pg_schema import MIGRATIONS
from actors.store._resolve import resolve_store
from actors.store.postgres import PostgresStore


@pytest.fixture
def url() -> str:
    """An empty schema."""
    return empty()


async def session(store: PostgresStore, id: str = "s") -> State:
    """A session in the store."""
    state = State(id, "Clerk")
    await store.create(state)
    return state


def unread(store: PostgresStore, id: str = "s") -> list[int]:
    """The seqs of what a session has in memory and has not read."""
    return [envelope.seq for envelope in store.mailbox(id).unread(0)]


# ------------------------------------------------------------------ opened again
async def test_each_thing_stands_in_the_tables_once(url: str) -> None:
    """As in a file: an outcome in the ledger, words in the mail."""
    async with opened(url) as store:
        state = await one_round(store)
    tables = [name for (name,) in rows(url, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")]
    text = "\n".join(row for name in tables for (row,) in rows(url, f"SELECT t::text FROM {name} t"))
    assert (text.count(OUTCOME), text.count(WORDS)) == (1, 1)
    async with opened(url) as store:
        again = await store.load("s")
        assert again is not None
        assert again.items == state.items


async def test_everything_of_a_session_survives(url: str) -> None:
    """Field by field, also those that somebody will add."""
    async with opened(url) as store:
        before = await busy_state(store)
        there = list(store.mailbox("s").unread(0))
    async with opened(url) as store:
        state = await store.load("s")
        assert state is not None
        for name in (each.name for each in fields(State)):
            if name != "epoch":
                assert getattr(state, name) == getattr(before, name), name
        assert store.mailbox("s").unread(0) == there
        assert store.mailbox("s").unread_count() == 2


async def test_two_processes_make_the_tables_once(url: str) -> None:
    """Workers start together."""
    stores = [PostgresStore(url) for _ in range(4)]
    async with trio.open_nursery() as nursery:
        for store in stores:
            nursery.start_soon(store.open)
    for store in stores:
        await store.close()
    assert rows(url, "SELECT schema FROM postroom") == [(len(MIGRATIONS),)]


async def test_a_newer_schema_is_refused(url: str) -> None:
    """An old version would write what the new one cannot read."""
    async with opened(url):
        rows(url, "UPDATE postroom SET schema = 99")
        with pytest.raises(StoreError, match=r"has schema 99, and this version .* knows schemas up to \d+; use a newer"):
            await PostgresStore(url).open()


# ------------------------------------------------------------------ owners
async def test_a_session_is_run_by_one_process(url: str) -> None:
    """The other one sends to it, and takes it over when the first has let go."""
    async with opened(url) as first, opened(url) as second:
        state = await session(first)
        with pytest.raises(LeaseLost, match="is run by another process"):
            await second.load("s")
        first.release(state)
        while (taken := await _load(second)) is None:  # noqa: ASYNC110  # the store alone tells
            await trio.sleep(0.01)
        assert taken.epoch == state.epoch + 1


async def _load(store: PostgresStore) -> State | None:
    try:
        return await store.load("s")
    except LeaseLost:
        return None


async def test_a_lease_that_is_renewed_is_not_taken(url: str) -> None:
    """However long its session thinks."""
    async with opened(url, lease=0.3) as first, opened(url) as second:
        await session(first)
        await trio.sleep(0.5)
        with pytest.raises(LeaseLost, match="is run by another process"):
            await second.load("s")


async def test_whoever_wakes_after_its_lease_commits_nothing(url: str) -> None:
    """Items, ends of calls, mail: every write of the late owner is refused, and it is told to end what it runs."""
    told: list[str] = []
    async with opened(url, lease=0.2) as first, opened(url) as second:
        state, _ = await session(first), await session(first, "t")
        first.watch(lambda _: None, told.append)
        pause(first)
        await trio.sleep(0.3)
        taken = await second.load("s")
        assert taken is not None
        for late in (Commit(append=(user("late"),)), Commit(mail=(mail("late", to="t"),), loop=False)):
            with pytest.raises(LeaseLost, match="was taken over"):
                await first.commit(state, late)
        await second.commit(taken, Commit(append=(user("mine"),)))
        assert (len(taken.items), state.items, unread(first, "t"), told[:1]) == (1, [], [], ["s"])


async def test_a_process_that_was_killed_holds_nothing(url: str) -> None:
    """Another one of its machine sees it, and waits for no lease; of another machine's processes nobody can tell."""
    dead, far = new_holder().replace(f"{os.getpid()}.", "4194304.", 1), "1.1.aa@elsewhere"
    async with opened(url) as first:
        await session(first)
        await session(first, "t")
        pause(first)
        for id, holder in (("s", dead), ("t", far)):
            rows(url, f"INSERT INTO leases VALUES ('{holder}', clock_timestamp() + interval '30 s')")
            rows(url, f"UPDATE sessions SET holder = '{holder}' WHERE id = '{id}'")
        async with opened(url) as second:
            assert rows(url, "SELECT count(*) FROM leases") == [(3,)]
            rows(url, f"INSERT INTO leases VALUES ('{dead}', clock_timestamp() + interval '30 s')")
            assert await second.load("s") is not None
            with pytest.raises(LeaseLost, match="is run by another process"):
                await second.load("t")


async def test_a_process_that_comes_back_hears_what_it_lost(url: str) -> None:
    """A session at rest commits nothing that could be refused."""
    told: list[str] = []
    async with opened(url, lease=0.3) as first:
        await session(first)
        first.watch(lambda _: None, told.append)
        rows(url, "UPDATE sessions SET epoch = epoch + 1, holder = 'another'")
        await until(lambda: told == ["s"])


async def test_a_commit_that_somebody_came_before_is_refused(url: str) -> None:
    """Two loops of one session cannot both go on."""
    async with opened(url) as store:
        state = await session(store)
        stale = evolve(state, items=[], calls={}, live={})
        await store.commit(state, Commit(append=(user("go"),)))
        store._held["s"].state = stale
        with pytest.raises(VersionConflict, match="at version 1"):
            await store.commit(stale, Commit(append=(user("twice"),)))
        assert stale.items == []


# ------------------------------------------------------------------ what others sent
async def test_mail_from_another_process_wakes_its_reader(url: str) -> None:
    """In the order of its seqs, whoever accepted it."""
    async with opened(url) as first, opened(url) as second:
        await session(first)
        for number in range(20):
            await (first if number % 2 else second).send(mail(f"{number}"))
        await until(lambda: len(unread(first)) == 20)
        assert unread(first) == list(range(1, 21))
        assert [each.body for each in first.mailbox("s").unread(0)] == [UserMessage(f"{number}") for number in range(20)]


async def test_senders_of_one_process_at_once_leave_no_gap(url: str) -> None:
    """Their commits are answered in any order."""
    async with opened(url) as store:
        await session(store)
        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(store.send, mail(f"{number}"))
        assert unread(store) == list(range(1, 101))


async def test_a_lost_notification_costs_at_most_a_rescan(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It wakes, and nothing else; the table is what counts."""
    monkeypatch.setattr(_pg_watch, "RESCAN", 0.2)
    monkeypatch.setattr(_pg_watch, "_TELL", "SELECT %(schema)s::text, %(keys)s::bigint[], %(me)s::text")
    async with opened(url) as first, opened(url) as second:
        await session(first)
        await second.send(mail("hello"))
        await until(lambda: unread(first) == [1])


async def test_a_line_that_is_cut_is_laid_again(url: str) -> None:
    """What was told meanwhile is looked up."""
    async with opened(url) as first, opened(url) as second:
        await session(first)
        rows(
            url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
        )
        await second.send(mail("hello"))
        await until(lambda: unread(first) == [1])


# ------------------------------------------------------------------ replies that are lost
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_commit_whose_reply_is_lost_is_kept_once(url: str, losing: type[Losing], moment: str) -> None:
    """Found to be ours, or done again: never both, never neither."""
    async with opened(url) as store:
        state = await session(store)
        losing.lose = moment
        await store.commit(state, Commit(append=(user("go"),), mail=(mail("hello"),)))
        await store.commit(state, Commit(append=(user("on"),)))
        assert (losing.lost, len(state.items), state.version, unread(store)) == (1, 2, 2, [1])
        assert rows(url, "SELECT count(*) FROM items") == [(2,)]


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_send_whose_reply_is_lost_is_kept_once(url: str, losing: type[Losing], moment: str) -> None:
    """With an id of the sender's or without."""
    async with opened(url) as store:
        await session(store)
        for id in (None, "web-1"):
            losing.lose = moment
            await store.send(mail("hello", id))
        assert (losing.lost, unread(store)) == (2, [1, 2])
        assert rows(url, "SELECT count(*) FROM mail") == [(2,)]


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_session_is_created_once_although_the_reply_is_lost(url: str, losing: type[Losing], moment: str) -> None:
    """To find it there and to call it somebody else's would be wrong."""
    async with opened(url) as store:
        losing.lose = moment
        state = await session(store)
        await store.commit(state, Commit(append=(user("go"),)))
        assert (losing.lost, rows(url, "SELECT count(*) FROM sessions")) == (1, [(1,)])
        with pytest.raises(StoreError, match="is there already"):
            await session(store)


@pytest.mark.parametrize(("moment", "version"), [("before", 1), ("after", 1)])
async def test_a_commit_of_unknown_end_is_settled_by_the_next(
    url: str, losing: type[Losing], monkeypatch: pytest.MonkeyPatch, moment: str, version: int
) -> None:
    """The server was away for too long: the next commit learns first what became of the last."""
    async with opened(url) as store:
        state, _ = await session(store), await session(store, "t")
        monkeypatch.setattr(_pg_pool, "PATIENCE", 0.0)
        losing.lose = moment
        with pytest.raises(StoreError, match="whether what was asked was kept is not known"):
            await store.commit(state, Commit(append=(user("go"),), mail=(mail("hello", to="t"),)))
        assert state.items == []
        if moment == "after":
            with pytest.raises(VersionConflict, match="was kept; this one was not"):
                await store.commit(state, Commit(append=(user("again"),)))
            await until(lambda: unread(store, "t") == [1])
        else:
            await store.commit(state, Commit(append=(user("again"),)))
        assert (len(state.items), state.version) == (1, version)


# ------------------------------------------------------------------ cancelled
async def test_a_send_that_waits_for_a_lock_can_be_cancelled(url: str) -> None:
    """The query is ended at the server too; nothing was kept, and its connection is used again."""
    async with opened(url) as store:
        await session(store)
        with psycopg.connect(url) as db:
            db.execute("SELECT * FROM mailboxes FOR UPDATE")
            with trio.move_on_after(0.1) as scope:
                await store.send(mail("never", "web-1"))
            assert scope.cancelled_caught
            assert db.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone() == (0,)
        assert (await store.send(mail("then", "web-1"))).seq == 1


async def test_a_send_that_is_cancelled_is_found_under_its_id(url: str) -> None:
    """It may have been accepted: sending it again does no harm."""
    async with opened(url) as store:
        await session(store)
        for wait in (0.0, 0.001, 0.002, 0.004):
            with trio.move_on_after(wait):
                await store.send(mail("hello", "web-1"))
        await store.send(mail("hello", "web-1"))
        assert unread(store) == [1]
        with pytest.raises(IdConflict):
            await store.send(mail("other", "web-1"))


# ------------------------------------------------------------------ what can go wrong
async def test_a_host_is_looked_up_by_trio() -> None:
    """The client library would hold the loop."""
    found = await resolved("host=localhost,/tmp,127.0.0.1 port=7,8,9 dbname=d")
    assert found["hostaddr"].endswith(",,127.0.0.1")
    assert found["port"].endswith("7,8,9")
    with pytest.raises(psycopg.OperationalError, match="is not known"):
        await resolved("postgresql://nobody.invalid/d")


async def test_a_url_that_names_nothing_is_refused() -> None:
    """Without showing its password."""
    with pytest.raises(ConfigError, match=r"store=postgresql://\.\.\. names no database"):
        resolve_store("postgresql://ada:secret@host/d?sslmod=require")


async def fails(url: str, text: str) -> None:
    """Opening a store fails with this."""
    with pytest.raises(StoreError, match=text) as caught:
        await PostgresStore(url).open()
    assert PASSWORD not in str(caught.value)


async def test_each_trouble_is_told_with_what_to_do(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person reads it at three in the morning."""
    monkeypatch.setattr(_pg_pool, "PATIENCE", 0.0)
    rows(server.url(), "CREATE ROLE poor LOGIN CONNECTION LIMIT 0")
    await fails(server.url("localhost", password="wrong"), "does not let this user in; check user, password")
    await fails(server.url("localhost"), "does not let this user in; check user, password")
    await fails(server.url(database="none"), "does not exist; create it")
    await fails(server.url(user="poor"), "takes no more connections; raise max_connections")
    await fails(server.url().replace(str(server.port), "1"), "cannot be reached; see that the server runs")
    await fails(server.url() + "&options=-csearch_path%3Dnone", "has no schema to make tables in")
    read_only = server.url("localhost", password=PASSWORD) + "?options=-cdefault_transaction_read_only%3Don"
    await fails(read_only, "is read-only; give the address of the primary")


async def test_work_goes_on_when_the_server_is_back(server: Server) -> None:
    """Who asked meanwhile waits for it; who waited for mail gets it."""
    async with opened(server.url()) as first, opened(server.url()) as second:
        state = await session(first, "back")
        await trio.to_thread.run_sync(server.stop)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(second.send, mail("hello", to="back"))
            nursery.start_soon(first.commit, state, Commit(append=(user("go"),)))
            await trio.sleep(0.2)
            await trio.to_thread.run_sync(server.start)
        await until(lambda: unread(first, "back") == [1])
        assert state.version == 1


async def test_a_server_that_stays_away_is_told_of(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was kept; and when it is back, everything goes on."""
    monkeypatch.setattr(_pg_pool, "PATIENCE", 0.2)
    async with opened(server.url()) as store:
        state = await session(store, "away")
        await trio.to_thread.run_sync(server.stop)
        try:
            with pytest.raises(StoreError, match=r"cannot be reached.*nothing was kept"):
                await store.send(mail("hello", to="away"))
            with pytest.raises(StoreError, match="cannot be reached"):
                await store.commit(state, Commit(append=(user("go"),)))
        finally:
            await trio.to_thread.run_sync(server.start)
        await store.commit(state, Commit(append=(user("go"),), status=Status.RUNNING))
        assert (await store.send(mail("hello", to="away"))).seq == 1
        assert (len(state.items), state.version) == (1, 1)
