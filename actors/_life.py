"""The state of one life of an actor: its voice, the message in progress, what it still owes.

`_serve.py` runs it; the tree makes it and decides what follows its end.
"""

import logging
from collections import deque
from math import inf
from typing import Any

import trio
from trio.lowlevel import enable_ki_protection

from ._deadlines import Entry
from ._dispatch import Handler, resolve
from ._envelope import Envelope, Sender
from ._errors import ActorCrashed, AskCycle, AskTimeout, Rejected, SendRefused, Unhandled, chain, leaves
from ._exit import Ended, Failed, Finished
from ._identity import Identity
from ._mailbox import Match
from ._receive import ActorMailbox
from ._ref import ActorRef
from ._reply import NO_REPLY, Reject, ReplyToken

log = logging.getLogger("postroom.actors")


class NoHandlerError(Exception):
    """No handler for this body: an answer to the asker, not a crash."""


ANSWERS = (Reject, SendRefused, AskCycle, AskTimeout, NoHandlerError)
KEPT = 1000  # envelopes that a handler's `receive` took, remembered for a crash
DEFERRED = 256  # owed replies that make it worth a look for askers that left


def answer_in(error: BaseException) -> Exception | None:
    """The answer that a handler ended in, also where a nursery of its own wrapped it; None if it is something else."""
    found = leaves(error)
    return found[0] if isinstance(found[0], Exception) and all(isinstance(leaf, ANSWERS) for leaf in found) else None


NO_TIMERS: dict[int, Entry] = {}  # of every life that has none; nothing is ever put into it


class Timer:
    """A `send_after` that has not fired yet."""

    __slots__ = ("_entry", "_life")

    def __init__(self, life: "Life", entry: Entry) -> None:
        self._life = life
        self._entry = entry

    def cancel(self) -> None:
        """Send nothing. After it fired, or twice: does nothing."""
        self._life.timers.pop(self._entry[1], None)
        self._life.runtime.deadlines.drop(self._entry)


