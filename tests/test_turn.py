"""The turn: its table, row by row, and random runs through the real loop in which nothing may be lost or doubled."""

from math import inf
from typing import Any

import pytest
from transcripts import answers, asks, mail, says, user

from actors import (
    AgentMessage,
    AssistantItem,
    CallRecord,
    CancelAllAttached,
    CancelCalls,
    Control,
    Envelope,
    FromActor,
    FromSession,
    FromToolCall,
    FromUser,
    Item,
    Outcome,
    Pause,
    Placeholder,
    Resume,
    Status,
    StopRun,
    ToolCallFinished,
    UserMessage,
    WakeKind,
)
from actors._envelope import INTERRUPT, NORMAL
from actors.agent._actions import Act, Ask, End, OpenCall, Phase, Point, Wait
from actors.agent._completion import take
from actors.agent._control import apply_order, recover
from actors.agent._record import State
from actors.agent._settle import Began, settled
from actors.agent._turn import Turn
from actors.models import Completion, Text, ToolCall, Usage

WAKES: tuple[WakeKind, ...] = ("user", "tool", "parent", "child")
WORDS = UserMessage("words")


def at(seq: int, body: object = WORDS, sender: Any = None, *, urgent: bool = False) -> Envelope:
    """An envelope at this place of the mailbox."""
    return Envelope(seq, seq, sender or FromUser(), INTERRUPT if urgent else NORMAL, 0, 0.0, None, body)


def order(action: Any, seq: int = 1) -> Envelope:
    """An order at this place."""
    return at(seq, Control(action))


def finished(call: str, seq: int) -> Envelope:
    """The end of a call, as mail."""
    return at(seq, ToolCallFinished(call, "look", Outcome.completed("seen")), FromToolCall("s", call))


def session(status: Status, *items: Item, **facts: Any) -> State:
    """A session's state; the calls of its last item run."""
    state = State("s", "Worker", parent="boss", status=status, items=list(items), run=1, **facts)
    for call in items[-1].calls if items and isinstance(items[-1], AssistantItem) else ():
        state.calls[call.id] = state.live[call.id] = CallRecord(call.id, call.tool, call.arguments, "started", run=1)
    return state


def turn(phase: Phase, *running: str, **facts: Any) -> Turn:
    """A turn in this phase, attached to calls that run."""
    opened = [OpenCall(call, "look", None, inf, state="running") for call in running]
    return Turn(WAKES, phase=phase, open=opened, run=1, began={call: Began(NOW, 0.0) for call in running}, **facts)


NOW = user("now").mail[0].sent_at
IDLE = (Status.IDLE, Phase.IDLE)
RUNNING = (Status.RUNNING, Phase.MODEL)
WAITING = (Status.WAITING, Phase.ANSWERED)
PAUSED = (Status.PAUSED, Phase.MODEL)
FAILED = (Status.FAILED, Phase.IDLE)
BOSS, KID, PEER, CLOCK = FromSession("boss"), FromSession("kid"), FromSession("peer"), FromActor("clock")


@pytest.mark.parametrize(
    ("standing", "unread", "next_"),
    [
        (IDLE, [], Wait),
        (IDLE, [at(1)], Ask),
        (IDLE, [at(1, sender=BOSS)], Ask),
        (IDLE, [at(1, sender=KID)], Ask),
        (IDLE, [at(1, sender=CLOCK)], Ask),
        (IDLE, [at(1, sender=PEER)], Wait),
        (IDLE, [at(1, sender=PEER, urgent=True)], Wait),
        (IDLE, [at(1, sender=PEER), at(2)], Ask),
        (IDLE, [finished("call_1", 1)], Wait),
        (RUNNING, [], Ask),
        (RUNNING, [at(1, sender=PEER)], Ask),
        ((Status.RUNNING, Phase.ANSWERED), [], End),
        ((Status.RUNNING, Phase.ANSWERED), [at(1)], Ask),
        ((Status.RUNNING, Phase.ANSWERED), [at(1, sender=PEER)], End),
        (PAUSED, [at(1, urgent=True)], Wait),
        (FAILED, [], Wait),
        (FAILED, [at(1, sender=CLOCK)], Wait),
        (FAILED, [at(1)], Ask),
        (FAILED, [order(Pause())], Wait),
    ],
)
def test_what_a_session_does_next_follows_from_where_it_stands_and_what_is_unread(
    standing: tuple[Status, Phase], unread: list[Envelope], next_: type
) -> None:
    """Status by mail: the table at the head of the module."""
    status, phase = standing
    machine = turn(phase, is_child=lambda address: address == "kid")
    assert isinstance(machine.next(session(status, user("go")), unread, 0.0), next_)


