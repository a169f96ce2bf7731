"""The SQLite store alone: files that are not ours, disks that are full, and what a file has after it was opened again."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import msgspec
import pytest
import trio
from attrs import evolve, fields
from sqlite_files import mail, opened
from transcripts import answers, asks, says, user

from actors import (
    AgentMessage,
    CallRecord,
    Control,
    FromSession,
    FromToolCall,
    LeaseLost,
    Limits,
    Outcome,
    Pause,
    Priority,
    ResultsItem,
    Status,
    StopRun,
    StoreError,
    ToolCallFinished,
    UserItem,
    VersionConflict,
)
from actors._limits import SESSION_DEFAULTS
from actors.agent._record import Commit, Draft, State, TimerRow, WatchRow, deferred, ended
from actors.models._blocks import Usage
from actors.models._items import Placeholder, Result
from actors.store._api import Store
from actors.store._tables import _UNFINISHED
from actors.store.postgres import PostgresStore
from actors.store.sqlite import SQLiteStore

SEEN = Outcome.completed("seen")


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where the store's file will be."""
    return str(tmp_path / "sessions.db")


async def busy_state(store: Store) -> State:
    """A session in which everything that can be kept is kept."""
    state = State(
        "s", "Clerk", "parent", "ada", limits=evolve(SESSION_DEFAULTS, max_unread=7), options='{"max_rounds":3}', seal="x"
    )
    await store.create(state)
    for body in ("go", "more", Control(StopRun(run=1)), "unread"):
        await store.send(mail(body))
    box = store.mailbox("s")
    first, second, stop = box.unread(0)[:3]
    call = CallRecord("call_1", "look", {"id": "call_1"}, "started", idempotency_key="s/call_1", run=1, hops=2)
    late = CallRecord("call_2", "look", {"id": "call_2"}, "started", idempotency_key="s/call_2", run=1)
    asked = CallRecord("call_3", "look", {"id": "call_3"}, "started", idempotency_key="s/call_3", run=1)
    await store.commit(
        state, Commit(append=(UserItem([first]),), mail_cursor=1, status=Status.RUNNING, run=1, turn=1, rounds=1)
    )
    await store.commit(state, Commit(amend=UserItem([second], nudge="continuation"), mail_cursor=2, hops=3))
    await store.commit(state, Commit(append=(asks("call_1", "call_2"),), calls=(call, late), spent=Usage(1, 2, 3, cost=0.5)))
    told = Draft("s", ToolCallFinished("call_1", "look", SEEN), FromToolCall("s", "call_1"))
    await store.commit(state, Commit(calls=(ended(call, SEEN),), mail=(told,), loop=False))
    results = ResultsItem([Result("call_1", "look", SEEN), Result("call_2", "look", Placeholder("running", "mail"))])
    await store.commit(state, Commit(append=(results,), fetched=("call_2",), failure="why"))
    await store.commit(state, Commit(stop=stop, control_cursor=3, handled_cursor=2, paused_at=1, refused={"#1": "[not shown]"}))
    at, words = box.unread(0)[0].sent_at, msgspec.structs.replace(first, sender=FromSession("parent"))
    kept = Commit(
        timers=(TimerRow("t1", at, "tea", "is ready", 1),), watches=(WatchRow("w1", "s", at, ("status",)),), loop=False
    )
    await store.commit(state, kept)
    await store.commit(
        state, Commit(append=(UserItem([words]),), calls=(deferred(asked, "a person has to say yes", "secret"),))
    )
    blank = State("", "")
    same = [each.name for each in fields(State) if getattr(state, each.name) == getattr(blank, each.name)]
    assert same in ([], ["epoch"])  # that is the store's own
    return state


# ------------------------------------------------------------------ opened again
async def test_what_amended_results_survives(path: str) -> None:
    """Mail beside the last result, as often as it came."""
    async with opened(path) as store:
        state = State("s", "Clerk")
        await store.create(state)
        for body in ("go", "one", "two"):
            await store.send(mail(body))
        go, one, two = store.mailbox("s").unread(0)
        call = CallRecord("call_1", "look", {"id": "call_1"}, "completed", SEEN)
        results = ResultsItem([Result("call_1", "look", SEEN)])
        await store.commit(state, Commit(append=(UserItem([go]), asks("call_1"), results), calls=(call,)))
        await store.commit(state, Commit(amend=UserItem([one])))
        await store.commit(state, Commit(amend=UserItem([two])))
        assert state.items[-1] == ResultsItem([Result("call_1", "look", SEEN, UserItem([one, two]))])
    async with opened(path) as store:
        found = await store.load("s")
        assert found is not None
        assert found.items == state.items


async def test_everything_of_a_session_survives(path: str) -> None:
    """Field by field, also those that somebody will add."""
    async with opened(path) as store:
        before = await busy_state(store)
        unread = list(store.mailbox("s").unread(0))
    async with opened(path) as store:
        state = await store.load("s")
        assert state is not None
        for name in (each.name for each in fields(State)):
            if name != "epoch":
                assert getattr(state, name) == getattr(before, name), name
        assert [each.seq for each in store.mailbox("s").unread(0)] == [each.seq for each in unread] == [3, 4, 5]
        assert store.mailbox("s").unread(0) == unread
        assert store.mailbox("s").unread_count() == 2


