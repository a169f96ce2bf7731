"""Folding mail into a turn: what is shown, what is consumed, what stays unread.

A fold takes the oldest unread mail up to 64 envelopes and 32 KiB of words, but always through the last unread interrupt;
what lies beyond the byte bound then shows its head. The cursor moves over a contiguous prefix. What stays is announced, never dropped.
The end of a call, or the answer to a deferred one, is shown if and only if the call's result was a placeholder; otherwise its
result told it already, and its mail is consumed in silence.
"""

from collections.abc import Callable, Collection, Sequence

from attrs import frozen

from actors._envelope import (
    INTERRUPT,
    ContinuationResult,
    Control,
    Envelope,
    FromSession,
    FromToolCall,
    FromUser,
    Sender,
    ended_call,
    tells_an_end,
)
from actors._limits import WakeKind
from actors.models._render import body_text

from ._record import State

MOST = 64
BYTES = 32 * 1024
HEAD = 400  # characters of a mail that had to be folded beyond the byte bound


@frozen
class Fold:
    """The mail that goes into the next user item, and where the cursor stands after it."""

    mail: tuple[Envelope, ...]
    cursor: int
    already_read: tuple[str, ...] = ()
    waiting: int = 0
    cuts: tuple[tuple[str, int], ...] = ()
    tools: tuple[tuple[str, str], ...] = ()

    @property
    def person(self) -> bool:
        """Whether a person spoke."""
        return any(isinstance(envelope.sender, FromUser) for envelope in self.mail)


def shown(envelope: Envelope, placeholders: Collection[str]) -> bool:
    """Whether the model reads this envelope at all."""
    call = ended_call(envelope)
    return not isinstance(envelope.body, Control) if call is None else call in placeholders


def fold(state: State, mail: Sequence[Envelope], placeholders: Collection[str]) -> Fold:
    """Fold unread conversational mail, oldest first. `placeholders`: the calls whose outcome comes as mail."""
    must = max((place for place, envelope in enumerate(mail) if envelope.priority is INTERRUPT), default=-1)
    taken: list[Envelope] = []
    cuts: list[tuple[str, int]] = []
    left = BYTES
    end = 0
    for place, envelope in enumerate(mail):
        if shown(envelope, placeholders):
            text = body_text(envelope.body)
            size = len(text.encode())
            fits = len(taken) < MOST and (size <= left or not taken)
            if not fits and place > must:
                break
            if size > left and (head := max(HEAD, _characters(text, left))) < len(text):
                cuts.append((envelope.id, head))
            left = max(0, left - size)
            taken.append(envelope)
        end = place + 1
    cursor = mail[end - 1].seq if end else state.mail_cursor
    if end == len(mail):
        cursor = max(cursor, state.control_cursor, state.handled_cursor)  # what lies between was applied, or handled
    waiting = sum(shown(envelope, placeholders) for envelope in mail[end:])
    read = tuple(envelope.id for envelope in taken if ended_call(envelope) in state.fetched)
    answered = {ended_call(envelope) for envelope in taken if isinstance(envelope.body, ContinuationResult)}
    tools = tuple((call, state.calls[call].tool) for call in answered if call in state.calls)
    return Fold(tuple(taken), cursor, read, waiting, tuple(cuts), tools)


def _characters(text: str, size: int) -> int:
    """How many characters at its front take at most so many bytes."""
    return len(text.encode()[:size].decode(errors="ignore"))


def kind_of(sender: Sender, state: State, is_child: Callable[[str], bool]) -> WakeKind:
    """What a sender is to a session: by recorded lineage, never by the text of an address."""
    match sender:
        case FromUser():
            return "user"
        case FromToolCall(session=session) if session == state.id:
            return "tool"
        case FromSession(session=session) | FromToolCall(session=session):
            if session == state.parent:
                return "parent"
            return "child" if is_child(session) else "peer"
        case _:
            return "tool"


def wakes(envelope: Envelope, state: State, wake_on: Collection[WakeKind], is_child: Callable[[str], bool]) -> bool:
    """Whether an unread envelope may wake an idle session, or keep a run from ending."""
    body = envelope.body
    if envelope.seq <= max(state.floor, state.mail_cursor) or isinstance(body, Control):
        return False
    call = ended_call(envelope)
    if call is not None:
        row = state.calls.get(call)
        silent = call not in state.placeholders or (row is not None and row.run <= state.stopped_run)
        return not silent and "tool" in wake_on
    if tells_an_end(body) and isinstance(envelope.sender, FromSession):
        return "child" in wake_on  # wherever that child runs: only its end is told to a parent so
    return kind_of(envelope.sender, state, is_child) in wake_on
