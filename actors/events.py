"""What happens, as it happens: one frozen class per kind.

Every event has a place in its process's sequence (`seq`) and a time (`at`, aware UTC), and names the session, run, turn and
call it belongs to where there is one. A reader that is too slow gets a `Gap` with the number it missed; it never blocks an
agent. Each announced call gets its end.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Literal

from attrs import field, frozen

from ._envelope import Envelope
from ._exit import Exit, Status
from ._outcome import Outcome
from .models._blocks import Usage


@frozen
class Event:
    """Base of all events."""

    kind: ClassVar[str] = "event"
    seq: int = field(default=0, kw_only=True)
    at: datetime = field(kw_only=True)
    session: str | None = field(default=None, kw_only=True)
    run: int | None = field(default=None, kw_only=True)
    turn: int | None = field(default=None, kw_only=True)
    call: str | None = field(default=None, kw_only=True)


@frozen
class RunStarted(Event):
    """A session woke: a run goes from waking to idle."""

    kind: ClassVar[Literal["run_started"]] = "run_started"


@frozen
class TurnStarted(Event):
    """A round begins: one model request and what follows. `round` counts those since a person last spoke."""

    kind: ClassVar[Literal["turn_started"]] = "turn_started"
    round: int


@frozen
class TextDelta(Event):
    """The next piece of the answer in progress."""

    kind: ClassVar[Literal["text_delta"]] = "text_delta"
    text: str


@frozen
class ThinkingDelta(Event):
    """The next piece of thinking of the answer in progress."""

    kind: ClassVar[Literal["thinking_delta"]] = "thinking_delta"
    text: str


@frozen
class ToolStarted(Event):
    """A call was accepted: the model asked for it. Its end is a `ToolFinished`."""

    kind: ClassVar[Literal["tool_started"]] = "tool_started"
    tool: str
    arguments: Mapping[str, Any]


@frozen
class ToolProgress(Event):
    """A running call said how far it is."""

    kind: ClassVar[Literal["tool_progress"]] = "tool_progress"
    payload: Any


@frozen
class ToolDetached(Event):
    """The model goes on without this call; its outcome will be mail. With `deferred: ...` as the reason, from whoever has its token."""

    kind: ClassVar[Literal["tool_detached"]] = "tool_detached"
    reason: str


@frozen
class ToolFinished(Event):
    """A call ended, in whatever way."""

    kind: ClassVar[Literal["tool_finished"]] = "tool_finished"
    tool: str
    outcome: Outcome


@frozen
class MailAccepted(Event):
    """A session's mailbox accepted mail."""

    kind: ClassVar[Literal["mail_accepted"]] = "mail_accepted"
    envelope: Envelope


@frozen
class MailDelivered(Event):
    """Mail was folded into the turn; the round with this number, which comes next, reads it."""

    kind: ClassVar[Literal["mail_delivered"]] = "mail_delivered"
    mail: tuple[Envelope, ...]
    round: int


@frozen
class Answer(Event):
    """A final answer: an assistant item without calls."""

    kind: ClassVar[Literal["answer"]] = "answer"
    text: str


@frozen
class RunStopped(Event):
    """The run is over."""

    kind: ClassVar[Literal["run_stopped"]] = "run_stopped"
    reason: Literal["answered", "stopped", "limit", "failed"]


@frozen
class StatusChanged(Event):
    """A session's status changed."""

    kind: ClassVar[Literal["status"]] = "status"
    status: Status


@frozen
class Ended(Event):
    """An actor or session ended for good."""

    kind: ClassVar[Literal["exit"]] = "exit"
    address: str
    exit: Exit


@frozen
class Restarted(Event):
    """An actor is ready again. `attempt`: with a backoff, which restart in a row this was; else which of all."""

    kind: ClassVar[Literal["restarted"]] = "restarted"
    address: str
    attempt: int


@frozen
class Gap(Event):
    """This reader was too slow, or asked for events that are gone: it missed so many."""

    kind: ClassVar[Literal["gap"]] = "gap"
    missed: int


@frozen
class Waiting(Event):
    """The model is done for now, but detached calls keep the run open."""

    kind: ClassVar[Literal["waiting"]] = "waiting"


@frozen
class Interrupted(Event):
    """The completion of this turn was cancelled; its deltas are retracted."""

    kind: ClassVar[Literal["interrupted"]] = "interrupted"


@frozen
class UsageReported(Event):
    """What the completion of this turn cost."""

    kind: ClassVar[Literal["usage"]] = "usage"
    usage: Usage


@frozen
class Continuing(Event):
    """The loop itself nudged the model: nobody spoke."""

    kind: ClassVar[Literal["continuing"]] = "continuing"
    nudge: Literal["continuation", "wrap_up"]


@frozen
class DeadLettered(Event):
    """Accepted mail that nobody will handle."""

    kind: ClassVar[Literal["dead_letter"]] = "dead_letter"
    recipient: str
    envelope: Envelope
    reason: str


@frozen
class Refused(Event):
    """A send to a session was refused."""

    kind: ClassVar[Literal["refused"]] = "refused"
    recipient: str
    error: str


AnyEvent = (
    RunStarted | TurnStarted | TextDelta | ThinkingDelta | ToolStarted | ToolProgress | ToolDetached | ToolFinished | MailAccepted
    | MailDelivered | Answer | RunStopped | StatusChanged | Ended | Restarted | Gap | Waiting | Interrupted | UsageReported | Continuing
    | DeadLettered | Refused
)  # fmt: skip

__all__ = [
    "Answer", "AnyEvent", "Continuing", "DeadLettered", "Ended", "Event", "Gap", "Interrupted", "MailAccepted", "MailDelivered", "Refused",
    "Restarted", "RunStarted", "RunStopped", "StatusChanged", "TextDelta", "ThinkingDelta", "ToolDetached", "ToolFinished", "ToolProgress",
    "ToolStarted", "TurnStarted", "UsageReported", "Waiting",
]  # fmt: skip
