"""An agent's own handlers: messages of its `@handle` types, which the model never sees.

They run in the loop, one at a time, between rounds: never beside a completion, nor while calls are attached, nor in a pause. What a
handler raises is as in any actor: a `Reject` or a refusal it got is logged and the message a dead letter; anything else crashes the
loop, and the message is a dead letter too. The cursor moves when a handler returns: one that is cancelled runs again.
"""

from collections.abc import Callable
from inspect import isawaitable
from typing import Any

from actors._codec import register
from actors._dispatch import Handler, resolve
from actors._envelope import RUNTIME_BODIES, AgentMessage, Envelope, UserMessage
from actors._errors import ConfigError
from actors._life import Life, answer_in
from actors._mailbox import Mailbox
from actors._waiters import guarded_async

from ._record import Commit, State

OF_THE_MODEL = (str, UserMessage, AgentMessage, *RUNTIME_BODIES)


def check_handled(agent: str, kind: type, method: str) -> None:
    """Give a type of message its place in JSON. ConfigError if it has none, or is the model's or the runtime's."""
    if any(issubclass(each, kind) for each in OF_THE_MODEL):
        raise ConfigError(
            f"{agent}.{method} handles {kind.__name__}, but those go to the model or the runtime; let it take a message class of your own"
        )
    try:
        register(kind)
    except ConfigError as error:
        raise ConfigError(f"{agent}.{method} handles {kind.__name__}, which a session cannot keep: {error}") from None


class Handlers:
    """Those of one session."""

    def __init__(self, table: dict[type, Handler], state: State, box: Mailbox) -> None:
        self._table = table
        self._state = state
        self._box = box

    def takes(self, body: object) -> bool:
        """Whether a handler takes this body."""
        return bool(self._table) and resolve(self._table, type(body)) is not None

    def due(self, envelope: Envelope) -> bool:
        """Whether it waits for its handler."""
        return envelope.seq > self._state.handled_cursor and self.takes(envelope.body)

    def next(self) -> Envelope | None:
        """The oldest that waits for its handler."""
        if not self._table:
            return None
        after = max(self._state.mail_cursor, self._state.handled_cursor)
        return next((each for each in self._box.unread(after) if self.takes(each.body)), None)

    async def handle(self, life: Life, envelope: Envelope, commit: Callable[[Commit], Any]) -> None:
        """Run its handler, then move the cursor."""
        handler = resolve(self._table, type(envelope.body))
        life.mail, life.hops = envelope, envelope.hops
        try:
            _, error = await guarded_async(_run, handler, life.actor, envelope.body)
        finally:
            life.mail = None
        answer = None if error is None else answer_in(error)
        if answer is not None:
            life.refused(envelope, answer)
        await commit(self._past(envelope))
        if error is not None and answer is None:  # it is not handled again: the same message would crash every life
            life.runtime.dead_letter(envelope, life.address, f"being handled when its actor crashed: {error!r}")
            raise error

    def _past(self, envelope: Envelope) -> Commit:
        seq = envelope.seq
        return Commit(handled_cursor=seq, mail_cursor=seq if self._state.mail_cursor == seq - 1 else None)


async def _run(handler: Any, agent: Any, body: object) -> None:
    done = handler(agent, body)
    if isawaitable(done):
        await done
