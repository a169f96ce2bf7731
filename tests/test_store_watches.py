"""What every store promises of watches: an event of a commit and the mail that tells it are one, for those who may hear."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from attrs import evolve
from test_store import kept, store, unread
from transcripts import answers, asks, says

from actors import AgentMessage, FromSession, Outcome, Status, Store, UserItem, WatchedEvent
from actors._limits import SESSION_DEFAULTS
from actors.agent._news import EVENTS
from actors.agent._record import CallRecord, Commit, Draft, State, WatchRow

__all__ = ["store"]
ROW = CallRecord("call_1", "run_tests", {}, "started", run=1)
ENDED = evolve(ROW, status="completed", outcome=Outcome.completed(1))
WORDS = Draft("kid", AgentMessage("go"), FromSession("boss"))


def watch(session: str = "s", id: str = "watch-1", seconds: float = 600, **what: Any) -> Commit:
    """The commit that makes a watch."""
    row = WatchRow(id, session, datetime.now(UTC) + timedelta(seconds=seconds), what.pop("events", EVENTS), **what)
    return Commit(watches=(row,))


async def two(store: Store, **limits: Any) -> tuple[State, State]:
    """A session, and one that watches it."""
    return await kept(store), await kept(store, "w", **limits)


def told(store: Store, session: str = "w") -> list[tuple[str, Any]]:
    """What a session was told."""
    return [(each.kind, dict(each.data)) for each in unread(store, session) if isinstance(each, WatchedEvent)]


LIFE: list[tuple[Commit, list[tuple[str, Any]]]] = [
    (Commit(status=Status.RUNNING, run=1), [("run_started", {"run": 1}), ("status", {"status": "running"})]),
    (Commit(append=(asks("call_1"),), calls=(ROW,)), [("tool_started", {"call": "call_1", "tool": "run_tests"})]),
    (Commit(calls=(ENDED,), loop=False), [("tool_finished", {"call": "call_1", "tool": "run_tests", "status": "completed"})]),
    (Commit(append=(answers("call_1"), says("done"))), [("answer", {"text": "done"})]),
    (
        Commit(status=Status.IDLE),
        [("status", {"status": "idle"}), ("run_stopped", {"run": 1, "reason": "answered"})],
    ),
    (Commit(status=Status.STOPPED), [("status", {"status": "stopped"}), ("exit", {"exit": "stopped"})]),
]


async def test_each_commit_tells_what_it_does(store: Store) -> None:
    """From the start of a run to the end of the session."""
    state, watcher = await two(store)
    await store.commit(watcher, watch())
    for number, (commit, events) in enumerate(LIFE):
        before = told(store)
        await store.commit(state, commit)
        assert told(store) == [*before, *events], number


async def test_a_commit_that_may_be_kept_later_tells_when_it_is(store: Store) -> None:
    """Not before it is durable, and once."""
    state, watcher = await two(store)
    await store.commit(watcher, watch(events=("run_started", "answer")))
    await store.begin(state, Commit(status=Status.RUNNING, run=1))
    await store.commit(state, Commit(append=(says("done"),)))
    assert told(store) == [("run_started", {"run": 1}), ("answer", {"text": "done"})]


@pytest.mark.parametrize(
    ("what", "heard"),
    [
        ({"events": ("tool_started",), "tool": "run_*"}, ["tool_started"]),
        ({"events": ("tool_started",), "tool": "look"}, []),
        ({"events": ("run_started",), "tool": "look"}, ["run_started"]),
        ({"seconds": -1}, []),
        ({"session": "other"}, []),
    ],
)
async def test_a_watch_tells_what_it_asks_for(store: Store, what: dict[str, Any], heard: list[str]) -> None:
    """Kinds, a pattern for tools, a time, one session."""
    state, watcher = await two(store)
    await kept(store, "other")
    await store.commit(watcher, watch(**what))
    await store.commit(state, Commit(status=Status.RUNNING, run=1, calls=(ROW,)))
    assert [kind for kind, _ in told(store)] == heard


async def test_a_watch_that_was_ended_tells_nothing(store: Store) -> None:
    """Nor does it stand in the watcher's state."""
    state, watcher = await two(store)
    await store.commit(watcher, watch())
    await store.commit(watcher, Commit(watches_gone=("watch-1",)))
    await store.commit(state, Commit(status=Status.RUNNING, run=1))
    assert (told(store), watcher.watches) == ([], {})


async def test_a_watch_that_is_made_twice_tells_once(store: Store) -> None:
    """A call that is repeated makes the watch that it made."""
    state, watcher = await two(store)
    for _ in range(2):
        await store.commit(watcher, watch(events=("run_started",)))
    await store.commit(state, Commit(status=Status.RUNNING, run=1))
    assert told(store) == [("run_started", {"run": 1})]


