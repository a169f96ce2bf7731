"""What travels: senders, bodies, the envelope around them, and the receipt for it.

Senders and bodies are frozen attrs records. The two hot ones, `Envelope` and `Receipt`, are frozen msgspec
structs: built in 0.06 us where attrs needs 0.14 (`python -m benchmarks tell` is what that buys). A minted id is
kept as the number it was minted with and worded only when somebody reads it.
"""

import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from itertools import count
from typing import Any, Protocol

import msgspec
from attrs import field, frozen

from ._outcome import Media, Outcome

ID_FORM = re.compile(r"[A-Za-z0-9._:-]{1,64}\Z")
MINTED_FORM = re.compile(r"m-[0-9]+(-[0-9]+)?\Z")  # ours (a store's: mailbox and seq): a sender's own id may not look like one
SEGMENT_FORM = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")

mint = count(1).__next__  # one count for the process: unique in every system it holds, and short
clock = time.time


class Priority(StrEnum):
    """Interrupts are read at more receive points than normal mail, and by plain actors before it."""

    NORMAL = "normal"
    INTERRUPT = "interrupt"


NORMAL, INTERRUPT = Priority.NORMAL, Priority.INTERRUPT


# ------------------------------------------------------------------ senders (stamped by the runtime, never by a model)
@frozen
class FromUser:
    """A person, or host code that speaks for one."""

    owner: str | None = None


@frozen
class FromSession:
    """An agent's session."""

    session: str
    agent: str | None = None


@frozen
class FromActor:
    """A plain actor."""

    address: str


@frozen
class FromToolCall:
    """A tool call; it carries its session, else nobody could answer a call that wrote."""

    session: str
    call: str


@frozen
class FromSystem:
    """The runtime itself, or code of the host that no person and no actor stands behind (`source` names it)."""

    source: str


Sender = FromUser | FromSession | FromActor | FromToolCall | FromSystem


# ------------------------------------------------------------------ bodies of sessions
# Any sequence goes in, a tuple is kept. mypy cannot see through a bare `tuple` as converter, so each kind has its own.
def _media(media: Sequence[Media]) -> tuple[Media, ...]:
    return tuple(media)