class Life(Identity):
    """One generation of an actor: the identity its tasks speak with, and the state of its message loop."""

    __slots__ = (
        "actor", "deferred", "draining", "ending", "failure", "function", "generation", "gone", "late", "mail", "over",
        "ready", "ref", "resigned", "scope", "taken", "timers",
    )  # fmt: skip

    box: ActorMailbox

    def __init__(self, address: str, sender: Sender, runtime: Any, box: ActorMailbox, generation: int) -> None:
        super().__init__(address, sender, runtime)
        self.generation = generation
        self.box = box
        self.ref = ActorRef(address, runtime)
        self.scope = trio.CancelScope(shield=True)  # made before its task starts: a stop may come first
        self.actor: Any = None
        self.ready = False
        self.resigned = False  # it tries nothing again: too many lives before it did
        self.late: Exception | None = None  # it was not ready in time
        self.over = False  # its children are being stopped: it starts no more
        self.failure: Failed | None = None  # what it failed with, while its cleanup runs
        self.gone = False  # its task has ended
        self.draining = False
        self.function = False  # its actor is an async function, which reads its mail with `receive`
        self.ending: Finished | None = None
        self.mail: Envelope | None = None  # being handled
        self.taken: deque[Envelope] | None = None  # by its `receive`, with the message in progress
        self.deferred: set[ReplyToken] | None = None
        self.timers: dict[int, Entry] = NO_TIMERS

    # -------------------------------------------------------------- answers
    @enable_ki_protection
    def settle(self, token: ReplyToken, value: Any) -> None:
        """Answer an ask with what its handler returned."""
        if self.revoked:
            self.check()
        if value is NO_REPLY:
            self.defer(token)
            return
        if self.deferred:
            self.deferred.discard(token)
        if value is None and token.settled:  # answered by `reply`; the handler had no more to say
            return
        if not token.answer(value):
            self.runtime.late_replies += 1

    def defer(self, token: ReplyToken) -> None:
        """An ask that `reply` will answer; it fails if this life ends first."""
        if token.settled or token.gone:
            return
        if self.deferred is None:
            self.deferred = set()
        elif len(self.deferred) % DEFERRED == 0:
            self.deferred = {each for each in self.deferred if not each.gone}
        self.deferred.add(token)

    @enable_ki_protection
    def refused(self, envelope: Envelope, refusal: Exception) -> None:
        """A handler that ended in an answer: the asker gets it; of a tell it is logged and the message a dead letter."""
        self.check()
        answer: Exception = Rejected(str(refusal)) if isinstance(refusal, Reject) else refusal
        if isinstance(refusal, NoHandlerError):
            handles = tuple(sorted(kind.__name__ for kind in refusal.args[0]))
            answer = Unhandled(address=self.address, body=type(envelope.body).__name__, handles=handles)
        for each in chain(answer):
            each.__traceback__ = None
        if envelope.token is not None and envelope.token.fail(answer) and not isinstance(refusal, NoHandlerError):
            return
        log.warning("%s: %s", self.address, answer, extra={"address": self.address, "message_id": envelope.id})
        self.runtime.dead_letter(envelope, self.address, str(answer))

    # -------------------------------------------------------------- what an actor's `self` does
    def finish(self, value: object) -> None:
        """End after the handler in progress."""
        self.check()
        self.ending = Finished(value)
        self.box.nudge()

    async def receive(self, match: Match | None, timeout: float | None) -> Envelope | None:  # noqa: ASYNC109
        """Take one message out of turn. What is there is taken at once, also with a timeout of 0; a cancel takes nothing."""
        await trio.lowlevel.checkpoint_if_cancelled()
        envelope = self._take(match)
        if envelope is not None:
            await trio.lowlevel.cancel_shielded_checkpoint()
            return envelope
        with trio.move_on_after(inf if timeout is None else max(0.0, timeout)):
            while envelope is None:
                if self.draining and self.function:  # it has read its last message: this is its stop
                    self.scope.cancel()
                await self.box.news(match)
                envelope = self._take(match)
        return envelope

    @enable_ki_protection
    def _take(self, match: Match | None) -> Envelope | None:
        self.check()
        begun = self.mail
        while True:
            envelope = self.box.pick(match, 0 if begun is None else begun.seq)
            if envelope is None:
                return None
            if begun is None:
                self.box.handled(envelope)
            else:
                self.box.set_aside(envelope)
            if envelope.asker_gone:
                continue
            if begun is not None:
                self.taken = self.taken if self.taken is not None else deque(maxlen=KEPT)
                self.taken.append(envelope)
            if envelope.token is not None:
                self.defer(envelope.token)
            return envelope

    def send_after(self, seconds: float, body: object) -> Timer:
        """Send `body` to oneself later, as oneself."""
        self.check()

        def fire() -> None:
            self.timers.pop(entry[1], None)
            if self.revoked or self.box.closed:
                return
            try:
                self.box.post(body, self.sender, hops)
            except SendRefused as refusal:
                log.warning("%s: a timer's message was refused: %s", self.address, refusal, extra={"address": self.address})

        hops = self.hops
        entry = self.runtime.deadlines.after(seconds, fire)
        if self.timers is NO_TIMERS:
            self.timers = {}
        self.timers[entry[1]] = entry
        return Timer(self, entry)

    def handler_for(self, table: dict[type, Handler], body: object) -> Handler:
        """The handler of a body whose class is not in the table itself; remembered there."""
        kind = type(body)
        handler = resolve(table, kind)
        if handler is not None:
            table[kind] = handler
            return handler
        return self._unheard if isinstance(body, Ended) else self._unhandled

    def _unheard(self, _actor: Any, body: Ended) -> None:
        if isinstance(body.exit, Failed) and not body.restarting and self.runtime.is_child(self, body.address):
            raise ActorCrashed(address=body.address, error=body.exit.error)

    def _unhandled(self, actor: Any, _body: object) -> None:
        raise NoHandlerError(type(actor).__handlers__)
