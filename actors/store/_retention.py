"""What may be forgotten of a mailbox: mail that was read and that no transcript refers to, once it is old.

That is the mail of calls whose results told it, and orders that were applied. What a transcript tells is kept with it, and so are
the ids that senders chose: a resend is a duplicate however late it comes.
"""

import sqlite3
from collections.abc import Iterable
from typing import Any

import msgspec

HALF = 32
_OLD = """
SELECT at FROM mail JOIN mailboxes m ON m.box = at >> 32
WHERE sent < ? AND id IS NULL AND at <= (m.box << 32) + min(m.mail_cursor, m.control_cursor)
    AND (kind & 2 OR body LIKE '{"type":"tool_call_finished"%')
"""


def retain(db: sqlite3.Connection, before: float) -> int:
    """Forget what was accepted before this time and may be forgotten; how many."""
    old: dict[int, list[int]] = {}
    for (at,) in db.execute(_OLD, (before,)):
        old.setdefault(at >> HALF, []).append(at)
    gone = 0
    for box, places in old.items():
        items = db.execute("SELECT item FROM items WHERE at > ? AND at < ?", (box << HALF, (box + 1) << HALF))
        told = told_in(text for (text,) in items)
        free = [(at,) for at in places if at - (box << HALF) not in told]
        db.executemany("DELETE FROM mail WHERE at = ?", free)
        gone += len(free)
    return gone


def told_in(items: Iterable[str]) -> set[int]:
    """The seqs that these rows of a transcript refer to."""
    told: set[int] = set()
    for text in items:
        doc: dict[str, Any] = msgspec.json.decode(text)
        parts = [doc, *(each.get("mail") or {} for each in doc.get("results", ()))]
        told.update(seq for part in parts for seq in part.get("mail", ()))
    return told
