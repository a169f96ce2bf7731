"""What a SQLite store does to its tables: each function is one job of the writer, or one look of a reader."""

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from attrs import frozen

from actors._envelope import INTERRUPT, NORMAL, Envelope
from actors._errors import LeaseLost, StoreError, VersionConflict
from actors._exit import Status
from actors._outcome import Outcome
from actors.agent._news import News
from actors.agent._record import CallRecord, State, TimerRow
from actors.models._items import Item

from ._admit import URGENT, Accepted, Letter, minted
from ._api import DELETED, SessionSummary
from ._continuations import keep_tokens
from ._holder import is_gone
from ._post import HALF, accept
from ._rows import (
    CODEC,
    Shelf,
    asked_in,
    body_from,
    check_codec,
    parse,
    read_call,
    read_facts,
    read_limits,
    read_sender,
    write_facts,
    write_limits,
)
from ._watches import drop, drop_all, keep, tell, watches_of

FULL = (1 << HALF) - 1  # the last place of a session


# ------------------------------------------------------------------ sessions
@frozen
class Lease:
    """What a holder takes now: its name, the time, and until when it holds."""

    holder: str
    now: float
    until: float

    def free(self, holder: str | None, until: float) -> bool:
        """Whether a session that this one holds until then may be taken."""
        return holder is None or holder == self.holder or until <= self.now or is_gone(holder)


def renew(db: sqlite3.Connection, lease: Lease) -> None:
    """Hold on to all that this holder has."""
    db.execute("UPDATE sessions SET held_until = ? WHERE holder = ?", (lease.until, lease.holder))


def let_go(db: sqlite3.Connection, holder: str, session: str | None = None, epoch: int = 0) -> None:
    """Hand over at once: all that this holder has, or one session, unless it was taken anew since."""
    one, which = ("", ()) if session is None else (" AND id = ? AND epoch = ?", (session, epoch))
    db.execute(f"UPDATE sessions SET holder = NULL WHERE holder = ?{one}", (holder, *which))  # noqa: S608  # ours, both


def create(db: sqlite3.Connection, state: State, lease: Lease) -> int:
    """Insert a session that nobody has; its key."""
    if db.execute("SELECT 1 FROM sessions WHERE id = ?", (state.id,)).fetchone():
        raise StoreError(f"session {state.id} is there already; open it instead of creating it")
    row = (state.id, state.agent, state.parent, state.owner, state.status.value, state.version, state.epoch)
    key = db.execute(
        "INSERT INTO sessions (id, agent, parent, owner, status, version, epoch, limits, facts, codec, holder, held_until)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*row, write_limits(state.limits), write_facts(state), CODEC, lease.holder, lease.until),
    ).lastrowid
    assert key is not None
    db.execute("INSERT INTO mailboxes (box) VALUES (?)", (key,))
    return key


@frozen
class Claim:
    """A session just taken over, or looked at: what is known of it but its history, and its unread mail."""

    key: int
    state: State
    last: int
    unread: Sequence[Envelope]


def claim(db: sqlite3.Connection, session: str, lease: Lease) -> Claim | None:
    """Take a session over: whoever had it before is fenced by the new epoch. `LeaseLost` if another process holds it."""
    held = db.execute("SELECT holder, held_until FROM sessions WHERE id = ?", (session,)).fetchone()
    if held is None:
        return None
    if not lease.free(*held):
        raise LeaseLost(f"session {session} is run by another process ({held[0]}); what is sent to it reaches it there")
    db.execute(
        "UPDATE sessions SET epoch = epoch + 1, holder = ?, held_until = ? WHERE id = ?", (lease.holder, lease.until, session)
    )
    return look(db, session)


def look(db: sqlite3.Connection, session: str) -> Claim | None:
    """A session as it stands, without its history, and its unread mail."""
    row = db.execute(
        "SELECT key, agent, parent, owner, status, version, epoch, limits, facts, codec FROM sessions WHERE id = ?", (session,)
    ).fetchone()
    if row is None or row[1] == DELETED:
        return None
    key, agent, parent, owner, status, version, epoch, limits, facts, codec = row
    what = f"session {session}"
    check_codec(codec, what)
    last, mail_cursor, control_cursor, floor = db.execute(
        "SELECT last, mail_cursor, control_cursor, floor FROM mailboxes WHERE box = ?", (key,)
    ).fetchone()
    state = State(
        session, agent, parent, owner, Status(status), version, epoch, read_limits(limits), mail_cursor, control_cursor,
        floor=floor, timers=_timers(db, key), watches=watches_of(db, key), **read_facts(facts, what),
    )  # fmt: skip
    unread = mail(db, key, min(mail_cursor, control_cursor), last, outcomes(db, key))
    return Claim(key, state, last, unread)


