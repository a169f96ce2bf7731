"""Orders to a session, and what else ends calls from outside: the end of the session, the start of another activation. Pure.

    order                 effect, exactly once: its cursor is in the same commit
    Pause                 the status; calls stay as they are
    Resume                back to what it was; after a failure the round is tried again
    StopRun               every call is settled, deferred ones too, the results are there, nothing older wakes the session, `[run stopped]` is told
    CancelCalls           those calls are settled
    CancelAllAttached     the calls it was stamped with are settled
    SetTimer, DropTimer   a timer is kept, or not any more: from where the session does not run
    EndSession            none here: it is never read, for the end of the session is what says that it was done
    CallDeferred          nothing: whoever waits for that call looks again

`StopRun` is stamped with the run, `CancelAllAttached` with the calls that it meant when it was accepted: a replay hits no other. A
run can be stopped before it begins: what was to begin it is read with what begins the next one. A stop ends a pause of its run.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime

from attrs import evolve
from msgspec.structs import replace

from actors._envelope import (
    CancelAllAttached,
    CancelCalls,
    Control,
    DropTimer,
    Envelope,
    FromToolCall,
    Pause,
    Resume,
    SetTimer,
    StopRun,
    ToolCallFinished,
)
from actors._exit import Status
from actors._outcome import Outcome
from actors.models._blocks import ToolCall
from actors.models._items import AssistantItem, Item, Result, ResultsItem

from ._actions import Applied, Phase
from ._completion import opened
from ._record import CallRecord, Commit, Draft, State, TimerRow, ended
from ._settle import settled
from ._turn import Turn

Repeats = Callable[[str], bool]


def never(_tool: str) -> bool:
    """Nothing may be started twice."""
    return False


def apply_order(turn: Turn, state: State, envelope: Envelope, now: float) -> Applied:
    """Apply one order, exactly once: its effect and its cursor are one commit."""
    action = envelope.body.action
    applied = Applied(Commit())
    match action:
        case Pause():
            applied = _pause(turn, state, envelope, now)
        case Resume():
            applied = _resume(turn, state)
        case StopRun(run=run):
            applied = _stop(turn, state, envelope, now) if run in {None, turn.meant} else applied
        case CancelCalls(calls=calls) | CancelAllAttached(calls=calls):
            applied = _cutting(state, cut(turn, state, calls or (), "cancelled by request", now))
        case SetTimer():
            due = datetime.fromtimestamp(action.due, UTC)
            applied = Applied(Commit(timers=(TimerRow(action.timer, due, action.label, action.text, action.hops),)))
        case DropTimer(timer=timer):
            applied = Applied(Commit(timers_gone=(timer,)))
    mail_cursor = envelope.seq if state.mail_cursor == envelope.seq - 1 else None  # nothing unread before it: it may be trimmed
    return evolve(applied, commit=replace(applied.commit, control_cursor=envelope.seq, mail_cursor=mail_cursor))


def resumes(envelope: Envelope) -> bool:
    """Whether this is an order to go on."""
    return isinstance(envelope.body, Control) and isinstance(envelope.body.action, Resume)


def _pause(turn: Turn, state: State, envelope: Envelope, now: float) -> Applied:
    if state.status is Status.FAILED and turn.phase is Phase.IDLE:
        turn.retrying = turn.again = True  # when it is resumed
    gone = cut(turn, state, state.live, "the session was paused", now) if turn.switches.pause_cancels_calls else {}
    applied = _cutting(state, gone)
    return evolve(applied, commit=replace(applied.commit, status=Status.PAUSED, paused_at=envelope.seq))


def _resume(turn: Turn, state: State) -> Applied:
    if state.status is Status.FAILED and turn.phase is Phase.CALLS:
        return Applied(Commit(status=Status.RUNNING))
    if state.status is Status.FAILED:
        turn.retrying = turn.again = True
        return Applied(Commit(status=Status.IDLE))
    if state.status is not Status.PAUSED:
        return Applied(Commit())
    return Applied(turn.resumed(state))


def _stop(turn: Turn, state: State, envelope: Envelope, now: float) -> Applied:
    """End the run: every call is settled, the results are there, and nothing older wakes the session."""
    turn.retrying = False
    if turn.phase is Phase.IDLE:  # a run about to begin
        return Applied(Commit(floor=envelope.seq))
    applied = _cutting(state, cut(turn, state, (*state.live, *state.deferred), "the run was stopped", now))
    results = _results(turn, state, applied.cancelled)
    commit = replace(applied.commit, append=results, status=Status.IDLE, stop=envelope)
    return evolve(applied, commit=commit, stopped=True, rests=True)


# ------------------------------------------------------------------ calls cut short
def cut(turn: Turn, state: State, calls: Iterable[str], why: str, now: float) -> dict[str, Outcome]:
    """The outcomes of those of these calls that are still going on, or deferred."""
    rows = [state.calls[call] for call in calls if call in state.live or call in state.deferred]
    return {row.id: settled(row, why, turn.began.get(row.id), now) for row in rows}


def cancel(turn: Turn, state: State, call: str, why: str, now: float) -> Applied:
    """The `cancel_tool_call` tool: settle one call."""
    return _cutting(state, cut(turn, state, (call,), why, now))


def _cutting(state: State, gone: Mapping[str, Outcome]) -> Applied:
    rows = tuple(ended(state.calls[call], outcome) for call, outcome in gone.items())
    return Applied(Commit(calls=rows, mail=tuple(finished(state, row) for row in rows)), gone)


def _results(turn: Turn, state: State, gone: Mapping[str, Outcome]) -> tuple[Item, ...]:
    """The results of the open calls, which are final now or in `gone`."""
    outcomes = {call.id: gone.get(call.id) or state.calls[call.id].outcome for call in turn.open}
    results = tuple(Result(call.id, call.tool, outcomes[call.id] or Outcome("orphaned")) for call in turn.open)
    return (ResultsItem(results),) if results else ()


def finished(state: State, row: CallRecord) -> Draft:
    """The mail that a call's end is."""
    assert row.outcome is not None
    return Draft(state.id, ToolCallFinished(row.id, row.tool, row.outcome), FromToolCall(state.id, row.id), hops=row.hops)