def _names(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(names)


@frozen
class UserMessage:
    """A person's words, with what they attached."""

    text: str
    media: tuple[Media, ...] = field(default=(), converter=_media)


@frozen
class AgentMessage:
    """An agent's or actor's words to a session."""

    text: str
    in_reply_to: str | None = None
    expects_reply: bool = False


@frozen
class ToolCallFinished:
    """A call of this session ended. Shown to the model only if the call's result was a placeholder."""

    call: str
    tool: str
    outcome: Outcome


@frozen
class ContinuationResult:
    """The answer to a deferred call, given through its token."""

    token: str
    outcome: Outcome


@frozen
class WatchedEvent:
    """Something happened in a session that this one watches, or in a child of it."""

    session: str
    kind: str
    data: Mapping[str, Any]


@frozen
class TimerFired:
    """A timer that this session, or its host, had set."""

    label: str
    text: str = ""


@frozen
class Pause:
    """Stop at the next receive point until `Resume`; calls stay as they are."""


@frozen
class Resume:
    """Go on after `Pause`; try again after a failure."""


@frozen
class StopRun:
    """End the run in progress: cancel its completion and calls, settle each call, wake for nothing older.

    `run` is stamped when the control is accepted, so that a replay ends no later run.
    """

    run: int | None = field(default=None, kw_only=True)


@frozen
class CancelCalls:
    """Cancel the calls with these ids; others go on."""

    calls: tuple[str, ...] = field(converter=_names)


@frozen
class CancelAllAttached:
    """Cancel every call that the session is attached to.

    `calls` is stamped when the control is accepted, so that a replay cancels no later call.
    """

    calls: tuple[str, ...] | None = field(default=None, kw_only=True)


@frozen
class SetTimer:
    """The runtime's: a timer that was set where the session does not run. `due` in seconds since the epoch."""

    timer: str
    due: float
    label: str
    text: str
    hops: int


@frozen
class DropTimer:
    """The runtime's: a timer that was cancelled where the session does not run."""

    timer: str


@frozen
class CallDeferred:
    """The runtime's: a call of this session ended its task without an outcome; whoever waits for it looks again."""

    call: str


@frozen
class EndSession:
    """The runtime's: the session was stopped for good where it does not run."""


Action = Pause | Resume | StopRun | CancelCalls | CancelAllAttached | SetTimer | DropTimer | CallDeferred | EndSession


@frozen
class Control:
    """An order to a session's runtime: read at every receive point, shown to no model."""

    action: Action


SessionBody = UserMessage | AgentMessage | ToolCallFinished | ContinuationResult | WatchedEvent | TimerFired | Control
ENDS = frozenset({"answer", "failed", "stopped"})  # kinds of watched events that tell how a run ended
RUNTIME_BODIES = (ToolCallFinished, ContinuationResult, WatchedEvent, TimerFired, Control)  # no sender makes these


def tells_an_end(body: object) -> bool:
    """Whether this tells how another session's run ended: such mail is accepted however much is unread."""
    return isinstance(body, WatchedEvent) and body.kind in ENDS


# ------------------------------------------------------------------ the two hot records
class Answerable(Protocol):
    """The one-shot reply token that an `ask` puts beside its envelope."""

    @property
    def gone(self) -> bool:
        """Whether its asker stopped waiting."""
        ...


class Envelope(msgspec.Struct, frozen=True, eq=False, repr_omit_defaults=False):
    """One accepted message. Nothing ever assigns to it.

    `seq` is its place in the recipient's mailbox, from 1, without gaps. `hops` counts the agents it came through
    since a person last spoke. `trace` is a W3C traceparent. `key`, `sent` (seconds since the epoch) and `token`
    are how the kernel keeps `id`, `sent_at` and `asker_gone`.
    """

    key: int | str
    seq: int
    sender: Sender
    priority: Priority
    hops: int
    sent: float
    trace: str | None
    body: Any
    token: Any = None

    @property
    def id(self) -> str:
        """The id its sender gave it, or a minted one (`m-7`), unique in the system."""
        return self.key if isinstance(self.key, str) else f"m-{self.key}"

    @property
    def sent_at(self) -> datetime:
        """When it was accepted: wall clock, aware, UTC, to the microsecond."""
        return datetime.fromtimestamp(self.sent, UTC)

    @property
    def asker_gone(self) -> bool:
        """Whether its ask timed out or was cancelled. False for a tell; never in JSON."""
        return self.token is not None and self.token.gone

    def _public(self) -> tuple[Any, ...]:
        return (self.id, self.seq, self.sender, self.priority, self.hops, self.sent_at, self.trace, self.body)

    def __eq__(self, other: object) -> bool:
        return self._public() == other._public() if isinstance(other, Envelope) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.id, self.seq))

    def __repr__(self) -> str:
        return (
            f"Envelope(id={self.id!r}, seq={self.seq}, sender={self.sender!r}, priority={str(self.priority)!r}, "
            f"hops={self.hops}, sent_at={self.sent_at.isoformat()!r}, trace={self.trace!r}, body={self.body!r})"
        )


class Receipt(msgspec.Struct, frozen=True, eq=False, gc=False):
    """The mailbox's word that a message is kept: its id, its place, whether it was there before, its priority."""

    key: int | str
    seq: int
    duplicate: bool
    priority: Priority

    @property
    def id(self) -> str:
        """The envelope's id."""
        return self.key if isinstance(self.key, str) else f"m-{self.key}"

    def _public(self) -> tuple[Any, ...]:
        return (self.id, self.seq, self.duplicate, self.priority)

    def __eq__(self, other: object) -> bool:
        return self._public() == other._public() if isinstance(other, Receipt) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._public())

    def __repr__(self) -> str:
        return f"Receipt(id={self.id!r}, seq={self.seq}, duplicate={self.duplicate}, priority={str(self.priority)!r})"


def ended_call(envelope: Envelope) -> str | None:
    """The call of the recipient whose end this mail is: it finished, or it was deferred and is answered. None for other mail."""
    if isinstance(envelope.body, ToolCallFinished):
        return envelope.body.call
    if isinstance(envelope.body, ContinuationResult) and isinstance(envelope.sender, FromToolCall):
        return envelope.sender.call
    return None


def split_address(address: str) -> Sequence[str]:
    """The segments of an address; ValueError if one is not of the form `[A-Za-z0-9._-]{1,64}`."""
    segments = address.split("/")
    for segment in segments:
        if not SEGMENT_FORM.match(segment):
            raise ValueError(f"{address!r} is no address: its segment {segment!r} is not 1 to 64 of A-Z a-z 0-9 . _ -")
    return segments