def test_a_detached_call_keeps_the_run_open() -> None:
    """It waits, and the end of that call wakes it."""
    state = session(Status.WAITING, asks("call_1"))
    state.items.append(says("ok"))
    state.placeholders.add("call_1")
    action = turn(Phase.ANSWERED).next(state, [], 0.0)
    assert isinstance(action, Wait)
    assert action.match(finished("call_1", 1))


@pytest.mark.parametrize(
    ("unread", "ends"),
    [
        (at(1), False),
        (at(1, urgent=True), True),
        (at(1, sender=PEER, urgent=True), True),
        (finished("call_1", 1), True),
        (finished("call_9", 1), False),
        (order(Pause()), True),
    ],
)
def test_attached_to_calls_it_waits_for_their_ends_interrupts_and_orders(unread: Envelope, *, ends: bool) -> None:
    """R3a: normal mail waits for the next request."""
    action = turn(Phase.CALLS, "call_1").next(session(Status.RUNNING, user("go"), asks("call_1")), [], 0.0)
    assert isinstance(action, Wait)
    assert action.point is Point.R3A
    assert action.match(unread) is ends


def test_what_was_read_or_applied_before_ends_no_wait() -> None:
    """A wait is for what is new; else the loop would never rest."""
    state = session(Status.RUNNING, user("go"), asks("call_1"), mail_cursor=5, control_cursor=7)
    action = turn(Phase.CALLS, "call_1").next(state, [], 0.0)
    assert isinstance(action, Wait)
    assert not any(map(action.match, [at(5, urgent=True), finished("call_1", 4), order(Pause(), 6)]))


def test_an_interrupt_detaches_what_runs_and_answers_what_is_queued() -> None:
    """One decision for all of them."""
    machine = turn(Phase.CALLS, "call_1", "call_2")
    machine.open[1].state = "queued"
    del machine.began["call_2"]
    action = machine.next(session(Status.RUNNING, user("go"), asks("call_1", "call_2")), [at(1, urgent=True)], 0.0)
    assert isinstance(action, Act)
    assert dict(action.detached) == {"call_1": "interrupted"}
    assert {call: outcome.status for call, outcome in action.outcomes.items()} == {"call_2": "not_started"}


def test_an_unanswered_user_item_is_amended_and_results_are_not() -> None:
    """Two user items never stand in a row; words behind results are an item of their own."""
    again = turn(Phase.MODEL).next(session(Status.RUNNING, user("go")), [at(1)], 0.0)
    behind = turn(Phase.MODEL).next(session(Status.RUNNING, user("go"), asks("a"), answers("a")), [at(1)], 0.0)
    assert isinstance(again, Ask)
    assert isinstance(behind, Ask)
    assert (again.commit.amend is not None, len(again.commit.append)) == (True, 0)
    assert (behind.commit.amend is not None, len(behind.commit.append)) == (False, 1)


def test_a_fold_counts_hops_from_the_mail_it_came_from() -> None:
    """One more than the mail that a run came from; none once a person spoke."""
    far = Envelope(1, 1, BOSS, NORMAL, 3, 0.0, None, AgentMessage("go"))
    machine, state = turn(Phase.IDLE), session(Status.IDLE)
    action = machine.next(state, [far], 0.0)
    assert isinstance(action, Ask)
    assert action.commit.hops == 4
    both = turn(Phase.IDLE).next(state, [far, at(2)], 0.0)
    assert isinstance(both, Ask)
    assert both.commit.hops == 0


