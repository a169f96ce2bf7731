"""What is done to a PostgreSQL store from outside its sessions: looked at, checked, deleted."""

from collections.abc import Sequence

from actors._envelope import Envelope
from actors._errors import LeaseLost
from actors.agent._record import State

from ._api import DELETED, Checkup
from ._pg_connection import TrioConnection
from ._pg_tables import FREE, history, read_session, row, rows
from ._pg_watches import drop_all
from ._retention import told_in

_GONE = "(s.holder IS NOT NULL AND NOT EXISTS (SELECT FROM leases l WHERE l.holder = s.holder AND l.until > clock_timestamp()))"
_OLD = """
SELECT box, seq FROM mail JOIN mailboxes m USING (box) WHERE sent < %s AND id IS NULL AND seq <= least(m.mail_cursor, m.control_cursor)
    AND (kind & 2 != 0 OR starts_with(body, '{"type":"tool_call_finished"'))
"""
_BEHIND = "mail JOIN mailboxes m USING (box) WHERE seq > m.mail_cursor AND kind & 2 = 0 AND NOT m.stopped"


async def look_at_all(db: TrioConnection, session: str) -> tuple[State, Sequence[Envelope]] | None:
    """A session with its history, and its unread mail, all of one moment; nobody's hold of it changes."""
    await db.execute(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    found = await row(
        db, "SELECT key, agent, owner, status, version, epoch, facts, codec FROM sessions WHERE id = %s AND agent != %s", (session, DELETED)
    )  # fmt: skip
    if found is None:
        return None
    looked = await read_session(db, session, found)
    past = await history(db, looked)
    looked.state.take_up(past.items, past.calls)
    return looked.state, looked.unread


async def checkup(db: TrioConnection, place: str) -> Checkup:
    """Count."""

    async def number(sql: str) -> int:
        found = await row(db, sql)
        return int((found or (0,))[0] or 0)

    oldest = await row(db, f"SELECT min(sent) FROM {_BEHIND}")  # noqa: S608  # ours, as below
    statuses = await rows(
        db, "SELECT status, count(*) FROM sessions WHERE agent != %s GROUP BY status ORDER BY status", (DELETED,)
    )
    expired = await number(f"SELECT count(*) FROM sessions s WHERE {_GONE}")  # noqa: S608
    return Checkup(
        where=place,
        schema=await number("SELECT schema FROM postroom"),
        bytes=await number("SELECT pg_database_size(current_database())"),
        sessions=dict(statuses),
        mail=await number("SELECT count(*) FROM mail"),
        unread=await number(f"SELECT count(*) FROM {_BEHIND}"),  # noqa: S608
        oldest_unread=oldest[0] if oldest is not None else None,
        open_calls=await number("SELECT count(*) FROM calls WHERE outcome IS NULL"),
        timers=await number("SELECT count(*) FROM timers"),
        held=await number("SELECT count(*) FROM sessions WHERE holder IS NOT NULL") - expired,
        expired=expired,
        damage=(),
    )


async def retain(db: TrioConnection, before: float) -> int:
    """Forget mail that was read, that no transcript refers to and that was accepted before this time; how much that was."""
    old: dict[int, list[int]] = {}
    for box, seq in await rows(db, _OLD, (before,)):
        old.setdefault(box, []).append(seq)
    gone = 0
    for box, seqs in old.items():
        told = told_in(text for (text,) in await rows(db, "SELECT item FROM items WHERE session = %s", (box,)))
        free = [seq for seq in seqs if seq not in told]
        await db.execute(b"DELETE FROM mail WHERE box = %s AND seq = ANY(%s)", (box, free))
        gone += len(free)
    return gone


async def delete(db: TrioConnection, session: str, me: str) -> None:
    """Delete what a session has; its row stays as a tombstone. `LeaseLost` if another process holds it."""
    found = await row(
        db,
        "UPDATE sessions s SET status = 'stopped', agent = %(deleted)s, owner = NULL, facts = '{}', epoch = epoch + 1, holder = NULL"  # noqa: S608
        f" WHERE id = %(id)s AND {FREE} RETURNING key",
        {"deleted": DELETED, "id": session, "me": me},
    )
    if found is None:
        if await row(db, "SELECT 1 FROM sessions WHERE id = %s", (session,)) is not None:
            raise LeaseLost(f"session {session} is run by another process; delete it there, or once that has ended")
        return
    key = (found[0],)
    await db.execute(
        b"UPDATE mailboxes SET stopped = true, parent = NULL, mail_cursor = last, control_cursor = last, wakes = 0 WHERE box = %s",
        key,
    )
    for table, column in {"mail": "box", "items": "session", "calls": "session", "timers": "session"}.items():
        await db.execute(f"DELETE FROM {table} WHERE {column} = %s".encode(), key)  # noqa: S608  # ours
    await drop_all(db, found[0])
