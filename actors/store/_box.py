"""The mailbox of a session that is stored durably: what is unread, in memory, as the rows have it.

Mail is accepted by the store and delivered here once it is durable, in the order of its seqs; reading is as of any mailbox. So
nothing can be accepted without waiting: `accept` and `post` refuse, `accept_when_room` waits for the store.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import trio
from trio.lowlevel import enable_ki_protection

from actors._envelope import INTERRUPT, NORMAL, Control, Envelope, Priority, Receipt, Sender
from actors._errors import MailboxFull
from actors._mailbox import Admission, Mailbox
from actors._waiters import Pending, wait
from actors.agent._record import Draft

Keep = Callable[[Draft], Awaitable[Receipt]]
ROOM = Receipt("room", 0, False, NORMAL)  # what wakes a sender that waits for room; it then asks the store


def _as_asked(priority: Priority) -> Priority:
    return priority


class StoredMailbox(Mailbox):
    """A mailbox whose accepting is the store's."""

    __slots__ = ("_heard", "_store", "_turn")

    def __init__(self, address: str, store: Keep, heard: Callable[[Envelope], object]) -> None:
        super().__init__(address)
        self._store = store
        self._heard = heard  # of all that is delivered, before anybody reads it
        self._turn: trio.Lock | None = None  # who waits for room, in order of arrival

    # -------------------------------------------------------------- accepting
    def post(self, body: Any, sender: Sender, hops: int = 0, token: Any = None) -> Receipt:  # noqa: ARG002
        """Nothing is durable at once: `trio.WouldBlock`."""
        raise trio.WouldBlock(f"{self.address} is stored durably and accepts no mail without waiting; use `await send(...)`")

    def accept(self, body: Any, sender: Sender, **_how: Any) -> Receipt:
        """As `post`."""
        return self.post(body, sender)

    async def accept_when_room(
        self,
        seconds: float,
        body: Any,
        sender: Sender,
        *,
        permit: Admission = _as_asked,
        priority: Priority = NORMAL,
        **how: Any,
    ) -> Receipt:
        """Accept durably, waiting up to `seconds` for room. Cancelled once it was handed to the store, it may have been accepted."""
        await trio.lowlevel.checkpoint_if_cancelled()
        if seconds <= 0:
            return await self._store(Draft(self.address, body, sender, priority=permit(priority), **how))
        return await self._accept_by(
            trio.current_time() + seconds, lambda: Draft(self.address, body, sender, priority=permit(priority), **how)
        )

    async def _accept_by(self, until: float, draft: Callable[[], Draft]) -> Receipt:
        if self._turn is None or not self._turn.locked():
            with suppress(MailboxFull):
                return await self._store(draft())
        return await self._in_turn(draft, until)

    async def _in_turn(self, draft: Callable[[], Draft], until: float) -> Receipt:
        self._turn = self._turn or trio.Lock()
        with trio.move_on_at(until) as scope:
            await self._turn.acquire()
        if scope.cancelled_caught:
            raise self._full_now()
        try:
            while True:
                try:
                    return await self._store(draft())
                except MailboxFull as full:
                    refusal = full
                with trio.move_on_at(until) as scope:
                    await self._room_made()
                if scope.cancelled_caught:
                    raise refusal
        finally:
            self._turn.release()

    def _full_now(self) -> MailboxFull:
        return MailboxFull(address=self.address, unread=self.unread_count(), capacity=self.capacity)

    @enable_ki_protection
    async def _room_made(self) -> None:
        if not self._full():
            await trio.lowlevel.checkpoint()
            return
        pending = Pending(trio.lowlevel.current_task(), lambda: ROOM)
        self.room = self.room if self.room is not None else deque()
        room = self.room
        room.append(pending)
        await wait(lambda: room.remove(pending) if pending in room else None)

    # -------------------------------------------------------------- what the store has
    @enable_ki_protection
    def deliver(self, envelope: Envelope) -> bool:
        """Take in the next envelope, which is durable; False if one before it is missing here."""
        if envelope.seq != self._last + 1:
            return envelope.seq <= self._last
        self._heard(envelope)
        self._log.append(envelope)
        self._last = envelope.seq
        if envelope.priority is INTERRUPT or type(envelope.body) is Control:
            self._note(envelope)
        if self._waiters:
            self._wake(envelope)
        if self.on_accept is not None:
            self.on_accept(envelope)
        return True

    def _note(self, envelope: Envelope) -> None:
        if envelope.priority is INTERRUPT:
            self._urgent += 1
            self.disturbed = True
        if isinstance(envelope.body, Control) and self._orders is not None:
            self._orders.append(envelope.seq)

    def restore(self, unread: Sequence[Envelope], last: int, cursor: int, control: int) -> None:
        """Be as it was left: `unread` is what lies behind the lower cursor, up to `last`."""
        self._log = list(unread)
        self._base, self._last, self.cursor, self._control = last - len(unread), last, cursor, control
        for envelope in unread:
            self._note(envelope)
        self._orders = [seq for seq in self._orders or () if seq > min(cursor, control)]

    def holds(self, envelope: Envelope) -> bool:
        """Whether this is an envelope of its rows, not trimmed yet."""
        place = envelope.seq - self._base - 1
        return 0 <= place < len(self._log) and self._log[place] is envelope
