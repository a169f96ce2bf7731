"""Accepting mail into rows of SQLite: what `_admit.py` decides, made inside the transaction that inserts it."""

import sqlite3
from difflib import get_close_matches

from actors._envelope import Receipt
from actors._errors import RecipientStopped, UnknownRecipient
from actors._exit import Stopped
from actors.agent._record import Draft

from ._admit import ORDER, Accepted, Letter, Recipient, again, check_hops, kept, limits_of, may_wake, relation_of, without_room
from ._rows import CODEC

HALF = 32


def _recipient(db: sqlite3.Connection, to: str) -> Recipient:
    row = db.execute(
        "SELECT s.key, s.status, s.parent, s.limits, m.last, m.mail_cursor, m.control_cursor, m.control"
        " FROM sessions s JOIN mailboxes m ON m.box = s.key WHERE s.id = ?",
        (to,),
    ).fetchone()
    if row is None:
        known = [id for (id,) in db.execute("SELECT id FROM sessions LIMIT 200")]
        raise UnknownRecipient(address=to, near=tuple(get_close_matches(to, known, n=3, cutoff=0.6)))
    key, status, parent, limits, *rest = row
    if status == "stopped":
        raise RecipientStopped(address=to, exit=Stopped())
    return Recipient(key, to, parent, limits_of(limits), *rest)


def accept(db: sqlite3.Connection, letter: Letter) -> Accepted:
    """Accept or refuse, all checks in order."""
    draft = letter.draft
    to = _recipient(db, draft.to)
    if draft.id is not None and (known := _known(db, to, letter)) is not None:
        return Accepted(draft.to, known)
    check_hops(to, letter)
    kind = letter.kind
    if not letter.always and to.full_perhaps():
        merged = without_room(to, letter, _unread(db, to))
        if isinstance(merged, Receipt):
            return Accepted(draft.to, merged)
        kind |= merged
    return _keep(db, to, letter, kind)


def _known(db: sqlite3.Connection, to: Recipient, letter: Letter) -> Receipt | None:
    row = db.execute(
        "SELECT at, kind, digest FROM mail WHERE at >> 32 = ? AND sender = ? AND id = ? AND id IS NOT NULL",
        (to.box, letter.sender, letter.draft.id),
    ).fetchone()
    return None if row is None else again(to, letter, row[0] - (to.box << HALF), row[1], row[2])


def _unread(db: sqlite3.Connection, to: Recipient) -> list[tuple[int, int, str, str]]:
    low, base = min(to.mail_cursor, to.control_cursor), to.box << HALF
    rows = db.execute("SELECT at - ?1, kind, sender, body FROM mail WHERE at > ?1 + ?2 AND at <= ?1 + ?3", (base, low, to.last))
    return rows.fetchall()


def _keep(db: sqlite3.Connection, to: Recipient, letter: Letter, kind: int) -> Accepted:
    draft = letter.draft
    accepted = kept(to, letter, wakes=_wakes(db, to, draft))
    seq = accepted.receipt.seq
    db.execute(
        "INSERT INTO mail VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        ((to.box << HALF) + seq, kind, draft.id, letter.sender, draft.hops, letter.sent, draft.trace, letter.digest, letter.body, CODEC),
    )  # fmt: skip
    db.execute(
        "UPDATE mailboxes SET last = ?1, control = CASE ?2 WHEN 0 THEN control ELSE ?1 END, wakes = CASE ?3 WHEN 0 THEN wakes ELSE ?1 END"
        " WHERE box = ?4",
        (seq, kind & ORDER, int(accepted.wakes), to.box),
    )
    return accepted


def _wakes(db: sqlite3.Connection, to: Recipient, draft: Draft) -> bool:
    relation = relation_of(draft.sender, to)
    if relation is None:
        row = db.execute("SELECT parent FROM sessions WHERE id = ?", (draft.sender.session,)).fetchone()  # type: ignore[union-attr]
        relation = "child" if row is not None and row[0] == to.id else "peer"
    return may_wake(to, draft, relation)
