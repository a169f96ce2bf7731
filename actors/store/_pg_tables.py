"""What a PostgreSQL store does to its tables: each function is part of one transaction."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from actors._envelope import INTERRUPT, NORMAL, Envelope
from actors._errors import LeaseLost, StoreError, VersionConflict
from actors._exit import Status
from actors._outcome import Outcome
from actors.agent._record import State, TimerRow

from ._admit import URGENT, Accepted, minted
from ._api import DELETED, SessionSummary
from ._holder import is_gone
from ._pg_connection import TrioConnection
from ._pg_continuations import keep_tokens
from ._pg_post import accept_all, lock
from ._pg_watches import WATCHED, drafts_of, drop, drop_all, keep, tell, watches_of
from ._rows import (
    CODEC,
    TOLD_BY_THE_LEDGER,
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
from ._tables import Change, Claim, History

FREE = """(s.holder IS NULL OR s.holder = %(me)s
    OR NOT EXISTS (SELECT FROM leases l WHERE l.holder = s.holder AND l.until > clock_timestamp()))"""  # may be taken by `me`


async def rows(db: TrioConnection, query: str, values: Any = ()) -> list[tuple[Any, ...]]:
    """What a query of ours finds."""
    return await (await db.execute(query.encode(), values)).fetchall()


async def row(db: TrioConnection, query: str, values: Any = ()) -> tuple[Any, ...] | None:
    """The first that it finds."""
    return await (await db.execute(query.encode(), values)).fetchone()


# ------------------------------------------------------------------ sessions
async def create(db: TrioConnection, state: State, me: str) -> int:
    """Insert a session that nobody has, and hold it; its key."""
    found = await row(
        db,
        "INSERT INTO sessions (id, agent, owner, status, version, epoch, holder, facts, codec)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING RETURNING key",
        (state.id, state.agent, state.owner, state.status.value, state.version, state.epoch, me, write_facts(state), CODEC),
    )
    if found is None:
        raise StoreError(f"session {state.id} is there already; open it instead of creating it")
    key = int(found[0])
    await db.execute(
        "INSERT INTO mailboxes (box, address, parent, limits) VALUES (%s, %s, %s, %s)",
        (key, state.id, state.parent, write_limits(state.limits)),
    )
    return key


_TAKE = f"""
UPDATE sessions s SET epoch = epoch + 1, holder = %(me)s WHERE id = %(id)s AND {FREE}
RETURNING key, agent, owner, status, version, epoch, facts, codec
"""  # noqa: S608  # ours, both


async def claim(db: TrioConnection, session: str, me: str) -> Claim | None:
    """Take a session over: whoever had it before is fenced by the new epoch. `LeaseLost` if another process holds it."""
    values = {"me": me, "id": session}
    taken = await row(db, _TAKE, values)
    if taken is None:
        found = await row(db, "SELECT coalesce(holder, '') FROM sessions WHERE id = %s", (session,))
        if found is None:
            return None
        [holder] = found
        if not holder or is_gone(holder):
            await db.execute("DELETE FROM leases WHERE holder = %s", (holder,))
            taken = await row(db, _TAKE, values)
        if taken is None:
            raise LeaseLost(f"session {session} is run by another process ({holder}); what is sent to it reaches it there")
    return None if taken[1] == DELETED else await read_session(db, session, taken)


async def is_created(db: TrioConnection, state: State, me: str, key: int) -> bool:
    """Whether the row that `create` gave this key was kept."""
    return await row(db, "SELECT 1 FROM sessions WHERE key = %s AND id = %s AND holder = %s", (key, state.id, me)) is not None


async def read_session(db: TrioConnection, session: str, columns: Sequence[Any]) -> Claim:
    """A session from its columns, without its history, and its unread mail."""
    key, agent, owner, status, version, epoch, facts, codec = columns
    what = f"session {session}"
    check_codec(codec, what)
    box = await row(db, "SELECT parent, limits, last, mail_cursor, control_cursor, floor FROM mailboxes WHERE box = %s", (key,))
    assert box is not None
    parent, limits, last, mail_cursor, control_cursor, floor = box
    timers = await rows(db, "SELECT id, timer FROM timers WHERE session = %s ORDER BY due", (key,))
    state = State(
        session, agent, parent, owner, Status(status), version, epoch, read_limits(limits), mail_cursor, control_cursor,
        floor=floor, timers={id: parse(text, TimerRow, f"timer {id}") for id, text in timers}, watches=await watches_of(db, key),
        **read_facts(facts, what),
    )  # fmt: skip
    unread = await mail(db, key, min(mail_cursor, control_cursor), last)
    return Claim(key, state, last, unread)


async def history(db: TrioConnection, taken: Claim) -> History:
    """The transcript and the ledger of a session that was just taken over."""
    key, session = taken.key, taken.state.id
    calls = await rows(
        db, "SELECT id, tool, status, arguments, facts, outcome, codec FROM calls WHERE session = %s ORDER BY place", (key,)
    )
    ends = _ends((id, outcome) for id, *_, outcome, _codec in calls)
    shelf = Shelf({envelope.seq: envelope for envelope in await mail(db, key, 0, taken.last, ends)}, ends)
    found = await rows(db, "SELECT item, codec FROM items WHERE session = %s ORDER BY place", (key,))
    for codec in {codec for _, codec in found} | {codec for *_, codec in calls}:
        check_codec(codec, f"session {session}")
    items = shelf.read([item for item, _ in found], f"an item of {session}")
    asked = asked_in(items)
    ledger = [read_call(tuple(columns), f"{session}/{columns[0]}", asked, ends.get(columns[0])) for *columns, _, _ in calls]
    return History(items, {call.id: call for call in ledger})


def _ends(calls: Iterable[tuple[str, str | None]]) -> dict[str, Outcome | None]:
    return {id: parse(text, Outcome, f"the outcome of {id}") for id, text in calls if text is not None}


async def mail(
    db: TrioConnection, box: int, after: int, last: int | None = None, ends: Mapping[str, Outcome | None] | None = None
) -> list[Envelope]:
    """The mail of a box behind `after`, up to `last`. `ends`: how its session's calls ended, if that is known."""
    found = await rows(
        db,
        "SELECT seq, kind, id, sender, hops, sent, trace, body, codec FROM mail WHERE box = %s AND seq > %s AND seq <= %s ORDER BY seq",
        (box, after, 2**31 - 1 if last is None else last),
    )
    if ends is None:
        bodies = [msgspec.json.decode(each[7]) for each in found if any(tag in each[7] for tag in TOLD_BY_THE_LEDGER)]
        calls = [doc["call"] for doc in bodies if doc.get("type") in TOLD_BY_THE_LEDGER and "outcome" not in doc]
        asked = "SELECT id, outcome FROM calls WHERE session = %s AND id = ANY(%s)"
        ends = _ends((id, text) for id, text in await rows(db, asked, (box, calls))) if calls else {}
    return [_envelope(each, box, ends) for each in found]