# ------------------------------------------------------------------ orders
@pytest.mark.parametrize(
    ("standing", "action", "status", "phase"),
    [
        (IDLE, Pause(), Status.PAUSED, Phase.IDLE),
        (RUNNING, Pause(), Status.PAUSED, Phase.MODEL),
        (FAILED, Pause(), Status.PAUSED, Phase.IDLE),
        (PAUSED, Resume(), Status.RUNNING, Phase.MODEL),
        ((Status.PAUSED, Phase.IDLE), Resume(), Status.IDLE, Phase.IDLE),
        (FAILED, Resume(), Status.IDLE, Phase.IDLE),
        (RUNNING, Resume(), None, Phase.MODEL),
        (RUNNING, StopRun(run=1), Status.IDLE, Phase.IDLE),
        (RUNNING, StopRun(run=2), None, Phase.MODEL),
        (RUNNING, StopRun(), Status.IDLE, Phase.IDLE),
        (PAUSED, StopRun(run=1), Status.IDLE, Phase.IDLE),
        (IDLE, StopRun(run=2), None, Phase.IDLE),
        (IDLE, StopRun(run=1), None, Phase.IDLE),
        (WAITING, StopRun(run=1), Status.IDLE, Phase.IDLE),
    ],
)
def test_an_order_has_its_effect_and_its_cursor_in_one_commit(
    standing: tuple[Status, Phase], action: Any, status: Status | None, phase: Phase
) -> None:
    """Applied once, whatever happens."""
    machine = turn(standing[1])
    applied = apply_order(machine, session(standing[0], user("go")), order(action, 7), 0.0)
    rests = Phase.IDLE if applied.rests else machine.phase  # once it is kept: until then the same order may be decided anew
    assert (applied.commit.status, applied.commit.control_cursor, rests) == (status, 7, phase)
    assert applied.stopped is (status is Status.IDLE and isinstance(action, StopRun))


@pytest.mark.parametrize("action", [CancelCalls(["a", "b", "x"]), CancelAllAttached(calls=("a", "b", "x")), StopRun(run=1)])
def test_calls_that_are_cut_short_have_their_rows_and_their_mail_in_the_order_s_commit(action: Any) -> None:
    """The one that ended keeps its outcome; the one that had not begun never started."""
    state = session(Status.RUNNING, user("go"), asks("a", "b", "c"))
    state.calls["c"] = CallRecord("c", "look", {}, "completed", Outcome.completed("seen"))
    del state.live["c"]
    machine = turn(Phase.CALLS, "a", "b", "c")
    del machine.began["b"]
    applied = apply_order(machine, state, order(action), 5.0)
    assert {call: outcome.status for call, outcome in applied.cancelled.items()} == {"a": "cancelled", "b": "not_started"}
    assert [row.id for row in applied.commit.calls] == [draft.body.call for draft in applied.commit.mail] == ["a", "b"]
    if isinstance(action, StopRun):
        [results] = applied.commit.append
        assert [each.outcome.status for each in results.results] == ["cancelled", "not_started", "completed"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("row", "began", "status"),
    [
        (CallRecord("a", "look", {}, "issued"), None, "not_started"),
        (CallRecord("a", "look", {}, "started"), None, "not_started"),
        (CallRecord("a", "look", {}, "started"), Began(NOW, 2.0), "cancelled"),
        (CallRecord("a", "look", {}, "failed", Outcome.failed("no")), Began(NOW, 2.0), "failed"),
    ],
)
def test_one_function_says_how_a_call_that_is_cut_short_ends(row: CallRecord, began: Began | None, status: str) -> None:
    """Cancel, stop, interrupt and wrap-up agree."""
    outcome = settled(row, "why", began, 5.0)
    assert outcome.status == status
    assert (outcome.duration == 3.0) is (status == "cancelled")


# ------------------------------------------------------------------ a completion
def completion(*blocks: Any, stop: Any = "end") -> Completion:
    """What a model said."""
    return Completion(blocks, Usage(), stop)


CALL = ToolCall("", "look", {})


@pytest.mark.parametrize(
    ("said", "wrapped_up", "phase", "items", "failure"),
    [
        (completion(Text("ok")), False, Phase.ANSWERED, 1, False),
        (completion(CALL, CALL), False, Phase.CALLS, 1, False),
        (completion(Text("words"), CALL), False, Phase.CALLS, 1, False),
        (completion(), False, Phase.MODEL, 0, False),
        (completion(Text(" ")), False, Phase.MODEL, 0, False),
        (completion(stop="length"), False, Phase.MODEL, 0, True),
        (completion(stop="refused"), False, Phase.MODEL, 0, True),
        (completion(Text("half of it"), stop="length"), False, Phase.ANSWERED, 1, False),
        (completion(Text("ok")), True, Phase.ANSWERED, 1, False),
        (completion(CALL), True, Phase.ANSWERED, 2, False),
        (completion(), True, Phase.ANSWERED, 0, False),
    ],
)
def test_what_a_completion_leads_to(said: Completion, *, wrapped_up: bool, phase: Phase, items: int, failure: bool) -> None:
    """Calls, an answer, another try, or an end."""
    machine = turn(Phase.MODEL, wrapped_up=wrapped_up)
    done = take(machine, session(Status.RUNNING, user("go")), said, "test:model", 0.0)
    assert (machine.phase, len(done.commit.append), done.failure is not None) == (phase, items, failure)


