"""Deferred calls in every store: what their tokens stand for, who may answer them, and what is kept of an answer."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trio
from postgres_server import empty
from postgres_stores import Losing, opened, until
from test_store import kept, store, unread
from test_store_watches import told, watch
from test_watches_apart import LIMITS, stores
from transcripts import asks, user

from actors import (
    AlreadyCompleted,
    ContinuationResult,
    FromToolCall,
    IdConflict,
    Outcome,
    Receipt,
    Status,
    Store,
    ToolCallFinished,
    UnknownToken,
    VersionConflict,
)
from actors._envelope import NORMAL
from actors.agent._record import CallRecord, Commit, Draft, State, deferred, ended
from actors.store._pg_schema import MIGRATIONS as PG_MIGRATIONS
from actors.store._schema import MIGRATIONS, OURS
from actors.store.postgres import PostgresStore
from actors.store.sqlite import SQLiteStore

__all__ = ["store", "stores"]
ASKED = CallRecord("call_1", "refund", {"id": "call_1"}, "started", run=1, hops=3)
DEFERRED = deferred(ASKED, "a person has to say yes", "secret")
PAID, REFUSED = Outcome.completed({"paid": [1, 2.5, True]}), Outcome.denied("not that much")
VOIDED = ended(DEFERRED, Outcome("cancelled", error="the run was stopped"))


async def waiting(store: Store, **limits: Any) -> State:
    """A session with a deferred call."""
    state = await kept(store, **limits)
    await store.commit(state, Commit(append=(user("go"), asks("call_1")), calls=(ASKED,)))
    await store.commit(state, Commit(calls=(DEFERRED,), loop=False))
    return state


async def refused(store: Store, error: type[Exception], match: str, token: str = "secret", outcome: Outcome = PAID) -> None:
    """Nothing is kept of an answer that is refused, and its token is not told."""
    before = await store.look("s")
    with pytest.raises(error, match=match) as caught:
        await store.complete(token, outcome)
    assert "secret" not in str(caught.value)
    after = await store.look("s")
    assert before is None or after is None or (after[0].calls, after[1]) == (before[0].calls, before[1])


# ------------------------------------------------------------------ answered
async def test_an_answer_is_the_outcome_of_its_call_and_mail_that_tells_it(store: Store) -> None:
    """Both at once, with the hops of the call, whatever the owner knows of it."""
    state = await waiting(store)
    assert (state.live, state.deferred) == ({}, {"call_1": DEFERRED})
    receipt = await store.complete("secret", PAID)
    [mail] = store.mailbox("s").unread(0)
    assert (mail.id, mail.seq, mail.sender, mail.hops) == (receipt.id, 1, FromToolCall("s", "call_1"), 3)
    assert (mail.body, receipt) == (
        ContinuationResult("secret", PAID),
        Receipt(receipt.id, 1, duplicate=False, priority=NORMAL),
    )
    assert (state.calls["call_1"], state.deferred, state.live) == (ended(DEFERRED, PAID), {}, {})
    found = await store.look("s")
    assert found is not None
    assert (found[0].calls, found[1]) == (state.calls, [mail])
    assert "secret" not in receipt.id


async def test_a_token_is_answered_once(store: Store) -> None:
    """A provider calls its webhook twice; a person presses the other button."""
    await waiting(store)
    first = await store.complete("secret", PAID)
    again = await store.complete("secret", PAID)
    assert (again.id, again.seq, again.duplicate) == (first.id, first.seq, True)
    await refused(store, IdConflict, "s/call_1 was answered before, with another outcome", outcome=REFUSED)
    assert len(unread(store)) == 1


async def test_a_token_of_no_call_is_refused(store: Store) -> None:
    """The text says what to do; a long token, which may be a secret, is not in it."""
    await waiting(store)
    await refused(store, UnknownToken, "has the token 'secre'; complete it in a system on the store of its session", "secre")
    await refused(store, UnknownToken, r"has the token secr\.\.\. \(12 characters\)", "secretsecret")


async def test_what_ends_the_call_or_its_session_voids_the_token(store: Store) -> None:
    """A late answer is refused, and its sender hears why."""
    state = await waiting(store)
    await store.commit(state, Commit(calls=(VOIDED,), status=Status.STOPPED))
    await refused(store, AlreadyCompleted, r"s/call_1 cannot be .* any more: it is cancelled \(the run was stopped\)")
    store.release(state)
    await store.delete("s")
    await refused(store, AlreadyCompleted, "s/call_1 cannot be answered any more: its session was deleted")


async def test_an_answer_is_accepted_however_full_its_mailbox_is(store: Store) -> None:
    """And from however far: its call has had its place since it was made."""
    await waiting(store, max_unread=1, max_hops=1)
    await store.send(Draft("s", ToolCallFinished("call_0", "look", PAID), FromToolCall("s", "call_0")))
    assert (await store.complete("secret", PAID)).seq == 2


async def test_those_that_watch_hear_of_an_answer(store: Store) -> None:
    """As of any end of a call."""
    await waiting(store)
    await store.commit(await kept(store, "w"), watch())
    await store.complete("secret", PAID)
    assert told(store) == [("tool_finished", {"call": "call_1", "tool": "refund", "status": "completed"})]


async def test_a_session_that_only_waits_for_an_answer_has_nothing_to_do(store: Store) -> None:
    """No process takes it up for that; the answer wakes it."""
    state = await waiting(store)
    store.release(state)
    assert list(await store.unfinished({"Worker"})) == []
    woken: list[str] = []
    store.watch(woken.append, lambda _session: None)
    await store.complete("secret", PAID)
    with trio.fail_after(5):
        await until(lambda: bool(woken) or not store.durable)
    assert woken == (["s"] if store.durable else [])


# ------------------------------------------------------------------ many processes
async def heard(store: Store, state: State) -> None:
    """Until the owner knows of the answer."""
    with trio.fail_after(10):
        while state.deferred:
            await store.tend()
            await trio.sleep(0.01)


async def test_any_process_answers(stores: tuple[Store, Store]) -> None:
    """A webhook runs where it runs; the owner has the outcome with the mail."""
    owner, other = stores
    state = await waiting(owner)
    receipt = await other.complete("secret", PAID)
    await heard(owner, state)
    assert (state.calls["call_1"], unread(owner)) == (ended(DEFERRED, PAID), [ContinuationResult("secret", PAID)])
    assert (await owner.complete("secret", PAID)).seq == receipt.seq


async def test_an_owner_that_voids_an_answered_token_keeps_nothing(stores: tuple[Store, Store]) -> None:
    """It has not heard of the answer yet; what was accepted is never undone."""
    owner, other = stores
    state = await waiting(owner)
    await other.complete("secret", PAID)
    state.deferred.setdefault("call_1", DEFERRED)  # as before the mail is here, whichever comes first
    with pytest.raises(VersionConflict, match="call_1 was answered before it could be cancelled; nothing was kept"):
        await owner.commit(state, Commit(calls=(VOIDED,), status=Status.IDLE))
    found = await other.look("s")
    assert found is not None
    assert (found[0].calls["call_1"].outcome, found[0].status) == (PAID, Status.READY)


async def test_two_that_answer_at_once_are_told_apart(stores: tuple[Store, Store]) -> None:
    """One of them counts, wherever they are."""
    one, two = stores
    await waiting(one)
    told: list[str] = []

    async def say(store: Store, outcome: Outcome) -> None:
        try:
            await store.complete("secret", outcome)
            told.append(outcome.status)
        except IdConflict:
            told.append("conflict")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(say, one, PAID)
        nursery.start_soon(say, two, REFUSED)
    found = await one.look("s")
    assert found is not None
    assert sorted(told) == sorted([found[0].calls["call_1"].status, "conflict"])
    assert len(found[1]) == 1


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_an_answer_whose_commit_was_not_heard_of_is_kept_once(losing: type[Losing], moment: str) -> None:
    """A server that goes away at the wrong moment: whoever answers has a receipt, and it is the first one."""
    async with opened(empty()) as store:
        await waiting(store)
        losing.lose = moment
        receipt = await store.complete("secret", PAID)
        assert (losing.lost, receipt.seq, receipt.duplicate, unread(store)) == (
            1,
            1,
            False,
            [ContinuationResult("secret", PAID)],
        )
        assert (await store.complete("secret", PAID)).duplicate


# ------------------------------------------------------------------ versions
async def lives_on(store: Store) -> None:
    """A session that was kept before calls could be deferred can defer one."""
    await store.open()
    state = await store.load("s")
    assert state is not None
    await store.commit(state, Commit(append=(user("go"), asks("call_1")), calls=(DEFERRED,)))
    await store.complete("secret", PAID)
    assert unread(store) == [ContinuationResult("secret", PAID)]
    await store.close()


async def test_a_file_from_before_calls_could_be_deferred_is_brought_forward(tmp_path: Path) -> None:
    """With all that is in it."""
    path = str(tmp_path / "sessions.db")
    with closing(sqlite3.connect(path)) as db:
        db.executescript(";".join(MIGRATIONS[:2]))
        db.execute("PRAGMA user_version = 2")
        db.execute(f"PRAGMA application_id = {OURS}")
        db.execute(
            "INSERT INTO sessions (id, agent, status, limits, facts, codec) VALUES ('s', 'Worker', 'ready', ?, '{}', 1)",
            (LIMITS,),
        )
        db.execute("INSERT INTO mailboxes (box) VALUES (1)")
        db.commit()
    await lives_on(SQLiteStore(path))


async def test_a_database_from_before_calls_could_be_deferred_is_brought_forward() -> None:
    """With all that is in it."""
    url = empty()
    with psycopg.connect(url) as db:
        for step in PG_MIGRATIONS[:2]:
            db.execute(step.encode())
        db.execute("UPDATE postroom SET schema = 2")
        values: Any = ("s", "Worker", "ready", 0, 0, "{}", 1)
        db.execute(
            "INSERT INTO sessions (id, agent, status, version, epoch, facts, codec) VALUES (%s, %s, %s, %s, %s, %s, %s)", values
        )
        db.execute("INSERT INTO mailboxes (box, address, limits) SELECT key, id, %s FROM sessions", (LIMITS,))
    await lives_on(PostgresStore(url))
