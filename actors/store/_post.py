"""Accepting mail into rows: the checks of `_mailbox.py`, in their order, made inside the transaction that inserts it.

    no such session, or stopped for good      UnknownRecipient, RecipientStopped
    the same (mailbox, sender, id) again      its first receipt, marked; another body under it: IdConflict
    more hops than the recipient takes        TooManyHops
    more unread than it may have              MailboxFull; an equal unread order serves for this one

The table is the memory of ids: there is no window. Whether mail may wake its recipient is told by lineage and limits in the
rows, so a process that does not run the session knows it too; the turn of the session has the last word.
"""

import sqlite3
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from attrs import frozen

from actors._codec import digest
from actors._envelope import (
    ID_FORM,
    INTERRUPT,
    MINTED_FORM,
    NORMAL,
    Control,
    Envelope,
    FromSession,
    FromToolCall,
    FromUser,
    Receipt,
    Sender,
    ToolCallFinished,
    clock,
)
from actors._errors import IdConflict, MailboxFull, RecipientStopped, TooManyHops, UnknownRecipient
from actors._exit import Stopped
from actors._limits import Limits
from actors._mailbox import ALWAYS_ACCEPTED, PERSONS_INTERRUPTS
from actors.agent._record import Draft

from ._rows import CODEC, dump_sender, read_limits, write_body

URGENT, ORDER, OWN_PLACE = 1, 2, 4  # bits of `mail.kind`
HALF = 32


@frozen
class Letter:
    """A draft as it goes into rows."""

    draft: Draft
    sender: str
    body: str
    digest: bytes | None
    sent: float

    @classmethod
    def of(cls, draft: Draft, outcomes: Any = ()) -> "Letter":
        """Raises `CodecError` for a body without JSON, `ValueError` for what can be no id."""
        mark = None
        if draft.id is not None:
            if not ID_FORM.match(draft.id) or MINTED_FORM.match(draft.id):
                raise ValueError(
                    f"{draft.id!r} cannot be a message's id: give 1 to 64 of A-Z a-z 0-9 . _ : -, not of the form m-7, which is the runtime's"
                )
            mark = digest(draft.body)
        return cls(draft, dump_sender(draft.sender), write_body(draft.body, dict(outcomes)), mark, clock())


@frozen
class Accepted:
    """What became of a letter: its receipt, its envelope unless it was there before, and whether it may wake its recipient."""

    to: str
    receipt: Receipt
    envelope: Envelope | None = None
    wakes: bool = False


@lru_cache(maxsize=256)
def limits_of(text: str) -> Limits:
    """The limits in a row; most sessions share a few."""
    return read_limits(text)


@frozen
class _Recipient:
    box: int
    id: str
    parent: str | None
    limits: Limits
    last: int
    mail_cursor: int
    control_cursor: int
    control: int


def minted(box: int, seq: int) -> str:
    """The id of mail whose sender gave none: unique in the store, and short."""
    return f"m-{box}-{seq}"


def _recipient(db: sqlite3.Connection, to: str) -> _Recipient:
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
    return _Recipient(key, to, parent, limits_of(limits), *rest)


def accept(db: sqlite3.Connection, letter: Letter) -> Accepted:
    """Accept or refuse, all checks in order."""
    draft = letter.draft
    to = _recipient(db, draft.to)
    if draft.id is not None and (known := _known(db, to, letter)) is not None:
        return Accepted(draft.to, known)
    always = isinstance(draft.body, ALWAYS_ACCEPTED)
    most: Any = to.limits.max_hops
    if draft.hops > most and not always:
        raise TooManyHops(address=draft.to, hops=draft.hops, max_hops=most)
    kind = (URGENT if draft.priority is INTERRUPT else 0) | (ORDER if isinstance(draft.body, Control) else 0)
    if not always and (to.last - to.mail_cursor >= to.limits.max_unread or to.control > to.control_cursor):  # type: ignore[operator]
        merged = _without_room(db, to, letter)
        if isinstance(merged, Receipt):
            return Accepted(draft.to, merged)
        kind |= merged
    return _keep(db, to, letter, kind)


