"""What every store promises. A new one is added to `STORES`, and has to pass all of this."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from postgres_server import empty
from storms import SlowStore
from transcripts import answers, asks, mail, says, user

from actors import (
    AgentMessage,
    CallRecord,
    Control,
    FromSession,
    FromToolCall,
    FromUser,
    IdConflict,
    LeaseLost,
    MailboxFull,
    Outcome,
    Pause,
    Receipt,
    RecipientStopped,
    ResultsItem,
    Status,
    StopRun,
    Store,
    StoreError,
    ToolCallFinished,
    UnknownRecipient,
    UserItem,
    UserMessage,
)
from actors._limits import SESSION_DEFAULTS
from actors.agent._record import Commit, Draft, State, ended
from actors.models._items import Placeholder, Result
from actors.store.memory import MemoryStore
from actors.store.postgres import PostgresStore
from actors.store.sqlite import SQLiteStore

STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _folder: MemoryStore(),
    "a slow one": lambda _folder: SlowStore(0.001),
    "postgres": lambda _folder: PostgresStore(empty()),
    "sqlite": lambda folder: SQLiteStore(str(folder / "sessions.db")),
}
ROW = CallRecord("call_1", "look", {"at": "a"}, "started", run=1)
DONE = Outcome.completed("seen")
ENDED = Draft("s", ToolCallFinished("call_1", "look", DONE), FromToolCall("s", "call_1"))


@pytest.fixture(params=list(STORES.values()), ids=list(STORES))
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Each store, empty."""
    made: Store = request.param(tmp_path)
    await made.open()
    yield made
    await made.close()


async def kept(store: Store, id: str = "s", **limits: Any) -> State:
    """A session in the store."""
    state = State(id, "Worker", limits=evolve(SESSION_DEFAULTS, **limits))
    await store.create(state)
    return state


def words(text: str = "hello", to: str = "s", id: str | None = None) -> Draft:
    """An agent's words on their way, which can be refused."""
    return Draft(to, AgentMessage(text), FromSession("peer"), id)


def unread(store: Store, session: str = "s") -> list[object]:
    """The bodies of a session's mail."""
    return [envelope.body for envelope in store.mailbox(session).unread(0)]


# ------------------------------------------------------------------ sessions
async def test_a_session_is_loaded_as_the_one_object_it_is(store: Store) -> None:
    """Two copies would both think that they are the session."""
    state = await kept(store)
    assert await store.load("s") is state
    assert await store.load("t") is None


async def test_a_session_is_created_once(store: Store) -> None:
    """The second would overwrite the first."""
    await kept(store)
    with pytest.raises(StoreError, match="session s is there already"):
        await kept(store)


async def test_sessions_are_listed_in_the_order_in_which_they_were_created(store: Store) -> None:
    """All of them."""
    for name in ("b", "a"):
        await kept(store, name)
    assert [each.id for each in await store.sessions()] == ["b", "a"]


async def test_a_session_has_one_mailbox(store: Store) -> None:
    """However often it is asked for, and before anything is in it."""
    await kept(store)
    assert store.mailbox("s") is store.mailbox("s")
    assert store.mailbox("s").address == "s"


# ------------------------------------------------------------------ a commit applies
async def test_items_are_appended_and_the_last_is_amended(store: Store) -> None:
    """Nothing is rewritten: an unanswered user item grows at its end."""
    state = await kept(store)
    first, more = user("one"), user("two")
    await store.commit(state, Commit(append=(first,)))
    await store.commit(state, Commit(amend=more))
    [item] = state.items
    assert isinstance(item, UserItem)
    assert item.mail == (*first.mail, *more.mail)
    answer = says("ok")
    await store.commit(state, Commit(append=(answer,)))
    assert state.items == [item, answer]


async def test_what_is_begun_holds_at_once_and_the_next_commit_builds_on_it(store: Store) -> None:
    """A model is asked meanwhile, and its answer comes behind it."""
    state = await kept(store)
    first, answer = user("one"), says("ok")
    await store.begin(state, Commit(append=(first,), rounds=1))
    assert (state.items, state.rounds, state.version) == ([first], 1, 1)
    await store.commit(state, Commit(append=(answer,)))
    assert (state.items, state.version) == ([first, answer], 2)


async def test_rows_of_calls_are_put_in_and_replaced(store: Store) -> None:
    """A call without outcome is live, one with is not."""
    state = await kept(store)
    await store.commit(state, Commit(calls=(ROW,)))
    assert (state.calls, state.live) == ({"call_1": ROW}, {"call_1": ROW})
    await store.commit(state, Commit(calls=(ended(ROW, DONE),)))
    assert (state.calls["call_1"].outcome, state.live) == (DONE, {})


async def test_what_a_commit_leaves_out_stays_as_it_is(store: Store) -> None:
    """Absent is not zero."""
    state = await kept(store)
    await store.commit(state, Commit(status=Status.RUNNING, run=1, turn=2, rounds=3, hops=4, failure="why"))
    await store.commit(state, Commit())
    assert (state.status, state.run, state.turn, state.rounds, state.hops, state.failure) == (Status.RUNNING, 1, 2, 3, 4, "why")