def _timers(db: sqlite3.Connection, key: int) -> dict[str, TimerRow]:
    rows = db.execute("SELECT id, timer FROM timers WHERE session = ? ORDER BY due", (key,))
    return {id: parse(text, TimerRow, f"timer {id}") for id, text in rows}


def look_at_all(db: sqlite3.Connection, session: str) -> tuple[State, Sequence[Envelope]] | None:
    """A session with its history, and its unread mail; nobody's hold of it changes."""
    found = look(db, session)
    if found is None:
        return None
    past = history(db, found.key, session, found.last)
    found.state.take_up(past.items, past.calls)
    return found.state, found.unread


@frozen
class History:
    """What a session has behind it."""

    items: list[Item]
    calls: dict[str, CallRecord]


def history(db: sqlite3.Connection, key: int, session: str, last: int) -> History:
    """The transcript and the ledger."""
    ends = outcomes(db, key)
    shelf = Shelf({envelope.seq: envelope for envelope in mail(db, key, 0, last, ends)}, ends)
    base = key << HALF
    rows = db.execute("SELECT item, codec FROM items WHERE at > ? AND at <= ? ORDER BY at", (base, base + FULL)).fetchall()
    for codec in {codec for _, codec in rows}:
        check_codec(codec, f"an item of {session}")
    items = shelf.read([item for item, _ in rows], f"an item of {session}")
    asked = asked_in(items)
    found = db.execute("SELECT id, tool, status, arguments, facts, codec FROM calls WHERE session = ? ORDER BY rowid", (key,))
    calls: dict[str, CallRecord] = {}
    for *columns, codec in found:
        check_codec(codec, f"a call of {session}")
        row = read_call(tuple(columns), f"{session}/{columns[0]}", asked, ends.get(columns[0]))
        calls[row.id] = row
    return History(items, calls)


def outcomes(db: sqlite3.Connection, key: int) -> dict[str, Outcome | None]:
    """How the calls of a session ended, those that did."""
    rows = db.execute("SELECT id, outcome FROM calls WHERE session = ? AND outcome IS NOT NULL", (key,))
    return {id: parse(text, Outcome, f"the outcome of {id}") for id, text in rows}


def mail(db: sqlite3.Connection, box: int, after: int, last: int, ends: dict[str, Outcome | None]) -> list[Envelope]:
    """The mail of a box behind `after`, up to `last`."""
    base = box << HALF
    rows = db.execute(
        "SELECT at, kind, id, sender, hops, sent, trace, body, codec FROM mail WHERE at > ? AND at <= ? ORDER BY at",
        (base + after, base + last),
    )
    return [_envelope(row, box, base, ends) for row in rows]


def _envelope(row: tuple[Any, ...], box: int, base: int, ends: dict[str, Outcome | None]) -> Envelope:
    at, kind, id, sender, hops, sent, trace, body, codec = row
    seq = at - base
    check_codec(codec, f"mail {seq}")
    priority = INTERRUPT if kind & URGENT else NORMAL
    key = minted(box, seq) if id is None else id
    return Envelope(key, seq, read_sender(sender), priority, hops, sent, trace, body_from(body, ends, f"mail {seq}"))


# ------------------------------------------------------------------ commits
class Change(msgspec.Struct, frozen=True, kw_only=True):  # as a `Commit`
    """A commit as it goes into rows. `facts` is None where it changes nothing that stands in the session's own row."""

    session: str
    key: int
    epoch: int
    version: int | None  # that it compares, and raises by its steps
    steps: int = 1
    commit_id: bytes  # for a store whose reply to a commit can be lost
    items: Sequence[str]
    calls: Sequence[tuple[Any, ...]]
    letters: Sequence[Letter]
    status: str
    limits: str | None
    facts: str | None
    cursors: tuple[int, int, int] | None  # of mail and control, and the floor
    timers: Sequence[tuple[str, float, str]] = ()
    timers_gone: Sequence[str] = ()
    watches: Sequence[tuple[str, str, float, str]] = ()
    watches_gone: Sequence[str] = ()
    tokens: Sequence[tuple[str, str]] = ()  # of the calls that are deferred, each with its call
    voided: Sequence[str] = ()  # deferred calls that end without an answer
    news: News | None = None  # for those that watch it


