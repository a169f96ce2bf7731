"""A commit, as it goes into rows. Pure: what it will change is worked out before anything is written."""

import os
from operator import attrgetter

from msgspec.structs import replace

from actors._mailbox import ALWAYS_ACCEPTED
from actors.agent._news import news_of
from actors.agent._record import NOTHING, PLAIN, Commit, State
from actors.models._items import AssistantItem, Item

from ._admit import Letter
from ._rows import Held, after, dump, write_call, write_facts, write_item, write_limits
from ._tables import Change

_cursors_of = attrgetter("mail_cursor", "control_cursor", "floor", "stop")
_facts_of = attrgetter(
    *PLAIN, "append", "amend", "handled_cursor", "stop", "fetched", "refused"
)  # they stand in the session's own row
_NO_CURSORS, _NO_FACTS = _cursors_of(NOTHING), _facts_of(NOTHING)


def changed(state: State, key: int, commit: Commit, held: Held) -> Change:
    """What this commit is in rows. `held`: whether an envelope has a row in the session's mailbox."""
    facts, cursors = commit.loop or _facts_of(commit) != _NO_FACTS, _cursors_of(commit) != _NO_CURSORS
    ahead = after(state, commit) if facts or cursors else state
    ends = {row.id: row.outcome for row in commit.calls}
    return Change(
        session=state.id,
        key=key,
        epoch=state.epoch,
        version=state.version if commit.loop else None,
        commit_id=os.urandom(12),
        items=_items(state, commit, held) if commit.append or commit.amend is not None else (),
        calls=_calls(state, commit) if commit.calls else (),
        letters=[
            Letter.of(draft, ends if draft.to == state.id else {})
            for draft in sorted(commit.mail, key=lambda each: isinstance(each.body, ALWAYS_ACCEPTED))
        ],
        status=ahead.status.value,
        limits=None if commit.limits is None else write_limits(commit.limits),
        facts=write_facts(ahead) if facts else None,
        timers=[(row.id, row.due.timestamp(), dump(row)) for row in commit.timers],
        timers_gone=commit.timers_gone,
        watches=[(row.id, row.session, row.until.timestamp(), dump(row)) for row in commit.watches],
        watches_gone=commit.watches_gone,
        tokens=[(row.token, row.id) for row in commit.calls if row.deferred and row.token is not None],
        voided=[row.id for row in commit.calls if row.final and row.id in state.deferred] if state.deferred else (),
        news=news_of(state, commit),
        cursors=(ahead.mail_cursor, ahead.control_cursor, ahead.floor) if cursors else None,
    )


def _items(state: State, commit: Commit, held: Held) -> list[str]:
    """The items; what the ledger knows of their calls when this commit is done is not written twice."""
    rows = {row.id: row for row in commit.calls}
    named = {each.call for item in commit.append for each in getattr(item, "results", ())}
    found = {id: rows.get(id) or state.calls.get(id) for id in named}
    known = {id: row.outcome for id, row in found.items() if row is not None}
    texts = [write_item(commit.amend, held, known, amends=True)] if commit.amend is not None else []
    return [*texts, *(write_item(item, held, known) for item in commit.append)]


def _calls(state: State, commit: Commit) -> list[tuple[str, str, str, str | None, str | None, str]]:
    """The rows of the ledger; without arguments where they are kept already, or stand in an assistant item."""
    items: list[Item] = [*commit.append, *state.items[-1:]]
    asked = {call.id: call.arguments for item in items if isinstance(item, AssistantItem) for call in item.calls}
    return [
        write_call(row, f"{state.id}/{row.id}", told=row.id in state.calls or asked.get(row.id) == row.arguments)
        for row in commit.calls
    ]


def joined(first: Change, then: Change) -> Change | None:
    """Two commits of the loop, one right after the other, as one; None if the first is more than a fold."""
    more = (
        first.calls,
        first.letters,
        first.timers,
        first.timers_gone,
        first.watches,
        first.watches_gone,
        first.tokens,
        first.voided,
    )
    if any(more) or first.news is not None or first.limits is not None or then.version is None:
        return None
    return replace(
        then,
        version=first.version,
        steps=first.steps + then.steps,
        items=[*first.items, *then.items],
        cursors=then.cursors or first.cursors,
    )
