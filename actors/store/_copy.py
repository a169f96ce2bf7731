"""Sessions taken elsewhere: as JSON, and as copies that go on from an item. Pure.

A copy has the transcript, the ledger and a fresh mailbox. What went on in the session it came from does not go on in it:

    a call without a result        gets one: its outcome if there is one, else `orphaned`; `not_started` if it had not begun
    a detached call without end    `orphaned`, told by mail
    a deferred one                 `cancelled`, told by mail: a token is answered in the session that it was made for, and nowhere else
    unread mail, timers            stay where they are
    what a provider refused        stays the note that it was

The JSON is one object: `postroom_session` is the form's number, `items` and `calls` are as stores keep them, each thing whole.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from attrs import evolve, frozen

from actors._envelope import FromToolCall, ToolCallFinished, ended_call
from actors._errors import CodecError, ConfigError, StoreError, TranscriptInvalid
from actors._exit import Status
from actors._outcome import Outcome
from actors.agent._record import CallRecord, Commit, Draft, State, ended
from actors.agent._refused import shown
from actors.models._items import AssistantItem, Item, Placeholder, Result, ResultsItem, UserItem
from actors.models._transcript import Validator

from ._rows import Shelf, asked_in, parse, read_call, write_call, write_item

FORM = 1


@frozen
class Copy:
    """A transcript and its ledger, every call of it settled."""

    agent: str
    owner: str | None
    items: tuple[Item, ...]
    calls: tuple[CallRecord, ...]

    def commit(self, session: str) -> Commit:
        """What makes a new session of this id this copy."""
        told = {ended_call(each) for item in _user_items(self.items) for each in item.mail}
        late = _placed(self.items) - told
        mail = tuple(
            Draft(session, ToolCallFinished(row.id, row.tool, row.outcome), FromToolCall(session, row.id), hops=row.hops)
            for row in self.calls
            if row.id in late and row.outcome is not None
        )
        turns = sum(isinstance(item, AssistantItem) for item in self.items)
        runs = max((row.run for row in self.calls), default=min(turns, 1))
        return Commit(
            append=self.items, calls=self.calls, mail=mail, status=Status.IDLE if self.items else None, run=runs, turn=turns, loop=False
        )  # fmt: skip


def copied(state: State, at: int | None = None) -> Copy:
    """The session up to the item at this place (from 0; None: all of it). `ConfigError` if there is none."""
    if at is not None and not 0 <= at < len(state.items):
        raise ConfigError(f"{state.id} has {len(state.items)} items, from 0; found at={at!r}")
    items = [shown(item, state.refused) for item in state.items[: None if at is None else at + 1]]
    asked = {call.id for item in items if isinstance(item, AssistantItem) for call in item.calls}
    calls = tuple(evolve(_settled(row), token=None) for row in state.calls.values() if row.id in asked)
    if items and isinstance(items[-1], AssistantItem) and items[-1].calls:
        ends = {row.id: row.outcome for row in calls}
        items.append(
            ResultsItem([Result(call.id, call.tool, ends[call.id] or Outcome("orphaned")) for call in items[-1].calls])
        )
    return Copy(state.agent, state.owner, tuple(items), calls)


_CUT = {
    "issued": Outcome("not_started", error="its session was copied before it began"),
    "deferred": Outcome("cancelled", error="its answer goes to the session that this one was copied from"),
}


def _settled(row: CallRecord) -> CallRecord:
    return row if row.outcome is not None else ended(row, _CUT.get(row.status, Outcome("orphaned")))


def _placed(items: Sequence[Item]) -> set[str]:
    results = (result for item in items if isinstance(item, ResultsItem) for result in item.results)
    return {result.call for result in results if isinstance(result.outcome, Placeholder)}


def _user_items(items: Sequence[Item]) -> list[UserItem]:
    beside = [item.results[-1].mail for item in items if isinstance(item, ResultsItem)]
    return [item for item in (*items, *beside) if isinstance(item, UserItem)]


# ------------------------------------------------------------------ JSON
def write(copy: Copy) -> str:
    """The copy as JSON. Raises `CodecError` for mail of a class that has none."""
    doc = {
        "postroom_session": FORM,
        "agent": copy.agent,
        "owner": copy.owner,
        "items": [msgspec.Raw(write_item(item, lambda _envelope: False, {}).encode()) for item in copy.items],
        "calls": [_call(row) for row in copy.calls],
    }
    return msgspec.json.encode(doc).decode()


def _call(row: CallRecord) -> dict[str, Any]:
    id, tool, status, arguments, outcome, facts = write_call(row, row.idempotency_key, told=False)
    texts = {"arguments": arguments, "outcome": outcome, "facts": facts}
    return {"id": id, "tool": tool, "status": status, "key": row.idempotency_key,
            **{name: msgspec.Raw((text or "null").encode()) for name, text in texts.items()}}  # fmt: skip


def read(text: str) -> Copy:
    """The copy in such JSON. `CodecError` says what is wrong with it; a history that no provider would take is refused too."""
    try:
        doc = msgspec.json.decode(text)
    except (ValueError, TypeError) as error:
        raise CodecError(f"this is no exported session: {error}") from None
    form = doc.get("postroom_session") if isinstance(doc, Mapping) else None
    if form != FORM:
        raise CodecError(
            f"this is no exported session that this version reads: found postroom_session={form!r}, expected {FORM}"
        )
    try:
        return _read(doc)
    except (KeyError, TypeError, ValueError, AttributeError, StoreError, TranscriptInvalid) as error:
        raise CodecError(f"this exported session is damaged: {type(error).__name__}: {error}") from None


def _read(doc: Mapping[str, Any]) -> Copy:
    texts = [msgspec.json.encode(item).decode() for item in doc["items"]]
    ends = {row["id"]: row["outcome"] for row in doc["calls"] if row["outcome"] is not None}
    shelf = Shelf({}, {})
    items = shelf.read(texts, "an exported item")
    Validator().check(items)
    asked = asked_in(items)
    calls = [_row(row, asked, ends) for row in doc["calls"]]
    return Copy(doc["agent"], doc["owner"], tuple(items), tuple(calls))


def _row(row: Mapping[str, Any], asked: Mapping[str, Any], ends: Mapping[str, Any]) -> CallRecord:
    columns = (
        row["id"],
        row["tool"],
        row["status"],
        msgspec.json.encode(row["arguments"]).decode(),
        msgspec.json.encode(row["facts"]).decode(),
    )
    outcome = parse(msgspec.json.encode(ends[row["id"]]).decode(), Outcome, "an outcome") if row["id"] in ends else None
    return read_call(columns, row["key"], asked, outcome)
