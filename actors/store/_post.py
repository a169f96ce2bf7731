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


class Intake:
    """The letters of one transaction: accepted one by one, written all at once.

    What they need to know of their recipients is read once. Whatever else the transaction does has to `flush` first.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._to: dict[str, Recipient] = {}
        self._rows: list[tuple[object, ...]] = []
        self._ids: dict[tuple[int, str, str], tuple[int, int, bytes | None]] = {}
        self._woken: dict[str, int] = {}  # up to which seq each recipient has mail that may wake it

    def accept(self, letter: Letter) -> Accepted:
        """Accept or refuse, all checks in order."""
        draft = letter.draft
        to = self._to.get(draft.to) or _recipient(self._db, draft.to)
        if draft.id is not None and (known := self._known(to, letter)) is not None:
            return Accepted(draft.to, known)
        check_hops(to, letter)
        kind = letter.kind
        if to.full_perhaps() and not letter.always:
            self.flush()
            merged = without_room(to, letter, _unread(self._db, to))
            if isinstance(merged, Receipt):
                return Accepted(draft.to, merged)
            kind |= merged
        return self._keep(to, letter, kind)

    def _known(self, to: Recipient, letter: Letter) -> Receipt | None:
        id = letter.draft.id
        found = self._ids.get((to.box, letter.sender, id or ""))
        if found is None:
            row = self._db.execute(
                "SELECT at, kind, digest FROM mail WHERE at >> 32 = ? AND sender = ? AND id = ? AND id IS NOT NULL",
                (to.box, letter.sender, id),
            ).fetchone()
            if row is None:
                return None
            found = (row[0] - (to.box << HALF), row[1], row[2])
        return again(to, letter, *found)

    def _keep(self, to: Recipient, letter: Letter, kind: int) -> Accepted:
        draft = letter.draft
        accepted = kept(to, letter, wakes=_wakes(self._db, to, draft))
        seq = accepted.receipt.seq
        self._rows.append(
            ((to.box << HALF) + seq, kind, draft.id, letter.sender, draft.hops, letter.sent, draft.trace, letter.digest, letter.body, CODEC)
        )  # fmt: skip
        if draft.id is not None:
            self._ids[to.box, letter.sender, draft.id] = (seq, kind, letter.digest)
        self._to[to.id] = to
        to.last = seq
        to.control = seq if kind & ORDER else to.control
        if accepted.wakes:
            self._woken[to.id] = seq
        return accepted

    def flush(self) -> None:
        """Write what was accepted. What fails now is lost with the whole transaction."""
        if not self._rows:
            return
        self._db.executemany("INSERT INTO mail VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._rows)
        self._db.executemany(
            "UPDATE mailboxes SET last = ?, control = ?, wakes = max(wakes, ?) WHERE box = ?",
            [(to.last, to.control, self._woken.get(id, 0), to.box) for id, to in self._to.items()],
        )
        for kept_aside in (self._rows, self._ids, self._to, self._woken):
            kept_aside.clear()


def accept(db: sqlite3.Connection, letter: Letter) -> Accepted:
    """One letter, written at once."""
    intake = Intake(db)
    accepted = intake.accept(letter)
    intake.flush()
    return accepted


def _unread(db: sqlite3.Connection, to: Recipient) -> list[tuple[int, int, str, str]]:
    low, base = min(to.mail_cursor, to.control_cursor), to.box << HALF
    rows = db.execute("SELECT at - ?1, kind, sender, body FROM mail WHERE at > ?1 + ?2 AND at <= ?1 + ?3", (base, low, to.last))
    return rows.fetchall()


def _wakes(db: sqlite3.Connection, to: Recipient, draft: Draft) -> bool:
    relation = relation_of(draft.sender, to)
    if relation is None:
        row = db.execute("SELECT parent FROM sessions WHERE id = ?", (draft.sender.session,)).fetchone()  # type: ignore[union-attr]
        relation = "child" if row is not None and row[0] == to.id else "peer"
    return may_wake(to, draft, relation)
