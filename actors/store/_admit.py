"""What becomes of mail for a stored session, decided from its rows. Pure: the stores look up, and write down what this says.

The checks are those of `_mailbox.py`, in their order:

    no such session, or stopped for good      UnknownRecipient, RecipientStopped
    the same (mailbox, sender, id) again      its first receipt, marked; another body under it: IdConflict
    more hops than the recipient takes        TooManyHops
    more unread than it may have              MailboxFull; an equal unread order serves for this one

The table is the memory of ids: there is no window. Whether mail may wake its recipient is told by lineage and limits in the
rows, so a process that does not run the session knows it too; the turn of the session has the last word.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import msgspec
from attrs import define

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
    tells_an_end,
)
from actors._errors import IdConflict, MailboxFull, TooManyHops
from actors._limits import Limits
from actors._mailbox import ALWAYS_ACCEPTED, FROM_AFAR, PERSONS_INTERRUPTS
from actors._outcome import Outcome
from actors.agent._record import Draft

from ._rows import dump_sender, read_limits, write_body

NO_OUTCOMES: Mapping[str, Outcome | None] = MappingProxyType({})
URGENT, ORDER, OWN_PLACE = 1, 2, 4  # bits of `mail.kind`


class Letter(msgspec.Struct, frozen=True):
    """A draft as it goes into rows."""

    draft: Draft
    sender: str
    body: str
    digest: bytes | None
    sent: float

    @classmethod
    def of(cls, draft: Draft, outcomes: Mapping[str, Outcome | None] = NO_OUTCOMES) -> "Letter":
        """Raises `CodecError` for a body without JSON, `ValueError` for what can be no id."""
        mark = None
        if draft.id is not None:
            if not ID_FORM.match(draft.id) or MINTED_FORM.match(draft.id):
                raise ValueError(
                    f"{draft.id!r} cannot be a message's id: give 1 to 64 of A-Z a-z 0-9 . _ : -, not of the form m-7, which is the runtime's"
                )
            mark = digest(draft.body)
        return cls(draft, dump_sender(draft.sender), write_body(draft.body, outcomes, draft.sender), mark, clock())

    @property
    def always(self) -> bool:
        """Whether it is accepted however full its mailbox is."""
        return isinstance(self.draft.body, ALWAYS_ACCEPTED) or tells_an_end(self.draft.body)

    @property
    def kind(self) -> int:
        """The bits of its row."""
        draft = self.draft
        return (URGENT if draft.priority is INTERRUPT else 0) | (ORDER if isinstance(draft.body, Control) else 0)


class Accepted(msgspec.Struct, frozen=True):
    """What became of a letter: its receipt; its envelope unless it was there before, whether it may wake its recipient, and its box."""

    to: str
    receipt: Receipt
    envelope: Envelope | None = None
    wakes: bool = False
    box: int = 0


@define
class Recipient:
    """What accepting needs to know of a session, from its rows."""

    box: int
    id: str
    parent: str | None
    limits: Limits
    last: int
    mail_cursor: int
    control_cursor: int
    control: int  # the seq of the newest order

    def full_perhaps(self) -> bool:
        """Whether its unread mail has to be counted."""
        return self.last - self.mail_cursor >= self.limits.max_unread or self.control > self.control_cursor  # type: ignore[operator]


@lru_cache(maxsize=256)
def limits_of(text: str) -> Limits:
    """The limits in a row; most sessions share a few."""
    return read_limits(text)


def minted(box: int, seq: int) -> str:
    """The id of mail whose sender gave none: unique in the store, and short."""
    return f"m-{box}-{seq}"


def check_hops(to: Recipient, letter: Letter) -> None:
    """`TooManyHops`, unless it is accepted from however far it came."""
    most: Any = to.limits.max_hops
    if letter.draft.hops and letter.draft.hops > most and not isinstance(letter.draft.body, FROM_AFAR):
        raise TooManyHops(address=to.id, hops=letter.draft.hops, max_hops=most)


def again(to: Recipient, letter: Letter, seq: int, kind: int, mark: bytes | None) -> Receipt:
    """The receipt of mail that is there under the same id, from its row; `IdConflict` if it is another."""
    id = letter.draft.id
    if mark != letter.digest or id is None:
        raise IdConflict(address=to.id, id=str(id))
    return Receipt(id, seq, True, INTERRUPT if kind & URGENT else NORMAL)


def without_room(to: Recipient, letter: Letter, unread: Iterable[tuple[int, int, str, str]]) -> Receipt | int:
    """Room after all: 0, or the bit of a place of its own; or the receipt of an equal order; or `MailboxFull`.

    `unread` is what lies behind the lower cursor: seq, kind, sender and body.
    """
    rows = list(unread)
    count = sum(seq > (to.control_cursor if kind & ORDER else to.mail_cursor) for seq, kind, _, _ in rows)
    most: int = to.limits.max_unread  # type: ignore[assignment]
    if count < most:
        return 0
    body = letter.draft.body
    if isinstance(body, Control):
        for seq, kind, sender, text in rows:
            if kind & ORDER and seq > to.control_cursor and (sender, text) == (letter.sender, letter.body):
                return Receipt(minted(to.box, seq), seq, True, NORMAL)
        return 0
    if letter.draft.priority is INTERRUPT and isinstance(letter.draft.sender, FromUser):
        own = sum(bool(kind & OWN_PLACE) and seq > to.mail_cursor for seq, kind, _, _ in rows)
        if own < PERSONS_INTERRUPTS:
            return OWN_PLACE
    raise MailboxFull(address=to.id, unread=count, capacity=most)


def kept(to: Recipient, letter: Letter, *, wakes: bool) -> Accepted:
    """What was accepted as the next message of its mailbox."""
    draft, seq = letter.draft, to.last + 1
    key = minted(to.box, seq) if draft.id is None else draft.id
    envelope = Envelope(key, seq, draft.sender, draft.priority, draft.hops, letter.sent, draft.trace, draft.body)
    return Accepted(draft.to, Receipt(key, seq, False, draft.priority), envelope, wakes, to.box)


def may_wake(to: Recipient, draft: Draft, relation: str) -> bool:
    """Whether this mail may wake its recipient; rather too often than not at all. `relation`: of its sender to the recipient."""
    if isinstance(draft.body, Control):
        return True
    if draft.hops > to.limits.max_hops:  # type: ignore[operator]
        return False
    return isinstance(draft.body, ToolCallFinished) or relation in to.limits.wake_on  # type: ignore[operator]


def relation_of(sender: Sender, to: Recipient) -> str | None:
    """What a sender is to the recipient; None for another session, which is its child if that is its parent, else a peer."""
    match sender:
        case FromUser():
            return "user"
        case FromSession(session=session) | FromToolCall(session=session) if session != to.id:
            return "parent" if session == to.parent else None
        case _:
            return "tool"
