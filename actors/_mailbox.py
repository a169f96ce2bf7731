"""A mailbox: an append-only log of envelopes with cursors. There is no pop.

Theory
======

A queue loses what its reader took and then failed to use. A log does not: *reading never consumes*. A reader keeps
a cursor, the seq of the last envelope whose effect it has committed, and reads what lies behind it as often as it
likes. Consuming is moving the cursor, together with the effect, over a contiguous prefix. What lies at or below
the cursor may be trimmed; what lies above survives a crash of the reader.

*Accepting is atomic and idempotent.* `seq` grows by one per mailbox, without gaps. The checks run in this order:

    duplicate    the same (sender, id) again: its first receipt, marked; another body under it: IdConflict
    permission   the runtime's rules for this sender; an interrupt may be demoted to normal
    hops         more than `max_hops`: TooManyHops
    room         more than `capacity` unread: MailboxFull, and nothing is kept

A resend therefore succeeds while the box is full and after its mail was trimmed, as long as the id is in the window
(the last 4 x capacity ids that senders chose; minted ids cannot be resent and are not kept).

*Room.* Unread is what the bound counts: conversational envelopes past the mail cursor plus control past its own.
Always accepted, still counted: control (past the bound an equal unread one serves for it), finished calls, answered
continuations, the end of a watched actor or of another session's run. A person's interrupts have 16 places of their own past the bound.
Whoever waits for room waits inside the box, in order of arrival, and is accepted by the very `advance` that makes
room: a later sender cannot slip in between.

*Waiting is level-triggered.* A wait whose condition holds returns at once; one that does not is woken only by an
envelope that its own predicate matches. A predicate that raises wakes its reader, which raises; the sender never
sees it.

The hot path is `post`: one record, one append, and a wake-up where somebody waits. It runs, like everything that
changes a mailbox, under trio's KeyboardInterrupt protection, so a Ctrl-C cannot leave a seq without its envelope.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import trio
from attrs import frozen
from trio.lowlevel import enable_ki_protection

from ._envelope import (
    INTERRUPT,
    NORMAL,
    ContinuationResult,
    Control,
    Envelope,
    FromUser,
    Priority,
    Receipt,
    Sender,
    ToolCallFinished,
    WatchedEvent,
    clock,
    mint,
    tells_an_end,
)
from ._errors import MailboxFull, TooManyHops
from ._exit import Ended
from ._waiters import Pending, Waiter, wait
from ._window import Window

ALWAYS_ACCEPTED = (ToolCallFinished, ContinuationResult, Ended)
FROM_AFAR = (*ALWAYS_ACCEPTED, WatchedEvent)  # accepted however far it came; it then wakes nobody
PERSONS_INTERRUPTS = 16
MAX_HOPS = 16
WINDOW = 4  # times the capacity
Match = Callable[[Envelope], bool]
Admission = Callable[[Priority], Priority]


@frozen
class MailboxStatistics:
    """Counts since the mailbox was made (`accepted`, `duplicates`, `refused`) and now (`unread`, `waiting` readers)."""

    accepted: int
    unread: int
    duplicates: int
    refused: int
    waiting: int


class Mailbox:
    """An append-only log of envelopes with cursors, bounded in what is unread.

    It works on its own in any trio program; sends belong to the trio thread (`ActorRef.send_from_thread` is for the
    others). One that lives under an address is made by the runtime, one per address and process.

    Args:
        address: The name that errors and statistics show.
        capacity: How many envelopes may be unread at once.
    """

    __slots__ = (
        "_ahead", "_base", "_capacity", "_control", "_duplicates", "_last", "_log", "_orders", "_own", "_reader", "_refused", "_roomy",
        "_urgent", "_waiters", "_window", "address", "awaits", "closed", "cursor", "disturbed", "max_hops", "on_accept", "room",
    )  # fmt: skip

    def __init__(self, address: str = "mailbox", capacity: int = 256) -> None:
        if capacity < 1:
            raise ValueError(f"a mailbox has room for at least 1 message, not {capacity}")
        self.address = address
        self.max_hops: int | None = MAX_HOPS
        self.closed = False  # set by the runtime when its owner accepts no more
        self.on_accept: Callable[[Envelope], object] | None = None
        self.awaits: str | None = None  # whom the actor behind it asks: an edge of the waits-for graph
        self.cursor = 0  # the bound's mail cursor; move it with `advance`, or, as the actor's loop does, by one
        self.disturbed = False  # the next envelope to handle is not simply the one behind the cursor
        self._log: list[Envelope] = []
        self._base = 0  # seq of the last trimmed envelope
        self._last = 0
        self._control = 0
        self._orders: list[int] | None = []  # seqs of control not past both cursors; None: control is mail like any other
        self._ahead: set[int] | None = None  # handled although older mail is unread
        self._urgent = 0
        self._own: list[int] = []  # seqs in the places of a person's interrupts
        self._window = Window(0)
        self.capacity = capacity
        self._reader: trio.lowlevel.Task | None = None
        self._waiters: list[Waiter] = []
        self.room: deque[Pending] | None = None
        self._duplicates = 0
        self._refused = 0

    @property
    def capacity(self) -> int:
        """How many envelopes may be unread at once."""
        return self._capacity

    @capacity.setter
    def capacity(self, capacity: int) -> None:
        self._capacity = capacity
        self._roomy = 0  # up to this seq there is room whatever was handled since; a lower bound, moved on when it is reached
        self._window.size = WINDOW * capacity

    # -------------------------------------------------------------- accepting
    @enable_ki_protection
    def post(self, body: Any, sender: Sender, hops: int = 0, token: Any = None) -> Receipt:
        """Accept one normal envelope under a minted id: the hot path of every tell and ask."""
        seq = self._last + 1
        if seq > self._roomy or hops:
            if seq - self.cursor > self._capacity or (self.max_hops is not None and hops > self.max_hops):
                return self.accept(body, sender, hops=hops, token=token)
            self._roomy = self.cursor + self._capacity
        key = mint()
        envelope = Envelope(key, seq, sender, NORMAL, hops, clock(), None, body, token)
        self._log.append(envelope)
        self._last = seq
        reader = self._reader
        if reader is not None:
            self._reader = None
            trio.lowlevel.reschedule(reader)
        if self._waiters:
            self._wake(envelope)
        if self.on_accept is not None:
            self.on_accept(envelope)
        return Receipt(key, seq, False, NORMAL)  # positional: keywords cost a msgspec struct 40 %

    @enable_ki_protection
    def send_nowait(
        self, body: object, *, sender: Sender, id: str | None = None, priority: Priority = Priority.NORMAL, hops: int = 0
    ) -> Receipt:
        """Accept `body` now or refuse it now; the receipt says where it stands.

        Raises:
            MailboxFull: No room; nothing was kept.
            IdConflict: This sender used `id` for another body.
            ValueError: `id` is not 1 to 64 of `A-Z a-z 0-9 . _ : -`, or has the form of a minted one (`m-7`).
        """
        return self.accept(body, sender, id=id, priority=priority, hops=hops)

    @enable_ki_protection
    def accept(
        self,
        body: Any,
        sender: Sender,
        *,
        id: str | None = None,
        priority: Priority = NORMAL,
        hops: int = 0,
        trace: str | None = None,
        token: Any = None,
        permit: Admission | None = None,
    ) -> Receipt:
        """Accept or refuse, all checks in order. `permit` gives the priority granted, or raises `NotPermitted`.

        Raises:
            IdConflict: The sender used this id for another body. As with every refusal, nothing was kept.
            TooManyHops: It came through more agents than the tree allows.
            MailboxFull: No room.
        """
        if id is not None and (known := self._window.find(self.address, sender, id, body)) is not None:
            self._duplicates += 1
            return known
        if permit is not None:
            priority = permit(priority)
        if self.max_hops is not None and hops > self.max_hops and not isinstance(body, FROM_AFAR):
            self._refused += 1
            raise TooManyHops(address=self.address, hops=hops, max_hops=self.max_hops)
        if self._full():
            merged = self._past_the_bound(body, sender, priority)
            if merged is not None:
                return merged
        return self._keep(body, sender, id, priority, hops, trace, token)

    def _full(self) -> bool:
        return (self._last + 1 - self.cursor > self.capacity or bool(self._orders)) and self.unread_count() >= self.capacity

    def _past_the_bound(self, body: object, sender: Sender, priority: Priority) -> Receipt | None:
        """Room for those that are always accepted: None, or the receipt of an equal control that serves for this one."""
        if isinstance(body, Control) and self._orders is not None:
            for envelope in self.unread(self._control):
                if envelope.body == body and envelope.sender == sender:
                    self._duplicates += 1
                    return Receipt(envelope.key, envelope.seq, True, envelope.priority)
            return None
        if isinstance(body, ALWAYS_ACCEPTED) or tells_an_end(body):
            return None
        if priority is INTERRUPT and isinstance(sender, FromUser):
            self._own = [seq for seq in self._own if seq > self.cursor and seq not in (self._ahead or ())]
            if len(self._own) < PERSONS_INTERRUPTS:
                self._own.append(self._last + 1)
                return None
        self._refused += 1
        raise MailboxFull(address=self.address, unread=self.unread_count(), capacity=self.capacity)

    def _keep(
        self, body: object, sender: Sender, id: str | None, priority: Priority, hops: int, trace: str | None, token: Any
    ) -> Receipt:
        key: int | str = mint() if id is None else id
        seq = self._last + 1
        envelope = Envelope(key, seq, sender, priority, hops, clock(), trace, body, token)
        receipt = Receipt(key, seq, False, priority)
        if id is not None:
            self._window.keep(sender, id, body, receipt)
        self._log.append(envelope)
        self._last = seq
        if priority is INTERRUPT:
            self._urgent += 1
            self.disturbed = True
        if isinstance(body, Control) and self._orders is not None:
            self._orders.append(seq)
        reader, self._reader = self._reader, None
        if reader is not None:
            trio.lowlevel.reschedule(reader)
        if self._waiters:
            self._wake(envelope)
        if self.on_accept is not None:
            self.on_accept(envelope)
        return receipt

    # -------------------------------------------------------------- waiting for room
    async def accept_when_room(self, seconds: float, body: Any, sender: Sender, **how: Any) -> Receipt:
        """As `accept`, but wait up to `seconds` for room, in order of arrival.

        Cancelled while it waits: nothing was kept. Raises `MailboxFull` when the time is over.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        pending = Pending(trio.lowlevel.current_task(), lambda: self.accept(body, sender, **how))
        plain = how.get("id") is None and how.get("priority", NORMAL) is NORMAL
        if self.room and plain and seconds > 0 and not isinstance(body, (Control, *ALWAYS_ACCEPTED)):
            return await self._queue(seconds, pending)  # it is full, or nobody would wait
        try:  # while others wait it is full, so nobody is overtaken but by what is always accepted
            receipt = self.accept(body, sender, **how)
        except MailboxFull:
            if seconds <= 0:
                raise
            self._refused -= 1  # not yet
        else:
            await trio.lowlevel.cancel_shielded_checkpoint()
            return receipt
        return await self._queue(seconds, pending)

    @enable_ki_protection
    async def _queue(self, seconds: float, pending: Pending) -> Receipt:
        room = self.room = self.room if self.room is not None else deque()
        room.append(pending)
        with trio.move_on_after(seconds):
            receipt: Receipt = await wait(lambda: room.remove(pending) if pending in room else None)
            return receipt
        self._refused += 1
        raise MailboxFull(address=self.address, unread=self.unread_count(), capacity=self.capacity)

    def let_in(self) -> None:
        """Accept the sends that wait for room, while there is some."""
        while self.room and not self._full():
            self.room.popleft().settle()

    @enable_ki_protection
    def close(self, refusal: Callable[[], Exception]) -> None:
        """Accept nothing more; whoever waits for room is refused now."""
        self.closed = True
        while self.room:
            self.room.popleft().refuse(refusal())

    # -------------------------------------------------------------- reading
    def unread(self, cursor: int) -> Sequence[Envelope]:
        """What lies behind `cursor`, oldest first, control included. Never removes; below what was trimmed, what is left."""
        return self._log[max(0, cursor - self._base) :] if cursor < self._last else []

    async def receive(self, cursor: int, match: Match | None = None) -> Sequence[Envelope]:
        """Wait until `unread(cursor)` holds a match, and return the matches (all unread without `match`).

        Level-triggered: what is already there returns at once. Nothing is consumed; a cancelled wait took nothing.
        Raises what `match` raises.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        found = self.matching(cursor, match)
        if found:
            await trio.lowlevel.cancel_shielded_checkpoint()
        while not found:
            await self._arrival(cursor, match)
            found = self.matching(cursor, match)
        return found

    def matching(self, cursor: int, match: Match | None) -> Sequence[Envelope]:
        """The unread envelopes that `match` holds for, now."""
        unread = self.unread(cursor)
        return unread if match is None else [envelope for envelope in unread if match(envelope)]

    @enable_ki_protection
    async def _arrival(self, cursor: int, match: Match | None) -> None:
        waiter = self.watch_for(cursor, match, trio.lowlevel.current_task())
        try:
            await wait(lambda: self.forget(waiter))  # at once: mail of the same instant would wake the task twice
        finally:
            self.forget(waiter)

    def watch_for(self, cursor: int, match: Match | None, wake: Any) -> Waiter:
        """Wake a task, or call a function, once: at the next envelope behind `cursor` that `match` holds for."""
        waiter = Waiter(cursor, match, wake)
        self._waiters.append(waiter)
        return waiter

    def forget(self, waiter: Waiter) -> None:
        """Take back a `watch_for`; one that was woken is already gone."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)

    def _wake(self, envelope: Envelope) -> None:
        for waiter in tuple(self._waiters):
            if waiter.concerns(envelope) and waiter in self._waiters:  # a predicate that sends may have woken it already
                self._waiters.remove(waiter)
                waiter.wake_up()

    # -------------------------------------------------------------- consuming
    @enable_ki_protection
    def advance(self, cursor: int, control: int | None = None) -> None:
        """Move the bound's cursors: mail up to `cursor`, control up to `control`, is consumed. Never moves back.

        Raises:
            ValueError: Past the last seq; nothing moved.
        """
        if max(cursor, control or 0) > self._last:
            raise ValueError(f"{self.address} ends at seq {self._last}; cannot advance to {max(cursor, control or 0)}")
        self.cursor = max(self.cursor, cursor)
        if control is not None:
            self._control = max(self._control, control)
        if self._orders:
            low = min(self.cursor, self._control)
            self._orders = [seq for seq in self._orders if seq > low]
        if self.room:
            self.let_in()

    @enable_ki_protection
    def trim(self, cursor: int) -> None:
        """Free the envelopes up to `cursor`, unread ones too, which then count as read. Their ids stay in the window, no seq comes twice."""
        gone = min(cursor, self._last) - self._base
        if gone > 0:
            del self._log[:gone]
            self._base += gone
            if self.room:
                self.let_in()

    def unread_count(self) -> int:
        """How many envelopes the bound counts now."""
        read = max(self.cursor, self._base)
        count = self._last - read - len(self._ahead or ())
        for seq in self._orders or ():
            count += (seq > max(self._control, self._base)) - (seq > read)
        return count

    def orders(self, cursor: int) -> Sequence[Envelope]:
        """The control behind `cursor`, oldest first."""
        return [envelope for envelope in self.unread(cursor) if isinstance(envelope.body, Control)] if self._orders else ()

    @property
    def last(self) -> int:
        """The seq of the newest envelope; 0 before the first."""
        return self._last

    def statistics(self) -> MailboxStatistics:
        """A snapshot of its counts."""
        waiting = len(self._waiters) + (self._reader is not None)
        return MailboxStatistics(self._last, self.unread_count(), self._duplicates, self._refused, waiting)

    def __repr__(self) -> str:
        return f"<Mailbox {self.address!r} unread={self.unread_count()} of {self.capacity} last={self._last}>"