async def test_a_load_that_is_cancelled_leaves_no_half_of_a_session(path: str) -> None:
    """Whoever loads it next has all of it; until then it is nobody's."""
    async with opened(path) as store:
        before = await busy_state(store)
    async with opened(path) as store, opened(path) as other, in_time():
        for tick in (0.0, 0.0, 0.001, 0.002, 0.004):
            with trio.move_on_after(tick) as scope:
                await _taken(store)
            found = await _taken(other if scope.cancelled_caught else store)
            assert (found.items, len(found.calls)) == (before.items, len(before.calls))
            (other if scope.cancelled_caught else store).release(found)
        await store.commit(await _taken(store), Commit(status=Status.IDLE))


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    """Not for ever."""
    with trio.fail_after(20):
        yield


async def _taken(store: Store) -> State:
    """Take it, once it is nobody's."""
    while True:
        try:
            state = await store.load("s")
        except LeaseLost:
            state = None
        if state is not None:
            return state
        await trio.sleep(0.001)


async def test_a_session_whose_creation_is_cancelled_is_nobody_s(path: str) -> None:
    """It is there, or not; whoever wants it may have it."""
    async with opened(path) as store, opened(path) as other:
        with trio.CancelScope() as scope:
            scope.cancel()
            await store.create(State("s", "Clerk"))
        with trio.fail_after(5):
            assert (await _taken(other)).id == "s"


WORDS, OUTCOME = "w" * 5000, "o" * 5000


async def one_round(store: SQLiteStore | PostgresStore) -> State:
    """A session with a long message, a call that it led to, and its long outcome."""
    long = Outcome.completed(OUTCOME)
    state = State("s", "Clerk")
    await store.create(state)
    await store.send(mail(WORDS))
    [words] = store.mailbox("s").unread(0)
    asked = CallRecord("call_1", "look", {"id": "call_1"})
    await store.commit(state, Commit(append=(UserItem([words]), asks("call_1")), calls=(asked,), mail_cursor=1))
    end = Draft("s", ToolCallFinished("call_1", "look", long), FromToolCall("s", "call_1"))
    await store.commit(state, Commit(calls=(ended(state.calls["call_1"], long),), mail=(end,)))
    await store.commit(state, Commit(append=(ResultsItem([Result("call_1", "look", long)]),)))
    return state


async def test_each_thing_stands_in_the_file_once(path: str) -> None:
    """An outcome in the ledger, words in the mail, arguments with the model's answer."""
    async with opened(path) as store:
        state = await one_round(store)
    with closing(sqlite3.connect(path)) as db:
        text = "\n".join(db.iterdump())
    assert (text.count(OUTCOME), text.count(WORDS)) == (1, 1)
    async with opened(path) as store:
        again = await store.load("s")
        assert again is not None
        assert again.items == state.items


async def test_a_second_owner_fences_the_first(path: str) -> None:
    """Whatever the first still commits is refused, and nothing of it is kept."""
    async with opened(path, lease=0.0) as first:
        state = State("s", "Clerk")
        await first.create(state)
        async with opened(path) as second:
            taken = await second.load("s")
            assert taken is not None
            with pytest.raises(LeaseLost, match="taken over"):
                await first.commit(state, Commit(append=(user("late"),)))
            await second.commit(taken, Commit(append=(user("mine"),)))
            assert (len(taken.items), state.items) == (1, [])


async def test_a_commit_that_somebody_came_before_is_refused(path: str) -> None:
    """Two loops of one session cannot both go on."""
    async with opened(path) as store:
        state = State("s", "Clerk")
        await store.create(state)
        stale = evolve(state, items=[], calls={}, live={})
        await store.commit(state, Commit(append=(user("go"),)))
        store._states["s"] = stale
        with pytest.raises(VersionConflict, match="at version 1"):
            await store.commit(stale, Commit(append=(user("twice"),)))
        assert stale.items == []


async def test_a_send_that_is_cancelled_is_found_under_its_id(path: str) -> None:
    """It may have been accepted: sending it again does no harm."""
    async with opened(path) as store:
        await store.create(State("s", "Clerk"))
        with trio.CancelScope() as scope:
            scope.cancel()
            await store.send(mail("hello", "web-1"))
        receipt = await store.send(mail("hello", "web-1"))
        assert (receipt.seq, len(store.mailbox("s").unread(0))) == (1, 1)


async def test_mail_comes_in_the_order_of_its_seqs_without_gaps(path: str) -> None:
    """However many send at once."""
    async with opened(path) as store:
        await store.create(State("s", "Clerk", limits=evolve(SESSION_DEFAULTS, max_unread=10_000)))
        async with trio.open_nursery() as nursery:
            for number in range(500):
                nursery.start_soon(store.send, mail(f"{number}"))
        assert [each.seq for each in store.mailbox("s").unread(0)] == list(range(1, 501))