def commit(db: sqlite3.Connection, change: Change) -> list[Accepted]:
    """Carry a change out; what became of its mail."""
    watched = check_owner(db, change)
    if change.tokens or change.voided:
        keep_tokens(db, change.key, change.tokens, change.voided)
    for place, item in enumerate(change.items, _next_item(db, change.key) if change.items else 0):
        db.execute("INSERT INTO items VALUES (?, ?, ?)", (place, item, CODEC))
    for row in change.calls:
        db.execute(
            "INSERT INTO calls (session, id, tool, status, arguments, outcome, facts, codec) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (session, id) DO UPDATE SET status = excluded.status, outcome = excluded.outcome, facts = excluded.facts",
            (change.key, *row, CODEC),
        )
    for timer in change.timers:
        db.execute("INSERT OR REPLACE INTO timers VALUES (?, ?, ?, ?, ?)", (change.key, *timer, CODEC))
    for gone in change.timers_gone:
        db.execute("DELETE FROM timers WHERE session = ? AND id = ?", (change.key, gone))
    if change.watches or change.watches_gone:
        keep(db, change.key, change.watches)
        drop(db, change.key, change.watches_gone)
    accepted = [accept(db, letter) for letter in change.letters]
    _update(db, change)
    if change.news is not None:
        accepted += tell(db, change.key, change.news, watched)
    return accepted


def commit_both(db: sqlite3.Connection, begun: Change, change: Change) -> list[Accepted]:
    """Carry a change out, and before it the one that was begun, if that is not there yet."""
    row = db.execute("SELECT version FROM sessions WHERE key = ? AND id = ?", (begun.key, begun.session)).fetchone()
    first = commit(db, begun) if row is not None and row[0] == begun.version else []
    return first + commit(db, change)


def check_owner(db: sqlite3.Connection, change: Change) -> float:
    """Until when anybody may watch it. `LeaseLost`, `VersionConflict` or `StoreError` if this is not the owner's next commit."""
    found = db.execute(
        "SELECT epoch, version, watched FROM sessions WHERE key = ? AND id = ?", (change.key, change.session)
    ).fetchone()
    if found is None:
        raise StoreError(f"session {change.session} is not in the store any more; it was deleted")
    epoch, version, watched = found
    if epoch != change.epoch:
        raise LeaseLost(f"session {change.session} was taken over (epoch {epoch}, this is {change.epoch}); nothing was kept")
    if change.version is not None and version != change.version:
        raise VersionConflict(
            f"session {change.session} is at version {version}, this commit expected {change.version}; nothing was kept"
        )
    return float(watched)


def _next_item(db: sqlite3.Connection, key: int) -> int:
    base = key << HALF
    row = db.execute("SELECT at FROM items WHERE at > ? AND at <= ? ORDER BY at DESC LIMIT 1", (base, base + FULL)).fetchone()
    return 1 + (base if row is None else int(row[0]))


def _update(db: sqlite3.Connection, change: Change) -> None:
    if change.facts is not None:
        db.execute(
            "UPDATE sessions SET status = ?, version = version + ?, facts = ?, limits = coalesce(?, limits) WHERE key = ?",
            (change.status, 0 if change.version is None else change.steps, change.facts, change.limits, change.key),
        )
    if change.cursors is not None:
        db.execute(
            "UPDATE mailboxes SET mail_cursor = max(mail_cursor, ?), control_cursor = max(control_cursor, ?), floor = max(floor, ?) WHERE box = ?",
            (*change.cursors, change.key),
        )


