"""Commits that are begun: they hold in memory at once, and in the file with what comes next, or not at all."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.lowlevel
from attrs import evolve
from sqlite_files import mail, opened
from transcripts import says, user

from actors import LeaseLost, StoreError
from actors._limits import SESSION_DEFAULTS
from actors.agent._record import Commit, State
from actors.store import sqlite

GO, OK = user("go"), says("ok")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "sessions.db")


async def test_what_was_begun_shares_its_flush_with_the_next_commit(path: str) -> None:
    """What is flushed for each round decides how long a round takes."""
    async with opened(path) as store:
        state = State("s", "Clerk")
        await store.create(state)
        assert store._writer is not None
        before = store._writer.commits
        await store.begin(state, Commit(append=(GO,)))
        assert (state.items, state.version) == ([GO], 1)
        await store.commit(state, Commit(append=(OK,)))
        assert store._writer.commits == before + 1
    async with opened(path) as store:
        again = await store.load("s")
        assert again is not None
        assert (again.items, again.version) == (state.items, 2)


async def test_what_was_begun_is_kept_although_nothing_comes_after_it(path: str) -> None:
    """While a model thinks for a minute, what it reads is safe."""
    async with opened(path) as store:
        state = State("s", "Clerk")
        await store.create(state)
        await store.send(mail("hello"))
        await store.begin(state, Commit(append=(GO,), mail_cursor=1))
        found = await store.look("s")
        while found is not None and not found[0].items:
            found = await store.look("s")
        assert found is not None
        assert found[0].mail_cursor == 1


async def test_what_was_begun_and_could_not_be_kept_is_kept_with_the_next_commit(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that was full for a moment leaves no hole in a transcript."""

    def full(*_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    async with opened(path) as store:
        state = State("s", "Clerk")
        await store.create(state)
        with monkeypatch.context() as patched:
            patched.setattr(sqlite, "commit", full)
            await store.begin(state, Commit(append=(GO,)))
            await store.tend()  # it has failed when this is over
        assert store._begun
        await store.begin(state, Commit(append=(OK,)))  # no second one begins before the first is kept
        assert not store._begun
    async with opened(path) as store:
        again = await store.load("s")
        assert again is not None
        assert again.items == [GO, OK]


async def test_what_was_begun_outlives_the_failure_of_the_commit_that_took_it_along(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were one transaction, and only one of them is told that it failed."""

    def full(*_: Any, **_change: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    async with opened(path) as store:
        state = State("s", "Clerk")
        await store.create(state)
        with monkeypatch.context() as patched:
            patched.setattr(sqlite, "commit", full)
            await store.begin(state, Commit(append=(GO,)))
            with pytest.raises(StoreError, match="full"):
                await store.commit(state, Commit(append=(OK,)))
        assert state.items == [GO]
        await store.commit(state, Commit(append=(OK,)))
    async with opened(path) as store:
        again = await store.load("s")
        assert again is not None
        assert (again.items, again.version) == ([GO, OK], 2)


async def test_what_was_begun_stays_before_mail_that_came_after_it(path: str) -> None:
    """The mail was let in because there was room for it: what was begun had been read by then."""
    async with opened(path) as store:
        state = State("s", "Clerk", limits=evolve(SESSION_DEFAULTS, max_unread=1))
        await store.create(state)
        await store.send(mail("one"))
        async with trio.open_nursery() as nursery:
            await store.begin(state, Commit(append=(GO,), mail_cursor=1))
            nursery.start_soon(store.send, mail("two"))
            await trio.lowlevel.checkpoint()
            await store.commit(state, Commit(append=(OK,)))
        [found] = await store.sessions()
        assert found.unread == 1


async def test_what_was_begun_by_one_who_is_not_the_owner_is_refused_at_the_next_commit(path: str) -> None:
    """Nothing of it is kept, and nothing that follows from it."""
    async with opened(path, lease=0.0) as first:
        state = State("s", "Clerk")
        await first.create(state)
        async with opened(path) as second:
            taken = await second.load("s")
            await first.begin(state, Commit(append=(user("late"),)))
            with pytest.raises(LeaseLost, match="taken over"):
                await first.commit(state, Commit(append=(says("too late"),)))
            assert taken is not None
            await second.commit(taken, Commit(append=(GO,)))
        found = await first.look("s")
        assert found is not None
        assert found[0].items == [GO]