async def test_mail_that_may_wake_a_session_that_is_not_here_is_told(path: str) -> None:
    """A stranger's does not wake it, a person's does."""
    woken: list[str] = []
    async with opened(path) as store:
        store.watch(woken.append, woken.remove)
        state = State("s", "Clerk")
        await store.create(state)
        store.release(state)
        await store.send(Draft("s", AgentMessage("psst"), FromSession("stranger")))
        assert (woken, await store.unfinished({"Clerk"})) == ([], [])
        await store.send(mail("hello"))
        assert (woken, await store.unfinished({"Clerk"}), await store.unfinished({"Other"})) == (["s"], ["s"], [])


async def test_a_person_and_an_order_find_room_where_there_is_none(path: str) -> None:
    """Sixteen places for a person's interrupts; an equal unread order serves for the next."""
    async with opened(path) as store:
        await store.create(State("s", "Clerk", limits=evolve(SESSION_DEFAULTS, max_unread=1)))
        await store.send(mail("first"))
        first = await store.send(mail(Control(Pause())))
        again = await store.send(mail(Control(Pause())))
        assert (again.id, again.duplicate) == (first.id, True)
        urgent = msgspec.structs.replace(mail("listen"), priority=Priority.INTERRUPT)
        for _ in range(16):
            await store.send(urgent)
        with pytest.raises(Exception, match="unread"):
            await store.send(urgent)


async def test_an_interrupted_mailbox_remembers_what_is_unread(path: str) -> None:
    """Control past its cursor counts, conversation past its own."""
    async with opened(path) as store:
        state = State("s", "Clerk")
        await store.create(state)
        for body in ("one", Control(Pause()), "two"):
            await store.send(mail(body))
        await store.commit(state, Commit(control_cursor=2))
        assert store.mailbox("s").unread_count() == 2
    async with opened(path) as store:
        await store.load("s")
        assert store.mailbox("s").unread_count() == 2
        assert len(store.mailbox("s").unread(0)) == 3


async def test_a_long_history_costs_a_commit_nothing(path: str) -> None:
    """The thousandth turn touches as many pages as the tenth."""
    async with opened(path) as store:
        state = State("s", "Clerk")
        await store.create(state)
        sizes = []
        for number in range(300):
            call = CallRecord(f"call_{number}", "look", {"id": f"call_{number}"}, "completed", SEEN)
            await store.commit(
                state, Commit(append=(user(f"{number}"), asks(call.id), answers(call.id), says("ok")), calls=(call,))
            )
            sizes.append(await store._read(lambda db: db.execute("PRAGMA page_count").fetchone()[0]))
        assert sizes[299] - sizes[200] <= 1.3 * (sizes[199] - sizes[100])


def test_limits_of_a_session_come_back(path: str) -> None:
    """Those that bound whoever writes to it."""

    async def main() -> None:
        async with opened(path) as store:
            await store.create(State("s", "Clerk", limits=Limits(max_unread=3, wake_on=("user",))))
        async with opened(path) as store:
            state = await store.load("s")
            assert state is not None
            assert state.limits == Limits(max_unread=3, wake_on=("user",))

    trio.run(main)


async def test_sessions_that_rest_cost_a_start_nothing(path: str) -> None:
    """What has something to do is found by indexes that hold nothing else."""
    async with opened(path) as store:
        plan = await store._read(lambda db: db.execute(f"EXPLAIN QUERY PLAN {_UNFINISHED}", (0,)).fetchall())
    scans = [step for *_, step in plan if step.startswith("SCAN")]
    found = {"SCAN busy", "SCAN calls USING INDEX calls_open", "SCAN mailboxes USING INDEX mailboxes_to_wake"}
    assert set(scans) == found  # `busy` is what was found


async def test_a_message_that_cannot_be_written_harms_no_other(path: str) -> None:
    """The writer lives on, whatever it was given."""
    async with opened(path) as store:
        await store.create(State("s", "Clerk"))
        with pytest.raises(StoreError, match="nothing was kept"):
            await store.send(msgspec.structs.replace(mail("hello"), trace="\ud800"))
        assert (await store.send(mail("hello"))).seq == 1


async def test_what_had_nothing_to_do_is_taken_up_again_only_for_new_mail(tmp_path: Path) -> None:
    """A paused session keeps mail that would wake it: taken up for it, it would leave again, and be taken up again, for ever."""
    path = str(tmp_path / "sessions.db")
    woken: list[str] = []
    async with opened(path) as store, opened(path) as other:
        store.watch(woken.append, woken.append)
        state = State("s", "Clerk")
        await store.create(state)
        await store.send(mail("hello"))
        store.release(state, seen=1)
        await store.tend()
        assert (await store.unfinished(["Clerk"]), await other.unfinished(["Clerk"])) == ([], ["s"])
        await other.create(State("t", "Clerk"))  # a commit of another process, after which this one looks
        await store.tend()
        assert woken == []
        await other.send(mail("again"))
        await store.tend()
        assert (woken, await store.unfinished(["Clerk"])) == (["s"], ["s"])