# ------------------------------------------------------------------ the end of an activation, and the beginning of one
def close(turn: Turn, state: State, now: float) -> Applied:
    """The session is stopped for good: its run ends, every call is settled, nobody reads mail about it."""
    gone = cut(turn, state, (*state.live, *state.deferred), "its session was stopped", now)
    rows = tuple(ended(state.calls[call], outcome) for call, outcome in gone.items())
    commit = Commit(calls=rows, append=_results(turn, state, gone), status=Status.STOPPED)
    return Applied(commit, gone, stopped=going_on(turn, state), rests=True)


def shutdown(turn: Turn, state: State, now: float, *, kept: bool, repeats: Repeats = never) -> Applied:
    """The system stops: calls that run end with it; the run does not, it goes on when the session is opened again.

    Where the session is kept beyond the process, a call that has not begun yet begins then, and one of a tool that may be started
    twice (`repeats`) begins once more; where it is not, neither ever will.
    """
    ends = [call for call in turn.began if not repeats(state.calls[call].tool)] if kept else state.live
    applied = _cutting(state, cut(turn, state, ends, "shutdown", now))
    return evolve(applied, commit=replace(applied.commit, loop=False))


def recover(turn: Turn, state: State, live: Collection[str], now: float = 0.0, repeats: Repeats = never) -> Applied:
    """Take up what an earlier loop left; `live` are the calls that still run.

    A call that had begun and runs no more is `orphaned`: it may have run. One that had not begun is queued, and so is one of a
    tool that may be started twice (`repeats`), with a fresh attach. A request without an answer is made again and does not count as
    a round.
    """
    last = state.items[-1] if state.items else None
    known = {call.id: call for call in turn.open}
    turn.rest()
    turn.run = state.run
    if isinstance(last, AssistantItem) and last.calls:
        turn.phase = Phase.CALLS
        turn.asked = {call.id: call for call in last.calls}
        turn.open = [known.get(call.id) or evolve(opened(turn, call, now), state="running") for call in last.calls]
    elif _goes_on(state, last):
        turn.phase = Phase.ANSWERED if isinstance(last, AssistantItem) else Phase.MODEL
        turn.again = turn.phase is Phase.MODEL
    running = {*live, *(call.id for call in turn.open if call.wait is not None)}
    turn.began = {call: began for call, began in turn.began.items() if call in running}
    idle = {call: row for call, row in state.live.items() if call not in running}
    for call in turn.open:
        row = idle.get(call.id)
        call.state = "queued" if row is not None and (row.status == "issued" or repeats(row.tool)) else call.state
    lost = [call for call, row in idle.items() if row.status == "started" and not repeats(row.tool)]
    return _cutting(state, dict.fromkeys(lost, Outcome("orphaned")))


def lost_detached(turn: Turn, state: State, live: Collection[str]) -> list[ToolCall]:
    """Calls that `recover` left as started: they run no more, may be started twice, and no turn waits for them."""
    there = {*live, *(call.id for call in turn.open)}
    lost = {id for id, row in state.live.items() if row.status == "started" and id not in there}
    items = [item for item in state.items if isinstance(item, AssistantItem)] if lost else []
    return [call for item in items for call in item.calls if call.id in lost]


def _goes_on(state: State, last: Item | None) -> bool:
    """Whether a run was in progress. A pause hides that: what was not answered, and was not stopped, is the run's."""
    if state.status is Status.PAUSED:
        answered = last is None or isinstance(last, AssistantItem)
        return state.stopped is None and (not answered or not state.placeholders.isdisjoint(state.live))
    return state.status in {Status.RUNNING, Status.WAITING}


def going_on(turn: Turn, state: State) -> bool:
    """Whether the turn is one of a run in progress: of one that failed, calls may be open still."""
    return turn.phase is not Phase.IDLE and state.status is not Status.FAILED


def attached(turn: Turn) -> tuple[str, ...]:
    """The calls that the session is attached to now."""
    return tuple(call.id for call in turn.open if call.state != "final" and call.detached is None)
