"""The state of one life of an actor: its voice, the message in progress, what it still owes.

`_serve.py` runs it; the tree makes it and decides what follows its end.
"""

import logging
from math import inf
from typing import Any

import trio
from trio.lowlevel import enable_ki_protection

from ._deadlines import Entry
from ._dispatch import Handler, resolve
from ._envelope import Envelope, Sender
from ._errors import AskCycle, AskTimeout, MailboxFull, Rejected, SendRefused, Unhandled
from ._exit import Ended, Failed, Finished
from ._identity import Identity
from ._receive import ActorMailbox, Match
from ._ref import ActorRef
from ._reply import NO_REPLY, Reject, ReplyToken

log = logging.getLogger("postroom.actors")


class NoHandlerError(Exception):
    """No handler for this body: an answer to the asker, not a crash."""


ANSWERS = (Reject, SendRefused, AskCycle, AskTimeout, NoHandlerError)


class Timer:
    """A `send_after` that has not fired yet."""

    __slots__ = ("_entry", "_life")

    def __init__(self, life: "Life", entry: Entry) -> None:
        self._life = life
        self._entry = entry

    def cancel(self) -> None:
        """Send nothing. After it fired, or twice: does nothing."""
        self._life.runtime.deadlines.drop(self._entry)


class Life(Identity):
    """One generation of an actor: the identity its tasks speak with, and the state of its message loop."""

    __slots__ = ("actor", "box", "deferred", "draining", "ending", "generation", "mail", "ready", "ref", "scope", "taken", "timers")

    def __init__(self, address: str, sender: Sender, runtime: Any, box: ActorMailbox, generation: int) -> None:
        super().__init__(address, sender, runtime)
        self.generation = generation
        self.box = box
        self.ref = ActorRef(address, runtime)
        self.scope = trio.CancelScope(shield=True)  # made before its task starts: a stop may come first
        self.actor: Any = None
        self.ready = False
        self.draining = False
        self.ending: Finished | None = None
        self.mail: Envelope | None = None  # being handled
        self.taken: list[Envelope] | None = None  # by its `receive`, with the message in progress
        self.deferred: set[ReplyToken] | None = None
        self.timers: list[Entry] | None = None

    # -------------------------------------------------------------- answers
    @enable_ki_protection
    def settle(self, token: ReplyToken, value: Any) -> None:
        """Answer an ask with what its handler returned."""
        if value is NO_REPLY:
            self.defer(token)
            return
        self.check()
        if self.deferred:
            self.deferred.discard(token)
        if not token.answer(value):
            self.runtime.late_replies += 1

    def defer(self, token: ReplyToken) -> None:
        """An ask that `reply` will answer; it fails if this life ends first."""
        if self.deferred is None:
            self.deferred = set()
        self.deferred.add(token)

    @enable_ki_protection
    def refused(self, envelope: Envelope, refusal: Exception) -> None:
        """A handler that ended in an answer: the asker gets it; of a tell it is logged and the message a dead letter."""
        answer: Exception = Rejected(str(refusal)) if isinstance(refusal, Reject) else refusal
        if isinstance(refusal, NoHandlerError):
            handles = tuple(sorted(kind.__name__ for kind in refusal.args[0]))
            answer = Unhandled(address=self.address, body=type(envelope.body).__name__, handles=handles)
        answer.__traceback__ = None
        if envelope.token is not None and envelope.token.fail(answer) and not isinstance(refusal, NoHandlerError):
            return
        log.warning("%s: %s", self.address, answer, extra={"address": self.address, "message_id": envelope.id})
        self.runtime.dead_letter(envelope, self.address, str(answer))

    # -------------------------------------------------------------- what an actor's `self` does
    def finish(self, value: object) -> None:
        """End after the handler in progress."""
        self.ending = Finished(value)
        self.box.disturbed = True
        self.box.nudge()

    async def receive(self, match: Match | None, timeout: float | None) -> Envelope | None:  # noqa: ASYNC109
        """Take one message out of turn."""
        self.check()
        current = self.mail
        skip = frozenset() if current is None else frozenset((current.seq,))
        with trio.move_on_after(inf if timeout is None else timeout):
            envelope = await self.box.receive_one(match, skip)
            if current is not None:
                self.taken = [*(self.taken or ()), envelope]
            if envelope.token is not None:
                self.defer(envelope.token)
            return envelope
        return None

    def send_after(self, seconds: float, body: object) -> Timer:
        """Send `body` to oneself later, as oneself."""

        def fire() -> None:
            if self.revoked:
                return
            try:
                self.box.post(body, self.sender, hops)
            except MailboxFull as refusal:
                log.warning("%s: a timer's message was refused: %s", self.address, refusal, extra={"address": self.address})

        hops = self.hops
        entry = self.runtime.deadlines.after(seconds, fire)
        self.timers = [each for each in self.timers or () if each[2] is not None]
        self.timers.append(entry)
        return Timer(self, entry)

    def handler_for(self, table: dict[type, Handler], body: object) -> Handler:
        """The handler of a body whose class is not in the table itself; remembered there."""
        kind = type(body)
        handler = resolve(table, kind)
        if handler is not None:
            table[kind] = handler
            return handler
        return self._unheard if isinstance(body, Ended) else self._unhandled

    def _unheard(self, actor: Any, body: Ended) -> None:
        if isinstance(body.exit, Failed) and not body.restarting and self.runtime.is_child(self, body.address):
            raise body.exit.error

    def _unhandled(self, actor: Any, _body: object) -> None:
        raise NoHandlerError(type(actor).__handlers__)