async def test_a_commit_of_the_loop_raises_the_version_and_one_of_a_call_does_not(store: Store) -> None:
    """A call may end at any time; only loops can collide."""
    state = await kept(store)
    await store.commit(state, Commit())
    await store.commit(state, Commit(loop=False))
    assert state.version == 1


async def test_a_placeholder_is_remembered_until_its_outcome_was_told(store: Store) -> None:
    """Shown if and only if the result did not tell it."""
    state = await kept(store)
    late = ResultsItem([Result("call_1", "look", Placeholder("running", "mail"))])
    await store.commit(state, Commit(append=(user("go"), asks("call_1"), late), calls=(ROW,)))
    assert state.placeholders == {"call_1"}
    told = UserItem([mail(ENDED.body, ENDED.sender)])
    await store.commit(state, Commit(append=(told,)))
    assert state.placeholders == set()


async def test_a_stop_is_remembered_until_it_was_told(store: Store) -> None:
    """`[run stopped]` stands before the next words, once."""
    state = await kept(store)
    stop = mail(Control(StopRun()))
    await store.commit(state, Commit(stop=stop, run=3))
    assert (state.stopped, state.floor, state.stopped_run) == (stop, stop.seq, 3)
    await store.commit(state, Commit(append=(UserItem([stop, mail(UserMessage("go"))]),)))
    assert state.stopped is None


async def test_a_record_is_a_copy_of_all_or_of_the_last_items(store: Store) -> None:
    """It does not change any more."""
    state = await kept(store)
    await store.commit(state, Commit(append=(user("go"), asks("a"), answers("a"), says("ok")), calls=(ROW,)))
    record = state.record()
    await store.commit(state, Commit(append=(user("more"),)))
    assert (record.items, record.calls, record.version) == (tuple(state.items[:4]), (ROW,), 1)
    assert state.record(last=2).items == tuple(state.items[-2:])
    assert state.record(last=0).items == ()
    assert state.last_answer == "ok"


# ------------------------------------------------------------------ a commit's mail
async def test_the_mail_of_a_commit_is_accepted_with_it(store: Store) -> None:
    """The end of a call and the mail that tells it are one."""
    state = await kept(store)
    await store.commit(state, Commit(calls=(ended(ROW, DONE),), mail=(ENDED, words())))
    assert sorted(type(body).__name__ for body in unread(store)) == ["AgentMessage", "ToolCallFinished"]


async def test_mail_goes_to_other_sessions_too(store: Store) -> None:
    """Whoever they are."""
    state, _ = await kept(store), await kept(store, "t")
    await store.commit(state, Commit(mail=(words(to="t"),)))
    assert (unread(store), unread(store, "t")) == ([], [AgentMessage("hello")])


async def test_a_message_is_accepted_once_under_its_id(store: Store) -> None:
    """A commit that is repeated after a crash sends nothing twice."""
    state = await kept(store)
    for _ in range(2):
        await store.commit(state, Commit(mail=(words(id="s-call_1"),)))
    assert unread(store) == [AgentMessage("hello")]


async def post(store: Store, body: object, to: str = "s", id: str | None = None) -> Receipt:
    """A person's mail."""
    return await store.send(Draft(to, UserMessage(body) if isinstance(body, str) else body, FromUser(), id))


async def refused(store: Store, state: State, error: type[Exception], draft: Draft) -> None:
    """Nothing of a commit is kept whose mail is refused."""
    before = (state.record(), unread(store))
    with pytest.raises(error):
        await store.commit(state, Commit(append=(user("go"),), calls=(ended(ROW, DONE),), mail=(ENDED, draft)))
    assert (state.record(), unread(store)) == before


async def test_nothing_is_kept_of_a_commit_whose_mail_is_refused(store: Store) -> None:
    """To nobody, to one that ended, to one that is full, under an id that means something else."""
    state, gone, _ = await kept(store), await kept(store, "gone"), await kept(store, "full", max_unread=1)
    await store.commit(gone, Commit(status=Status.STOPPED))
    await post(store, "first", "full")
    await store.commit(state, Commit(mail=(words("one", id="x"),)))
    await refused(store, state, UnknownRecipient, words(to="nobody"))
    await refused(store, state, RecipientStopped, words(to="gone"))
    await refused(store, state, MailboxFull, words(to="full"))
    await refused(store, state, IdConflict, words("two", id="x"))


async def test_the_end_of_a_call_is_kept_however_full_or_far_it_is(store: Store) -> None:
    """It must not be lost: the model was told that it would come."""
    state = await kept(store, max_unread=1, max_hops=16)
    await post(store, "first")
    far = Draft(ENDED.to, ENDED.body, ENDED.sender, hops=17)
    await store.commit(state, Commit(mail=(far,), loop=False))
    assert len(unread(store)) == 2


