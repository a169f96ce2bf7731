"""Taking over a completion: C1 of the commit protocol. Pure.

calls                        an assistant item, a ledger row per call; those that have a slot start with this very commit
words, no calls              an assistant item: a final answer
nothing                      no item: mail or a nudge amends what was not answered; cut off by length, or refused, it is a failure
calls in the wrap-up         answered `not_started` in the same commit; its words are the answer
"""

from math import inf
from typing import Literal

from attrs import evolve

from actors.models._blocks import Block, Completion, Text, ToolCall, Usage
from actors.models._items import AssistantItem, Result, ResultsItem

from ._actions import Completed, OpenCall, Phase
from ._record import UNSPENT, CallRecord, Commit, State, ended
from ._settle import settled
from ._turn import Turn


def take(turn: Turn, state: State, completion: Completion, model: str, now: float, spent: Usage = UNSPENT) -> Completed:
    """What a completion of this model asks of the loop, at `now` on trio's clock. `spent`: by the run, this one included."""
    item = AssistantItem(_minted(state, completion), model)
    if not item.calls and not any(isinstance(block, Text) and block.text.strip() for block in item.blocks):
        return _empty(turn, completion, spent)
    if not item.calls:
        turn.phase = Phase.ANSWERED
        turn.boundary = not turn.wrapped_up
        return Completed(Commit(append=(item,), spent=spent), answer=item.text)
    if turn.wrapped_up:
        return _stray(turn, state, item, spent)
    turn.phase = Phase.CALLS
    turn.asked = {call.id: call for call in item.calls}
    turn.open = [opened(turn, call, now) for call in item.calls]
    start = turn.started_now(state)
    rows = tuple(_row(state, call, "started" if call.id in start else "issued") for call in item.calls)
    return Completed(Commit(append=(item,), calls=rows, spent=spent), start=start, announced=item.calls)


def _minted(state: State, completion: Completion) -> tuple[Block, ...]:
    """The blocks, with call ids of ours: unique in the session's history, and short."""
    number = len(state.calls)
    blocks: list[Block] = []
    for block in completion.blocks:
        if isinstance(block, ToolCall):
            number += 1
            blocks.append(evolve(block, id=f"call_{number:x}"))
        else:
            blocks.append(block)
    return tuple(blocks)


def opened(turn: Turn, call: ToolCall, now: float) -> OpenCall:
    """A call that begins now, or is queued: its attach deadline counts from here."""
    attach = turn.attach(call.tool)
    return OpenCall(call.id, call.tool, attach, inf if attach is None else now + attach, call.tool in turn.runtime)


def _empty(turn: Turn, completion: Completion, spent: Usage) -> Completed:
    """An empty turn leaves no item: mail or a nudge amends what was not answered. Cut off by length it is an error."""
    if completion.stop == "length":
        return Completed(Commit(), failure="the answer was cut off by its length limit before it said anything")
    if completion.stop == "refused":
        return Completed(Commit(), failure="the model refused to answer")
    turn.phase = Phase.ANSWERED if turn.wrapped_up else Phase.MODEL
    turn.nudging = turn.boundary = not turn.wrapped_up
    return Completed(Commit(spent=spent))


def _stray(turn: Turn, state: State, item: AssistantItem, spent: Usage) -> Completed:
    """Calls in the wrap-up are answered, not run; its words are the answer."""
    rows = tuple(_row(state, call, "issued") for call in item.calls)
    outcomes = {row.id: settled(row, "the rounds of this run are used up") for row in rows}
    results = ResultsItem(tuple(Result(call.id, call.tool, outcomes[call.id]) for call in item.calls))
    turn.phase = Phase.ANSWERED
    commit = Commit(append=(item, results), calls=tuple(ended(row, outcomes[row.id]) for row in rows), spent=spent)
    return Completed(commit, announced=item.calls, settled=outcomes, answer=item.text.strip() and item.text)


def _row(state: State, call: ToolCall, status: Literal["issued", "started"]) -> CallRecord:
    return CallRecord(
        call.id, call.tool, call.arguments, status, idempotency_key=f"{state.id}/{call.id}", run=state.run, hops=state.hops
    )