def _known(db: sqlite3.Connection, to: _Recipient, letter: Letter) -> Receipt | None:
    row = db.execute(
        "SELECT at, kind, digest FROM mail WHERE at >> 32 = ? AND sender = ? AND id = ? AND id IS NOT NULL",
        (to.box, letter.sender, letter.draft.id),
    ).fetchone()
    if row is None:
        return None
    at, kind, mark = row
    if mark != letter.digest:
        raise IdConflict(address=to.id, id=letter.draft.id)
    return Receipt(letter.draft.id, at - (to.box << HALF), True, INTERRUPT if kind & URGENT else NORMAL)  # type: ignore[arg-type]


def _without_room(db: sqlite3.Connection, to: _Recipient, letter: Letter) -> Receipt | int:
    """Room after all: 0, or the bit of a place of its own; or the receipt of an equal order; or `MailboxFull`."""
    low, base = min(to.mail_cursor, to.control_cursor), to.box << HALF
    unread = db.execute(
        "SELECT at, kind, sender, body FROM mail WHERE at > ? AND at <= ?", (base + low, base + to.last)
    ).fetchall()
    count = sum(at - base > (to.control_cursor if kind & ORDER else to.mail_cursor) for at, kind, _, _ in unread)
    most: int = to.limits.max_unread  # type: ignore[assignment]
    if count < most:
        return 0
    body = letter.draft.body
    if isinstance(body, Control):
        for at, kind, sender, text in unread:
            if kind & ORDER and at - base > to.control_cursor and (sender, text) == (letter.sender, letter.body):
                return Receipt(minted(to.box, at - base), at - base, True, NORMAL)
        return 0
    if letter.draft.priority is INTERRUPT and isinstance(letter.draft.sender, FromUser):
        own = sum(bool(kind & OWN_PLACE) and at - base > to.mail_cursor for at, kind, _, _ in unread)
        if own < PERSONS_INTERRUPTS:
            return OWN_PLACE
    raise MailboxFull(address=to.id, unread=count, capacity=most)


def _keep(db: sqlite3.Connection, to: _Recipient, letter: Letter, kind: int) -> Accepted:
    draft = letter.draft
    seq = to.last + 1
    wakes = _wakes(db, to, draft)
    db.execute(
        "INSERT INTO mail VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        ((to.box << HALF) + seq, kind, draft.id, letter.sender, draft.hops, letter.sent, draft.trace, letter.digest, letter.body, CODEC),
    )  # fmt: skip
    db.execute(
        "UPDATE mailboxes SET last = ?1, control = CASE ?2 WHEN 0 THEN control ELSE ?1 END, wakes = CASE ?3 WHEN 0 THEN wakes ELSE ?1 END"
        " WHERE box = ?4",
        (seq, kind & ORDER, int(wakes), to.box),
    )
    key = minted(to.box, seq) if draft.id is None else draft.id
    envelope = Envelope(key, seq, draft.sender, draft.priority, draft.hops, letter.sent, draft.trace, draft.body)
    return Accepted(draft.to, Receipt(key, seq, False, draft.priority), envelope, wakes)


def _wakes(db: sqlite3.Connection, to: _Recipient, draft: Draft) -> bool:
    """Whether this mail may wake its recipient; rather too often than not at all."""
    if isinstance(draft.body, Control):
        return True
    if draft.hops > to.limits.max_hops:  # type: ignore[operator]
        return False
    return isinstance(draft.body, ToolCallFinished) or _relation(db, to, draft.sender) in to.limits.wake_on  # type: ignore[operator]


def _relation(db: sqlite3.Connection, to: _Recipient, sender: Sender) -> str:
    match sender:
        case FromUser():
            return "user"
        case FromSession(session=session) | FromToolCall(session=session) if session != to.id:
            if session == to.parent:
                return "parent"
            row = db.execute("SELECT parent FROM sessions WHERE id = ?", (session,)).fetchone()
            return "child" if row is not None and row[0] == to.id else "peer"
        case _:
            return "tool"
