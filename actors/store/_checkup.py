"""How a SQLite store stands, for a person who asks: one look at its tables."""

import sqlite3

from ._api import Checkup
from ._holder import is_gone
from ._tables import Lease


def checkup(db: sqlite3.Connection, path: str, lease: Lease) -> Checkup:
    """Count, and have SQLite look for damage."""

    def number(sql: str, *args: object) -> int:
        return int(db.execute(sql, args).fetchone()[0] or 0)

    [pages], [page_size] = db.execute("PRAGMA page_count").fetchone(), db.execute("PRAGMA page_size").fetchone()
    behind = "mail JOIN mailboxes m ON m.box = at >> 32 WHERE at > (m.box << 32) + m.mail_cursor AND NOT kind & 2"
    behind += " AND m.last > m.mail_cursor AND m.box NOT IN (SELECT key FROM sessions WHERE status = 'stopped')"
    [oldest] = db.execute(f"SELECT min(sent) FROM {behind}").fetchone()  # noqa: S608  # ours, as above
    holders = db.execute("SELECT holder, held_until FROM sessions WHERE holder IS NOT NULL").fetchall()
    expired = sum(until <= lease.now or is_gone(holder) for holder, until in holders)
    found = [text for (text,) in db.execute("PRAGMA quick_check(10)") if text != "ok"]
    return Checkup(
        where=path,
        schema=number("PRAGMA user_version"),
        bytes=pages * page_size,
        sessions=dict(db.execute("SELECT status, count(*) FROM sessions WHERE agent != '' GROUP BY status ORDER BY status")),
        mail=number("SELECT count(*) FROM mail"),
        unread=number(f"SELECT count(*) FROM {behind}"),  # noqa: S608
        oldest_unread=oldest,
        open_calls=number("SELECT count(*) FROM calls WHERE outcome IS NULL"),
        timers=number("SELECT count(*) FROM timers"),
        held=len(holders) - expired,
        expired=expired,
        damage=found,
    )