def _envelope(columns: Sequence[Any], box: int, ends: Mapping[str, Outcome | None]) -> Envelope:
    seq, kind, id, sender, hops, sent, trace, body, codec = columns
    check_codec(codec, f"mail {seq}")
    priority = INTERRUPT if kind & URGENT else NORMAL
    key = minted(box, seq) if id is None else id
    return Envelope(key, seq, read_sender(sender), priority, hops, sent, trace, body_from(body, ends, f"mail {seq}"))


# ------------------------------------------------------------------ commits
_OWN = f"""
UPDATE sessions SET commit_id = %(commit_id)s, version = version + %(raised)s, items = items + %(items)s,
    status = CASE WHEN %(facts)s::text IS NULL THEN status ELSE %(status)s END, facts = coalesce(%(facts)s, facts)
WHERE key = %(key)s AND id = %(id)s AND epoch = %(epoch)s AND version = coalesce(%(version)s, version)
RETURNING items - %(items)s, {WATCHED}
"""  # noqa: S608  # ours, both
_CALLS = """
INSERT INTO calls (session, id, tool, status, arguments, outcome, facts, codec)
SELECT %s, c.id, c.tool, c.status, c.arguments, c.outcome, c.facts, %s
FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[])
    WITH ORDINALITY AS c (id, tool, status, arguments, outcome, facts, place) ORDER BY c.place
ON CONFLICT (session, id) DO UPDATE SET status = excluded.status, outcome = excluded.outcome, facts = excluded.facts
"""
_TIMER = """
INSERT INTO timers VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (session, id) DO UPDATE SET due = excluded.due, timer = excluded.timer, codec = excluded.codec
"""
_BOX = """
UPDATE mailboxes SET mail_cursor = greatest(mail_cursor, %s), control_cursor = greatest(control_cursor, %s), floor = greatest(floor, %s),
    limits = coalesce(%s, limits), stopped = stopped OR %s WHERE box = %s
"""


