"""What one event says to a person at a terminal: a pure function from an event to a styled line, or to nothing, as a table.

The text of the answer itself is no line; it streams (`_screen`).
"""

from collections.abc import Callable, Mapping
from typing import Any

from rich.text import Text

from actors import Envelope, FromUser, Status, UserMessage
from actors.events import (
    AnyEvent,
    Continuing,
    DeadLettered,
    Ended,
    Gap,
    Interrupted,
    MailDelivered,
    Refused,
    Restarted,
    RunStopped,
    StatusChanged,
    ToolDetached,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    Waiting,
)
from actors.models._render import mail_block

Styled = tuple[str, str]
WIDTH = 160  # characters of a result or of arguments; the model reads all of them, a person a glimpse
NUDGES = {"continuation": "empty turn: asked to go on", "wrap_up": "rounds used up: asked to sum up"}
STOPS = {"stopped": "run stopped", "limit": "run ended at its limit", "failed": "run failed"}


def glimpse(value: object) -> str:
    """The first line of a value, cut to what fits beside a heading."""
    text = value if isinstance(value, str) else repr(value)
    first, _, rest = text.strip().partition("\n")
    return f"{first[:WIDTH]}…" if rest or len(first) > WIDTH else first


def arguments(given: Mapping[str, object]) -> str:
    """A call's arguments as Python writes them."""
    return glimpse(", ".join(f"{name}={value!r}" for name, value in given.items()))


def _finished(event: ToolFinished, _: str) -> Styled:
    outcome = event.outcome
    took = f" in {outcome.duration:.1f} s" if outcome.duration is not None else ""
    if outcome.status == "completed":
        return f"✓ {event.tool}{took}: {glimpse(outcome.text)}", "green"
    return f"✗ {event.tool}: {glimpse(outcome.text)}", "red"


def _delivered(envelope: Envelope) -> str:
    if isinstance(envelope.sender, FromUser) and isinstance(envelope.body, UserMessage):
        return f"{envelope.sender.owner or 'you'}: {envelope.body.text}"
    return mail_block(envelope)


def _mail(event: MailDelivered, _: str) -> Styled | None:
    told = [text for envelope in event.mail if (text := _delivered(envelope))]
    return ("\n".join(f"✉ {text}" for text in told), "magenta") if told else None


def _stopped(event: RunStopped, _: str) -> Styled | None:
    return (f"({STOPS[event.reason]})", "red" if event.reason == "failed" else "yellow") if event.reason in STOPS else None


def _status(event: StatusChanged, _: str) -> Styled | None:
    return ("(paused: /resume goes on)", "yellow") if event.status is Status.PAUSED else None


SHOWN: dict[type, Callable[[Any, str], Styled | None]] = {  # kind of event: its words and style, given the name of its tool
    ToolStarted: lambda event, _: (f"▸ {event.tool}({arguments(event.arguments)})", "cyan"),
    ToolProgress: lambda event, tool: (f"· {tool}: {glimpse(event.payload)}", "dim cyan"),
    ToolDetached: lambda event, tool: (f"… {tool} goes on in the background ({event.reason})", "yellow"),
    ToolFinished: _finished,
    MailDelivered: _mail,
    Continuing: lambda event, _: (f"({NUDGES[event.nudge]})", "dim"),
    Waiting: lambda _event, _: ("(waiting for what runs in the background)", "dim"),
    Interrupted: lambda _event, _: ("(answer cut off)", "dim"),
    RunStopped: _stopped,
    StatusChanged: _status,
    Restarted: lambda event, _: (f"↻ {event.address} restarted (attempt {event.attempt})", "yellow"),
    Ended: lambda event, _: None if event.exit.normal else (f"✗ {event.address} ended: {glimpse(event.exit)}", "red"),
    DeadLettered: lambda event, _: (f"✉ undeliverable to {event.recipient}: {event.reason}", "red"),
    Refused: lambda event, _: (f"✉ refused by {event.recipient}: {event.error}", "red"),
    Gap: lambda event, _: (f"({event.missed} events missed)", "dim"),
}


def line(event: AnyEvent, tool: str) -> Text | None:
    """What to show of an event, if anything; `tool` is the name behind its call."""
    shown = SHOWN.get(type(event))
    styled = shown(event, tool) if shown else None
    return Text(*styled) if styled else None