# ------------------------------------------------------------------ cursors
async def test_cursors_move_with_the_commit_and_what_both_have_passed_is_freed(store: Store) -> None:
    """Consumption commits with its effect."""
    state = await kept(store)
    box = store.mailbox("s")
    for body in ("one", Control(Pause()), "two"):
        await post(store, body)
    await store.commit(state, Commit(mail_cursor=1))
    assert (state.mail_cursor, unread(store)) == (1, [UserMessage("one"), Control(Pause()), UserMessage("two")])
    await store.commit(state, Commit(control_cursor=2))
    assert unread(store) == [Control(Pause()), UserMessage("two")]
    await store.commit(state, Commit(mail_cursor=3, control_cursor=3))
    assert (unread(store), box.statistics().unread) == ([], 0)


async def test_cursors_never_move_back(store: Store) -> None:
    """What was consumed stays consumed."""
    state = await kept(store)
    for body in ("one", "two"):
        await post(store, body)
    await store.commit(state, Commit(mail_cursor=2, control_cursor=2))
    await store.commit(state, Commit(mail_cursor=1, control_cursor=1))
    assert (state.mail_cursor, state.control_cursor) == (2, 2)


async def test_a_cursor_past_the_newest_mail_is_refused_with_its_commit(store: Store) -> None:
    """Mail to come would be lost."""
    state = await kept(store)
    with pytest.raises(ValueError, match="mail up to seq 0"):
        await store.commit(state, Commit(mail_cursor=1, append=(user("go"),)))
    assert (state.items, state.mail_cursor, state.version) == ([], 0, 0)


# ------------------------------------------------------------------ from outside
async def test_a_session_can_be_looked_at_by_anybody(store: Store) -> None:
    """As it stands, with what it has not read; nobody's hold of it changes."""
    state = await kept(store)
    await store.commit(state, Commit(append=(user("go"), asks("call_1")), calls=(ROW,)))
    await post(store, "unread")
    found = await store.look("s")
    assert found is not None
    seen, unread_mail = found
    assert (seen.record().items, seen.record().calls) == (state.record().items, state.record().calls)
    assert [each.body for each in unread_mail] == [UserMessage("unread")]
    assert await store.look("t") is None
    await store.commit(state, Commit(append=(answers("call_1"),)))


async def test_a_checkup_counts_what_waits(store: Store) -> None:
    """For a person who asks how it goes."""
    state, _ = await kept(store), await kept(store, "t")
    await store.commit(state, Commit(status=Status.RUNNING, calls=(ROW,)))
    await post(store, "one")
    await post(store, "two")
    found = await store.checkup()
    assert (dict(found.sessions), found.mail, found.unread, found.open_calls) == ({"ready": 1, "running": 1}, 2, 2, 1)
    assert (found.expired, list(found.damage), found.timers) == (0, [], 0)
    assert found.oldest_unread == store.mailbox("s").unread(0)[0].sent


async def test_of_a_session_that_is_deleted_a_tombstone_stays(store: Store) -> None:
    """Late mail is refused, nothing revives it, and no new one takes its id."""
    state = await kept(store)
    await store.commit(state, Commit(append=(user("go"), asks("call_1")), calls=(ROW,)))
    await post(store, "unread")
    store.release(state)
    await store.delete("s")
    await store.delete("t")
    assert ([*await store.sessions()], await store.look("s"), (await store.checkup()).mail) == ([], None, 0)
    with pytest.raises(RecipientStopped):
        await post(store, "late")
    with pytest.raises(StoreError, match="session s is there already"):
        await kept(store)
    tombstone = await store.find("s")
    assert tombstone is not None
    assert tombstone.status is Status.STOPPED
    assert list(await store.unfinished({"Worker"})) == []
    assert await store.load("s") is None
    with pytest.raises(LeaseLost, match="nothing was kept"):
        await store.commit(state, Commit(append=(says("late"),)))


async def test_a_copy_of_a_session_commits_nothing(store: Store) -> None:
    """The one object that the store handed out is the session."""
    state = await kept(store)
    with pytest.raises(LeaseLost, match="nothing was kept"):
        await store.commit(evolve(state, items=[]), Commit(append=(user("go"),)))
    assert (state.items, state.version) == ([], 0)


async def test_old_mail_that_no_transcript_tells_is_forgotten(store: Store) -> None:
    """Ends of calls that their results told, and orders; never words, nor an id that somebody chose."""
    if not store.durable:
        pytest.skip("memory frees mail as it is read")
    state = await kept(store)
    await post(store, "words", id="web-1")
    await post(store, Control(Pause()))
    await store.commit(state, Commit(calls=(ended(ROW, DONE),), mail=(ENDED,)))
    words_read = store.mailbox("s").unread(0)[0]
    await store.commit(state, Commit(append=(UserItem([words_read]),), mail_cursor=2, control_cursor=2))
    assert await store.retain(words_read.sent + 3600) == 1
    await store.commit(state, Commit(append=(says("ok"),), mail_cursor=3, control_cursor=3))
    assert await store.retain(words_read.sent) == 0
    assert await store.retain(words_read.sent + 3600) == 1
    assert (await store.checkup()).mail == 1
    assert (await post(store, "words", id="web-1")).duplicate
    found = await store.look("s")
    assert found is not None
    assert found[0].items == state.items