@pytest.mark.parametrize("gone", ["s", "w"])
async def test_watches_end_with_either_session(store: Store, gone: str) -> None:
    """A commit to one that has ended would be refused; a watch of one that has ended is none."""
    states = dict(zip("sw", await two(store), strict=True))
    await store.commit(states[gone], Commit(status=Status.STOPPED))
    await store.commit(states["w"], watch()) if gone == "s" else None
    await store.commit(states["s"], Commit(run=1, loop=False))
    assert told(store) == []


async def test_a_full_mailbox_does_not_hold_up_whom_it_watches(store: Store) -> None:
    """What it cannot take it does not hear; how a run ended it does."""
    state, watcher = await two(store, max_unread=1)
    await store.commit(watcher, watch())
    await store.commit(state, Commit(status=Status.RUNNING, run=1))
    await store.commit(state, Commit(append=(says("done"),)))
    assert ([kind for kind, _ in told(store)], state.version) == (["run_started", "answer"], 2)


async def test_events_that_came_too_far_are_kept(store: Store) -> None:
    """They wake nobody, and are read with what does."""
    state, watcher = await two(store, max_hops=1)
    await store.commit(watcher, watch(events=("run_started",)))
    await store.commit(state, Commit(status=Status.RUNNING, run=1, hops=2))
    assert [each.hops for each in store.mailbox("w").unread(0)] == [2]


async def test_a_watch_is_found_again(store: Store) -> None:
    """After the session was let go of, in this process or another."""
    state, watcher = await two(store)
    await store.commit(watcher, watch())
    before = watcher.watches
    store.release(watcher)
    found = await store.load("w")
    assert found is not None
    assert found.watches == before
    await store.commit(state, Commit(status=Status.RUNNING, run=1))
    assert [kind for kind, _ in told(store)] == ["run_started", "status"]


# ------------------------------------------------------------------ the parent
async def family(store: Store) -> State:
    """A child whose parent is there."""
    await kept(store, "boss")
    child = State("kid", "Worker", parent="boss", limits=SESSION_DEFAULTS)
    await store.create(child)
    return child


async def read(store: Store, child: State) -> Commit:
    """The commit that begins a run with its parent's words."""
    await store.send(WORDS)
    mail = store.mailbox("kid").unread(0)[-1]
    return Commit(status=Status.RUNNING, run=child.run + 1, append=(UserItem((mail,)),), mail_cursor=mail.seq)


ENDS = [
    (Commit(status=Status.IDLE), [("answer", {"text": "done"})]),
    (Commit(status=Status.FAILED, failure="no key"), [("failed", {"text": "no key"})]),
    (Commit(status=Status.STOPPED), [("stopped", {"text": "the session was stopped"})]),
]


@pytest.mark.parametrize(("end", "events"), ENDS)
async def test_a_parent_hears_how_a_run_ended_that_read_its_mail(store: Store, end: Commit, events: list[Any]) -> None:
    """Once, from the child itself."""
    child = await family(store)
    await store.commit(child, await read(store, child))
    await store.commit(child, Commit(append=(says("done"),)))
    await store.commit(child, end)
    [mail] = store.mailbox("boss").unread(0)
    assert (told(store, "boss"), mail.sender, mail.id.startswith("end:1:")) == (events, FromSession("kid", "Worker"), True)


async def test_a_parent_hears_nothing_of_a_run_that_others_began(store: Store) -> None:
    """Unless it fails, or is stopped."""
    child = await family(store)
    await store.commit(child, Commit(status=Status.RUNNING, run=1))
    await store.commit(child, Commit(append=(says("done"),)))
    await store.commit(child, Commit(status=Status.IDLE))
    assert told(store, "boss") == []
    await store.commit(child, Commit(status=Status.FAILED, failure="no key", run=2))
    assert told(store, "boss") == [("failed", {"text": "no key"})]


async def test_a_parent_is_owed_the_answer_of_a_run_that_failed_first(store: Store) -> None:
    """Somebody has it tried again, and the parent still waits; once it was told, it does not."""
    child = await family(store)
    await store.commit(child, await read(store, child))
    await store.commit(child, Commit(status=Status.FAILED, failure="no key"))
    await store.commit(child, Commit(status=Status.RUNNING, run=2))
    await store.commit(child, Commit(append=(says("done"),)))
    await store.commit(child, Commit(status=Status.IDLE))
    assert [kind for kind, _ in told(store, "boss")] == ["failed", "answer"]
    assert not child.heard


async def test_a_child_outlives_a_parent_that_cannot_hear_it(store: Store) -> None:
    """Its commits are kept."""
    child = State("kid", "Worker", parent="nobody", limits=SESSION_DEFAULTS)
    await store.create(child)
    await store.commit(child, Commit(status=Status.FAILED, failure="no key"))
    assert child.status is Status.FAILED