async def commit(db: TrioConnection, change: Change) -> list[Accepted]:
    """Carry a change out; what became of its mail. First the session's row is locked, then mailboxes by address."""
    first, watched = await _own(db, change)
    news = change.news
    told = [] if news is None else await drafts_of(db, change.key, news, watched=watched)
    stopped = change.facts is not None and change.status == "stopped"
    own_box = change.cursors is not None or change.limits is not None or stopped
    addresses = {letter.draft.to for letter in change.letters} | ({change.session} if own_box or change.voided else set())
    addresses |= {draft.to for draft in told} | {session for _, session, *_ in change.watches}
    places = await lock(db, addresses) if addresses else {}
    if change.voided or change.tokens:
        await keep_tokens(db, change.key, change.tokens, change.voided)
    if change.items:
        await db.execute(
            "INSERT INTO items SELECT %s, %s + place, item, %s FROM unnest(%s::text[]) WITH ORDINALITY AS i (item, place)",
            (change.key, first, CODEC, list(change.items)),
        )
    if change.calls:
        columns = [list(column) for column in zip(*{each[0]: each for each in change.calls}.values(), strict=True)]
        await db.execute(_CALLS, (change.key, CODEC, *columns))
    for timer in change.timers:
        await db.execute(_TIMER, (change.key, *timer, CODEC))
    if change.timers_gone:
        await db.execute("DELETE FROM timers WHERE session = %s AND id = ANY(%s)", (change.key, list(change.timers_gone)))
    accepted = await accept_all(db, change.letters, places)
    if own_box:
        await db.execute(_BOX, (*(change.cursors or (0, 0, 0)), change.limits, stopped, change.key))
    if change.watches or change.watches_gone:
        await keep(db, change.key, change.watches, places)
        await drop(db, change.key, change.watches_gone)
    if news is not None:
        accepted += await tell(db, news, told, places)
        if news.over:
            await drop_all(db, change.key)
    return accepted


async def _own(db: TrioConnection, change: Change) -> tuple[int, bool]:
    """Lock and change the session's own row; the number of items before, and whether anybody watches. Or say why this is not the owner's next commit."""
    values = {
        "commit_id": change.commit_id, "raised": int(change.version is not None), "items": len(change.items), "facts": change.facts,
        "status": change.status, "key": change.key, "id": change.session, "epoch": change.epoch, "version": change.version,
    }  # fmt: skip
    done = await row(db, _OWN, values)
    if done is not None:
        return int(done[0]), bool(done[1])
    found = await row(db, "SELECT epoch, version FROM sessions WHERE key = %s AND id = %s", (change.key, change.session))
    if found is None:
        raise StoreError(f"session {change.session} is not in the store any more; it was deleted")
    epoch, version = found
    if epoch != change.epoch:
        raise LeaseLost(f"session {change.session} was taken over (epoch {epoch}, this is {change.epoch}); nothing was kept")
    raise VersionConflict(
        f"session {change.session} is at version {version}, this commit expected {change.version}; nothing was kept"
    )


async def is_last(db: TrioConnection, change: Change) -> bool:
    """Whether this change is the last that its session's row has seen."""
    found = await row(db, "SELECT commit_id FROM sessions WHERE key = %s", (change.key,))
    return found is not None and found[0] == change.commit_id


# ------------------------------------------------------------------ looking
_SUMMARY = """
SELECT s.id, s.agent, m.parent, s.owner, s.status,
    (SELECT count(*) FROM mail WHERE box = s.key AND seq > m.mail_cursor AND kind & 2 = 0),
    s.version, m.last, coalesce(s.facts::json ->> 'options', '')
FROM sessions s JOIN mailboxes m ON m.box = s.key
"""


async def summaries(db: TrioConnection, session: str | None = None) -> list[SessionSummary]:
    """Every session in one line, or this one."""
    one, values = (" WHERE s.agent != '' ORDER BY s.key", ()) if session is None else (" WHERE s.id = %s", (session,))
    found = await rows(db, _SUMMARY + one, values)
    return [
        SessionSummary(id, agent, parent, owner, Status(status), *rest) for id, agent, parent, owner, status, *rest in found
    ]