def delete(db: sqlite3.Connection, session: str, lease: Lease) -> None:
    """Delete what a session has; its row stays as a tombstone."""
    row = db.execute("SELECT key, holder, held_until FROM sessions WHERE id = ?", (session,)).fetchone()
    if row is None:
        return
    key, *held = row
    if not lease.free(*held):
        raise LeaseLost(f"session {session} is run by another process ({held[0]}); delete it there, or once that has ended")
    base = key << HALF
    for table in ("items", "mail"):
        db.execute(f"DELETE FROM {table} WHERE at > ? AND at <= ?", (base, base + FULL))  # noqa: S608  # ours
    for table in ("calls", "timers"):
        db.execute(f"DELETE FROM {table} WHERE session = ?", (key,))  # noqa: S608  # ours
    drop_all(db, key)
    db.execute("UPDATE mailboxes SET mail_cursor = last, control_cursor = last, wakes = 0 WHERE box = ?", (key,))
    db.execute(
        "UPDATE sessions SET status = 'stopped', agent = ?, parent = NULL, owner = NULL, facts = '{}', epoch = epoch + 1, holder = NULL"
        " WHERE key = ?",
        (DELETED, key),
    )


# ------------------------------------------------------------------ looking
_SUMMARY = """
SELECT s.id, s.agent, s.parent, s.owner, s.status,
    (SELECT count(*) FROM mail WHERE at > (s.key << 32) + m.mail_cursor AND at <= (s.key << 32) + m.last AND NOT kind & 2),
    s.version, m.last, coalesce(json_extract(s.facts, '$.options'), '')
FROM sessions s JOIN mailboxes m ON m.box = s.key
"""


def summaries(db: sqlite3.Connection, session: str | None = None) -> list[SessionSummary]:
    """Every session in one line, or this one."""
    rows: Iterable[Any] = (
        db.execute(f"{_SUMMARY} WHERE s.agent != '' ORDER BY s.key")
        if session is None
        else db.execute(f"{_SUMMARY} WHERE s.id = ?", (session,))
    )
    return [SessionSummary(id, agent, parent, owner, Status(status), *rest) for id, agent, parent, owner, status, *rest in rows]


_UNFINISHED = """
WITH busy AS (
    SELECT key FROM sessions WHERE status IN ('running', 'waiting')
    UNION SELECT session FROM calls WHERE outcome IS NULL AND status != 'deferred'
    UNION SELECT session FROM timers WHERE due <= ?
)
SELECT id, agent, CASE WHEN key NOT IN busy THEN (SELECT wakes FROM mailboxes WHERE box = key) END, holder, held_until
FROM sessions WHERE status != 'stopped' AND key IN (SELECT key FROM busy UNION SELECT box FROM mailboxes WHERE wakes > mail_cursor)
ORDER BY key
"""


def unfinished(db: sqlite3.Connection, agents: Collection[str], lease: Lease, seen: Mapping[str, int]) -> list[str]:
    """The sessions of these agents that may have something to do and that nobody else holds. `seen`: as of `SQLiteStore.release`."""
    found = db.execute(_UNFINISHED, (lease.now,))
    return [
        id
        for id, agent, wakes, *held in found
        if agent in agents and (wakes is None or wakes > seen.get(id, 0)) and lease.free(*held)
    ]


@frozen
class Foreign:
    """What other processes did: new mail of sessions here, which are still held here, and which nobody holds and mail may wake."""

    mail: Sequence[tuple[str, Sequence[Envelope]]]
    held: Collection[str]
    woken: Sequence[str]


def foreign(db: sqlite3.Connection, here: Mapping[str, int], lease: Lease, seen: Mapping[str, int]) -> Foreign:
    """Look at what others did. `here`: up to which seq each session's mail is in memory; `seen`: as of `unfinished`."""
    rows = db.execute(
        "SELECT s.id, s.key, m.last FROM sessions s JOIN mailboxes m ON m.box = s.key WHERE s.holder = ?", (lease.holder,)
    ).fetchall()
    behind = [(id, key, last) for id, key, last in rows if id in here and last > here[id]]
    found = [(id, mail(db, key, here[id], last, outcomes(db, key))) for id, key, last in behind]
    waiting = db.execute(
        "SELECT s.id, m.wakes, s.holder, s.held_until FROM mailboxes m JOIN sessions s ON s.key = m.box"
        " WHERE m.wakes > m.mail_cursor AND s.status != 'stopped' AND s.holder IS NULL"
    )
    woken = [id for id, wakes, *held in waiting if wakes > seen.get(id, 0) and lease.free(*held)]
    return Foreign(found, {id for id, _, _ in rows}, woken)
