"""Orders to a session, and how calls are settled that do not end by themselves. Pure.

    order                 effect, exactly once: its cursor is in the same commit
    Pause                 the status; calls stay as they are
    Resume                back to what it was; after a failure the round is tried again
    StopRun               every call is settled, the results are there, nothing older wakes the session, `[run stopped]` is told
    CancelCalls           those calls are settled
    CancelAllAttached     the calls it was stamped with are settled

`StopRun` is stamped with the run, `CancelAllAttached` with the calls that it meant when it was accepted: a replay hits no other.
"""

from collections.abc import Collection, Mapping, Sequence
from math import inf

from attrs import evolve

from actors._envelope import CancelAllAttached, CancelCalls, Envelope, FromToolCall, Pause, Resume, StopRun, ToolCallFinished
from actors._exit import Status
from actors._outcome import Outcome
from actors.models._items import AssistantItem, Result, ResultsItem

from ._actions import Applied, OpenCall, Phase
from ._record import CallRecord, Commit, Draft, State, ended
from ._turn import Turn


def settle(calls: Sequence[OpenCall], why: str) -> dict[str, Outcome]:
    """The outcome of each call that is cut short: it was cancelled if it ran, not started if it did not."""
    return {
        call.id: Outcome("cancelled", error=why) if call.state == "running" else Outcome("not_started", error=why)
        for call in calls
        if call.state != "final"
    }


def apply_order(turn: Turn, state: State, envelope: Envelope) -> Applied:  # noqa: PLR0911  # a table in order
    """Apply one order, exactly once: its effect and its cursor are one commit."""
    action = envelope.body.action
    seq = envelope.seq
    running = turn.phase is not Phase.IDLE
    if isinstance(action, Pause) and state.status not in {Status.FAILED, Status.STOPPED}:
        return Applied(Commit(control_cursor=seq, status=Status.PAUSED))
    if isinstance(action, Resume) and state.status is Status.PAUSED:
        back = Status.RUNNING if running else Status.IDLE if state.run else Status.READY
        return Applied(Commit(control_cursor=seq, status=back))
    if isinstance(action, Resume) and state.status is Status.FAILED:
        turn.retrying = turn.again = True
        return Applied(Commit(control_cursor=seq, status=Status.IDLE))
    if isinstance(action, StopRun) and running and action.run in {None, state.run}:
        return _stop(turn, state, envelope)
    if isinstance(action, StopRun) and not running:
        return Applied(Commit(control_cursor=seq, floor=seq))  # a run about to start: what is older wakes nothing
    if isinstance(action, CancelCalls | CancelAllAttached):
        return _cancel(turn, state, seq, action.calls or ())
    return Applied(Commit(control_cursor=seq))


def _cancel(turn: Turn, state: State, seq: int, ids: Sequence[str]) -> Applied:
    gone = cut(turn, state, ids, "cancelled by request")
    return Applied(_cutting(state, gone, Commit(control_cursor=seq)), gone)


def cut(turn: Turn, state: State, ids: Sequence[str], why: str) -> dict[str, Outcome]:
    """The outcomes of those of these calls that are still going on."""
    live = [call for call in ids if call in state.calls and not state.calls[call].final]
    queued = {call.id for call in turn.open if call.state == "queued"}
    return settle([OpenCall(call, "", None, inf, state="queued" if call in queued else "running") for call in live], why)


def _cutting(state: State, cut: Mapping[str, Outcome], commit: Commit) -> Commit:
    rows = tuple(ended(state.calls[call], outcome) for call, outcome in cut.items())
    mail = tuple(finished(state, row) for row in rows)
    return evolve(commit, calls=rows, mail=mail)


def _stop(turn: Turn, state: State, envelope: Envelope) -> Applied:
    """End the run: every call is settled, the results are there, and nothing older wakes the session."""
    gone = cut(turn, state, [call for call, row in state.calls.items() if not row.final], "the run was stopped")
    commit = _cutting(state, gone, Commit(control_cursor=envelope.seq, status=Status.IDLE, stop=envelope))
    if turn.open:
        results = tuple(Result(call.id, call.tool, gone.get(call.id) or _outcome(state, call.id)) for call in turn.open)
        commit = evolve(commit, append=(ResultsItem(results),))
    turn.open = []
    turn.phase = Phase.IDLE
    turn.nudging = False
    return Applied(commit, gone, stopped=True)


def cancel(turn: Turn, state: State, call: str, why: str) -> Applied:
    """The `cancel_tool_call` tool: settle one call."""
    gone = cut(turn, state, (call,), why)
    return Applied(_cutting(state, gone, Commit()), gone)


def recover(turn: Turn, state: State, live: Collection[str]) -> Commit | None:
    """Take up what an earlier loop left; `live` are the calls that still run.

    A call that had begun and runs no more is `orphaned`: it may have run. One that had not begun is queued. A request
    without an answer is made again and does not count as a round.
    """
    last = state.items[-1] if state.items else None
    known = {call.id: call for call in turn.open}
    turn.open = []
    if isinstance(last, AssistantItem) and last.calls:
        turn.phase = Phase.CALLS
        turn.asked = {call.id: call for call in last.calls}
        turn.open = [known.get(call.id) or OpenCall(call.id, call.tool, None, inf, state="running") for call in last.calls]
    elif state.status in {Status.RUNNING, Status.WAITING}:
        turn.phase = Phase.ANSWERED if isinstance(last, AssistantItem) else Phase.MODEL
        turn.again = turn.phase is Phase.MODEL
    waiting = {call.id for call in turn.open if call.wait is not None}
    lost = [row for row in state.calls.values() if row.status == "started" and row.id not in live and row.id not in waiting]
    for call in turn.open:
        call.state = "queued" if state.calls[call.id].status == "issued" else call.state
    if not lost:
        return None
    rows = tuple(ended(row, Outcome("orphaned")) for row in lost)
    return Commit(calls=rows, mail=tuple(finished(state, row) for row in rows))


# ------------------------------------------------------------------ small parts
def finished(state: State, row: CallRecord) -> Draft:
    """The mail that a call's end is."""
    assert row.outcome is not None
    return Draft(state.id, ToolCallFinished(row.id, row.tool, row.outcome), FromToolCall(state.id, row.id), hops=row.hops)


def _outcome(state: State, call: str) -> Outcome:
    outcome = state.calls[call].outcome
    assert outcome is not None
    return outcome
