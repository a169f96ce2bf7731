"""Accepting mail into rows of PostgreSQL: what `_admit.py` decides, made inside the transaction that inserts it.

A mailbox's row is locked from the check to the commit, so its seqs have no gap. A transaction locks all mailboxes that it will
write to at once, by address, after the row of its session if it has one: two sessions that write to each other wait, in the
same order, and never for each other.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from actors._envelope import Receipt
from actors._errors import RecipientStopped, UnknownRecipient
from actors._exit import Stopped

from ._admit import ORDER, Accepted, Letter, Recipient, again, check_hops, kept, limits_of, may_wake, relation_of, without_room
from ._pg_connection import TrioConnection
from ._rows import CODEC

_LOCK = """
SELECT box, address, parent, limits, last, mail_cursor, control_cursor, control, stopped FROM mailboxes
WHERE address = ANY(%s) ORDER BY address FOR UPDATE
"""
_KEEP = """
WITH added AS (INSERT INTO mail VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s))
UPDATE mailboxes SET last = %s, control = greatest(control, %s), wakes = greatest(wakes, %s) WHERE box = %s
"""


async def lock(db: TrioConnection, addresses: Iterable[str]) -> dict[str, Recipient | None]:
    """Lock mailboxes until the end of the transaction. None stands for one that ended; who never was is left out."""
    rows = await (await db.execute(_LOCK, (sorted(set(addresses)),))).fetchall()
    return {
        address: None if stopped else Recipient(box, address, parent, limits_of(limits), *rest)
        for box, address, parent, limits, *rest, stopped in rows
    }


async def accept_all(db: TrioConnection, letters: Sequence[Letter], places: dict[str, Recipient | None]) -> list[Accepted]:
    """Accept each of them, or refuse all."""
    return [await accept(db, letter, places) for letter in letters]


async def accept(db: TrioConnection, letter: Letter, places: dict[str, Recipient | None]) -> Accepted:
    """Accept or refuse, all checks in order. `places`: the mailboxes that are locked."""
    draft = letter.draft
    if draft.to not in places:
        raise UnknownRecipient(address=draft.to, near=await _near(db, draft.to))
    to = places[draft.to]
    if to is None:
        raise RecipientStopped(address=draft.to, exit=Stopped())
    if draft.id is not None and (known := await _known(db, to, letter)) is not None:
        return Accepted(draft.to, known)
    check_hops(to, letter)
    kind = letter.kind
    if not letter.always and to.full_perhaps():
        merged = without_room(to, letter, await _unread(db, to))
        if isinstance(merged, Receipt):
            return Accepted(draft.to, merged)
        kind |= merged
    return await _keep(db, to, letter, kind)


async def _near(db: TrioConnection, address: str) -> tuple[str, ...]:
    known = await (await db.execute("SELECT address FROM mailboxes LIMIT 200")).fetchall()
    return tuple(get_close_matches(address, [id for (id,) in known], n=3, cutoff=0.6))


async def _known(db: TrioConnection, to: Recipient, letter: Letter) -> Receipt | None:
    found = await db.execute(
        "SELECT seq, kind, digest FROM mail WHERE box = %s AND id = %s AND md5(sender) = md5(%s) AND id IS NOT NULL",
        (to.box, letter.draft.id, letter.sender),
    )
    row = await found.fetchone()
    return None if row is None else again(to, letter, *row)


async def _unread(db: TrioConnection, to: Recipient) -> list[tuple[int, int, str, str]]:
    low = min(to.mail_cursor, to.control_cursor)
    found = await db.execute("SELECT seq, kind, sender, body FROM mail WHERE box = %s AND seq > %s", (to.box, low))
    return await found.fetchall()


async def _keep(db: TrioConnection, to: Recipient, letter: Letter, kind: int) -> Accepted:
    draft = letter.draft
    accepted = kept(to, letter, wakes=await _wakes(db, to, letter))
    seq = accepted.receipt.seq
    row = (to.box, seq, kind, draft.id, letter.sender, draft.hops, letter.sent, draft.trace, letter.digest, letter.body, CODEC)
    to.last = seq
    if kind & ORDER:
        to.control = seq
    await db.execute(_KEEP, (*row, seq, to.control, seq if accepted.wakes else 0, to.box))
    return accepted


async def _wakes(db: TrioConnection, to: Recipient, letter: Letter) -> bool:
    draft = letter.draft
    relation = relation_of(draft.sender, to)
    if relation is None:
        found = await db.execute("SELECT parent FROM mailboxes WHERE address = %s", (draft.sender.session,))  # type: ignore[union-attr]
        row = await found.fetchone()
        relation = "child" if row is not None and row[0] == to.id else "peer"
    return may_wake(to, draft, relation)


async def is_kept(db: TrioConnection, letter: Letter, accepted: Accepted) -> bool:
    """Whether a transaction that accepted this letter, and of whose end nothing was heard, was committed."""
    found = await db.execute(
        "SELECT 1 FROM mail JOIN mailboxes USING (box)"
        " WHERE address = %s AND seq = %s AND sent = %s AND sender = %s AND body = %s AND mail.id IS NOT DISTINCT FROM %s",
        (accepted.to, accepted.receipt.seq, letter.sent, letter.sender, letter.body, letter.draft.id),
    )
    return await found.fetchone() is not None