def test_the_calls_of_a_completion_have_rows_and_those_with_a_slot_start() -> None:
    """C1: issued, or started for those that begin now."""
    machine = turn(Phase.MODEL, max_calls=1, runtime=("wait",), attach=lambda tool: 0 if tool == "later" else None)
    said = completion(CALL, ToolCall("", "wait", {}), ToolCall("", "later", {}), CALL)
    done = take(machine, session(Status.RUNNING, user("go")), said, "test:model", 0.0)
    assert [(row.id, row.status) for row in done.commit.calls] == [
        ("call_1", "started"), ("call_2", "started"), ("call_3", "started"), ("call_4", "issued"),
    ]  # fmt: skip
    assert done.start == ("call_1", "call_2", "call_3")
    assert {row.idempotency_key for row in done.commit.calls} == {f"s/call_{number}" for number in range(1, 5)}


# ------------------------------------------------------------------ taking up what was left
@pytest.mark.parametrize(
    ("state", "phase"),
    [
        (session(Status.READY), Phase.IDLE),
        (session(Status.IDLE, user("go"), says("ok")), Phase.IDLE),
        (session(Status.IDLE, user("go")), Phase.IDLE),
        (session(Status.FAILED, user("go")), Phase.IDLE),
        (session(Status.RUNNING, user("go")), Phase.MODEL),
        (session(Status.RUNNING, user("go"), says("ok")), Phase.ANSWERED),
        (session(Status.WAITING, user("go"), says("ok")), Phase.ANSWERED),
        (session(Status.RUNNING, user("go"), asks("a")), Phase.CALLS),
        (session(Status.RUNNING, user("go"), asks("a"), answers("a")), Phase.MODEL),
        (session(Status.PAUSED, user("go")), Phase.MODEL),
        (session(Status.PAUSED, user("go"), says("ok")), Phase.IDLE),
        (session(Status.PAUSED, user("go"), asks("a")), Phase.CALLS),
        (session(Status.PAUSED, user("go"), stopped=mail(Control(StopRun()))), Phase.IDLE),
    ],
)
def test_a_session_is_taken_up_where_it_was_left(state: State, phase: Phase) -> None:
    """What was not answered is asked, what was not settled is settled; nothing begins by itself."""
    machine = turn(Phase.IDLE)
    recover(machine, state, ())
    assert (machine.phase, machine.run) == (phase, 1)


def test_calls_that_ran_and_are_gone_are_orphaned_and_those_that_had_not_begun_are_queued() -> None:
    """Nobody knows how far the first came; the second did nothing yet; the third still runs."""
    state = session(Status.RUNNING, user("go"), asks("a", "b", "c"))
    state.calls["b"] = state.live["b"] = CallRecord("b", "look", {}, "issued")
    machine = turn(Phase.CALLS, "a", "c")
    applied = recover(machine, state, ("c",))
    assert {call: outcome.status for call, outcome in applied.cancelled.items()} == {"a": "orphaned"}
    assert [call.state for call in machine.open] == ["running", "queued", "running"]
    assert list(machine.began) == ["c"]


def test_a_placeholder_s_outcome_is_told_by_mail_and_another_s_is_not() -> None:
    """Shown if and only if its result did not tell it."""
    state = session(Status.IDLE, user("go"), asks("a", "b"))
    state.placeholders.add("a")
    action = turn(Phase.IDLE).next(state, [finished("a", 1), finished("b", 2)], 0.0)
    assert isinstance(action, Ask)
    assert [each.body.call for each in action.delivered] == ["a"]
    assert action.commit.mail_cursor == 2


def test_results_stand_in_call_order_with_placeholders_for_what_goes_on() -> None:
    """One per call."""
    state = session(Status.RUNNING, user("go"), asks("a", "b"))
    state.calls["b"] = CallRecord("b", "look", {}, "completed", Outcome.completed("seen"))
    machine = turn(Phase.CALLS, "a", "b")
    machine.open[0].detached = "mail"
    first, second = machine.results(state)
    assert isinstance(first.outcome, Placeholder)
    assert (first.outcome.reason, second.text) == ("mail", "seen")
