"""What a plain actor handles next.

In the usual case that is the envelope behind the cursor, and the actor's loop takes a slice of up to 64 of them and
moves the cursor itself. Two things disturb that, and while one holds (`Mailbox.disturbed`) envelopes are taken one
by one, by this table:

    an unread interrupt                     it goes first; the envelopes it overtook stay unread
    sixteen interrupts in a row             one normal envelope goes, so that a flood starves nobody
    an envelope handled ahead of its turn   (an interrupt, or what a `receive` in a handler took) is passed over when the
                                            cursor comes to it; it is remembered here and does not count as unread
    a stop                                  nothing more is begun: the loop's next wait ends it
"""

from collections.abc import Sequence
from typing import Any

import trio
from trio.lowlevel import enable_ki_protection

from ._envelope import INTERRUPT, NORMAL, Envelope
from ._mailbox import Mailbox, Match
from ._waiters import unprotected

BATCH = 64
INTERRUPTS_IN_A_ROW = 16


class ActorMailbox(Mailbox):
    """The mailbox of a plain actor: its cursor moves when a handler returns."""

    __slots__ = ("_passed", "_streak")

    def __init__(self, address: str, capacity: int = 256) -> None:
        super().__init__(address, capacity)
        self.max_hops = None
        self._orders = None
        self._streak = 0
        self._passed = 0  # up to this seq everything is handled ahead, or in progress

    @enable_ki_protection
    def take(self) -> Sequence[Envelope]:
        """What to handle next: a slice of the log, one envelope while disturbed, or nothing."""
        start = self.cursor - self._base
        if not self.disturbed:
            return self._log[start : start + BATCH]
        chosen = self.pick(None, 0)
        return () if chosen is None else (chosen,)

    def pick(self, match: Match | None, begun: int) -> Envelope | None:
        """The envelope to handle now: the oldest of the priority that goes first, else the oldest. `begun`: the seq in progress."""
        first: Envelope | None = None
        ahead = self._ahead or ()
        wanted = NORMAL if self._streak >= INTERRUPTS_IN_A_ROW else INTERRUPT
        passing = True
        for envelope in self._log[max(self.cursor, self._passed) - self._base :]:
            if envelope.seq in ahead or envelope.seq == begun:
                if passing:
                    self._passed = envelope.seq
                continue
            passing = False
            if match is not None and not unprotected(match, envelope):
                continue
            if not self._urgent or envelope.priority is wanted:
                return envelope
            first = first or envelope
        return first

    @enable_ki_protection
    def handled(self, envelope: Envelope) -> None:
        """The effect of this envelope is done: the cursor moves, or the envelope is remembered as handled ahead."""
        self._count(envelope)
        ahead = self._ahead or set()
        while self.cursor + 1 in ahead:
            self.cursor += 1
            ahead.remove(self.cursor)
        self._passed = 0
        self.calm()

    @enable_ki_protection
    def set_aside(self, envelope: Envelope) -> None:
        """A handler took it with the message in progress: it counts as handled, and `put_back` is possible until that one is."""
        self._count(envelope)
        if self.room:
            self.let_in()

    @enable_ki_protection
    def put_back(self, envelope: Envelope) -> None:
        """It is to be handled after all, in its place."""
        if envelope.seq in (self._ahead or ()):
            self._ahead.remove(envelope.seq)  # type: ignore[union-attr]
            self._urgent += envelope.priority is INTERRUPT
        self._passed = 0

    def _count(self, envelope: Envelope) -> None:
        if envelope.seq <= self.cursor or envelope.seq in (self._ahead or ()):
            return
        if envelope.priority is INTERRUPT:
            self._urgent -= 1
            self._streak += 1
        else:
            self._streak = 0
        self._ahead = self._ahead if self._ahead is not None else set()
        self._ahead.add(envelope.seq)
        self.disturbed = True

    @enable_ki_protection
    def calm(self) -> bool:
        """Free what was handled, let in who waits for room, see whether anything still disturbs the order; True if mail is left."""
        cursor = self.cursor
        if cursor == self._last:
            self._log.clear()
        else:
            del self._log[: cursor - self._base]
        self._base = cursor
        if self.room:
            self.let_in()
        if self.disturbed:
            self.disturbed = bool(self._urgent or self._ahead)
        return self._last != cursor

    @enable_ki_protection
    async def arrival(self) -> None:
        """Wait for mail, right after `take` found none. One task at a time: the actor's loop."""
        self._reader = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._leave)

    @enable_ki_protection
    def nudge(self) -> None:
        """End every wait for mail: there is something else to look at."""
        self.disturbed = True
        reader, self._reader = self._reader, None
        if reader is not None:
            trio.lowlevel.reschedule(reader)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.wake_up()

    def _leave(self, _raise_cancel: Any) -> trio.lowlevel.Abort:
        self._reader = None
        return trio.lowlevel.Abort.SUCCEEDED

    async def news(self, match: Match | None) -> None:
        """Wait for an envelope that `match` holds for and that is not there yet, or for a nudge."""
        await self._arrival(self._last, match)

    @enable_ki_protection
    def drain(self) -> Sequence[Envelope]:
        """Take everything unread at once, oldest first: what a last life leaves behind."""
        ahead = self._ahead or ()
        left = [envelope for envelope in self.unread(self.cursor) if envelope.seq not in ahead]
        self.cursor = self._last
        self._passed = 0
        self._ahead = None
        self._urgent = 0
        self.calm()
        return left