# ------------------------------------------------------------------ leases
async def renew(db: TrioConnection, me: str, seconds: float) -> None:
    """Hold what this process holds for so long from now, by the database's clock."""
    await db.execute(
        "INSERT INTO leases VALUES (%s, clock_timestamp() + make_interval(secs => %s))"
        " ON CONFLICT (holder) DO UPDATE SET until = excluded.until",
        (me, seconds),
    )


_BURY = """
DELETE FROM leases WHERE holder IN (
    SELECT holder FROM leases WHERE holder = ANY(%s) OR until < clock_timestamp() - interval '1 day' FOR UPDATE SKIP LOCKED
)
"""


async def bury(db: TrioConnection) -> None:
    """Forget the leases of processes of this machine that live no more, and those that ran out long ago."""
    gone = [holder for (holder,) in await rows(db, "SELECT holder FROM leases") if is_gone(holder)]
    await db.execute(_BURY, (gone,))


async def held(db: TrioConnection, me: str) -> dict[int, int]:
    """The keys and epochs of all sessions that this process holds."""
    return {key: epoch for key, epoch in await rows(db, "SELECT key, epoch FROM sessions WHERE holder = %s", (me,))}  # noqa: C416  # typed


_UNFINISHED = """
SELECT s.key FROM sessions s JOIN mailboxes m ON m.box = s.key
WHERE s.agent = ANY(%(agents)s) AND NOT m.stopped AND s.holder IS DISTINCT FROM %(me)s AND {free} AND {which}
ORDER BY s.key LIMIT %(most)s FOR UPDATE OF s SKIP LOCKED
"""
_TO_DO = """s.key IN (
    SELECT key FROM sessions WHERE status IN ('running', 'waiting')
    UNION ALL SELECT box FROM mailboxes WHERE wakes > mail_cursor AND wakes > seen AND NOT stopped
    UNION ALL SELECT session FROM calls WHERE outcome IS NULL AND status != 'deferred'
    UNION ALL SELECT session FROM timers WHERE due <= extract(epoch FROM clock_timestamp()))"""
_WAITING = "s.key = ANY(%(keys)s) AND m.wakes > m.mail_cursor AND m.wakes > m.seen"
_CLAIM = f"UPDATE sessions SET epoch = epoch + 1, holder = %(me)s WHERE key IN ({_UNFINISHED}) RETURNING key, id, epoch"  # noqa: S608


async def claim_some(
    db: TrioConnection, me: str, agents: Collection[str], most: int, keys: Collection[int] | None = None
) -> list[tuple[int, str, int]]:
    """Take the leases of sessions that may have something to do and that nobody holds: key, id and epoch of each.

    What others are just taking is skipped. `keys`: only these, which were sent mail.
    """
    query = _CLAIM.format(free=FREE, which=_TO_DO if keys is None else _WAITING)
    values = {"me": me, "agents": list(agents), "most": most, "keys": list(keys or ())}
    return [(key, id, epoch) for key, id, epoch in await rows(db, query, values)]


async def let_go(db: TrioConnection, me: str, keys: Mapping[int, int] | None = None) -> list[int]:
    """Hand over at once: these sessions, each with the seq up to which it had nothing to do, or all.

    Returns those of them that mail may wake, for somebody to hear of it.

    The mailboxes are locked and looked at once more: mail that came while a session was let go of wakes it elsewhere.
    """
    which = "holder = %(me)s" if keys is None else "holder = %(me)s AND key = ANY(%(keys)s)"
    freed = await rows(
        db,
        f"UPDATE sessions SET holder = NULL WHERE key IN (SELECT key FROM sessions WHERE {which} ORDER BY key FOR UPDATE) RETURNING key, status",  # noqa: S608
        {"me": me, "keys": list(keys or ())},
    )
    gone = [key for key, _ in freed]
    await db.execute("SELECT 1 FROM mailboxes WHERE box = ANY(%s) ORDER BY address FOR UPDATE", (gone,))
    found = await rows(
        db,
        "UPDATE mailboxes m SET seen = greatest(m.seen, g.seen) FROM unnest(%s::bigint[], %s::integer[]) AS g (box, seen)"
        " WHERE m.box = g.box RETURNING m.box, m.wakes > m.mail_cursor AND m.wakes > m.seen AND NOT m.stopped",
        (gone, [(keys or {}).get(key, 0) for key in gone]),
    )
    at_work = {key for key, status in freed if status in {"running", "waiting"}}
    return [box for box, waiting in found if waiting or box in at_work]
