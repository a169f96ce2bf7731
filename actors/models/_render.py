"""Mail as a model reads it, and the placeholder of an unfinished call.

One block per envelope, in arrival order, separated by a blank line. Headers are composed here, from stored
fields, each time an item is rendered; they are never stored as text and no sender can write one: a body line that
looks like a header is indented by one space. Rendering is a pure function of the item, so prompt prefixes stay
cached.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec

from actors._envelope import (
    INTERRUPT,
    AgentMessage,
    ContinuationResult,
    Control,
    Envelope,
    FromActor,
    FromSession,
    FromSystem,
    FromToolCall,
    FromUser,
    Sender,
    StopRun,
    TimerFired,
    ToolCallFinished,
    UserMessage,
    WatchedEvent,
)
from actors._outcome import Media, Outcome, flatten, value_text

NUDGES = {
    "continuation": "Your last turn was empty. Go on with the task, or say in words that you are done.",
    "wrap_up": "You have used all rounds of this run. Call no more tools: say what you found and what is left to do.",
}
_LOOKS_LIKE_A_HEADER = re.compile(r"(^|[\n\r\v\f\x85\u2028\u2029])(?=[ \t]*\[(?:mail\b|run stopped))", re.IGNORECASE)


def neutralised(text: str) -> str:
    """The text with every line that imitates one of our headers indented by one space."""
    return _LOOKS_LIKE_A_HEADER.sub(r"\1 ", text)


def seconds(duration: float) -> str:
    """A duration as people read it: `41 s`, `0.25 s`."""
    return f"{duration:.0f} s" if duration >= 10 else f"{duration:.2g} s"


def _origin(sender: Sender) -> str:
    match sender:
        case FromUser(owner=None):
            return "from user"
        case FromUser(owner=owner):
            return f"from user ({owner})"
        case FromSession(session=session, agent=None):
            return f"from session {session}"
        case FromSession(session=session, agent=agent):
            return f'from session {session} (agent "{agent}")'
        case FromActor(address=address):
            return f"from actor {address}"
        case FromToolCall(session=session, call=call):
            return f"from call {call} of {session}"
        case FromSystem(source=source):
            return f"from {source}"


def _ended(tool: str, outcome: Outcome) -> str:
    took = f" in {seconds(outcome.duration)}" if outcome.duration is not None else ""
    return f"({tool}) {outcome.status}{took}"


def body_text(body: object) -> str:
    """The words of a body, without its header and before any cut."""
    match body:
        case UserMessage(text=text) | AgentMessage(text=text) | TimerFired(text=text):
            return text
        case ToolCallFinished(outcome=outcome) | ContinuationResult(outcome=outcome):
            return outcome.text if outcome.status != "completed" else value_text(outcome.value)
        case WatchedEvent(data=data):
            return msgspec.json.encode(dict(data)).decode()
        case Control():
            return ""
        case _:
            return repr(body)


def body_media(body: object) -> tuple[Media, ...]:
    """The media that a body carries."""
    match body:
        case UserMessage(media=media):
            return media
        case ToolCallFinished(outcome=outcome) | ContinuationResult(outcome=outcome):
            return flatten(outcome.value).media
        case _:
            return ()


def _header(envelope: Envelope, *, already_read: bool) -> str:
    hints = ", interrupt" if envelope.priority is INTERRUPT else ""
    match envelope.body:
        case ToolCallFinished(call=call, tool=tool, outcome=outcome):
            if already_read:
                return f"[mail {envelope.id}: call {call} ({tool}) {outcome.status}, already read]"
            return f"[mail {envelope.id}: call {call} {_ended(tool, outcome)}]"
        case ContinuationResult(token=token, outcome=outcome):
            return f"[mail {envelope.id}: continuation {token} {outcome.status}]"
        case WatchedEvent(session=session):
            return f"[mail {envelope.id} from session {session}{hints}]"
        case TimerFired(label=label):
            return f"[mail {envelope.id} from timer {label}{hints}]"
        case AgentMessage(in_reply_to=in_reply_to, expects_reply=expects_reply):
            hints = (
                (", expects reply" if expects_reply else "") + (f", in reply to {in_reply_to}" if in_reply_to else "") + hints
            )
            return f"[mail {envelope.id} {_origin(envelope.sender)}{hints}]"
        case _:
            return f"[mail {envelope.id} {_origin(envelope.sender)}{hints}]"


def _words(envelope: Envelope, shown: int | None) -> str:
    text = body_text(envelope.body)
    if isinstance(envelope.body, WatchedEvent):
        text = f"{envelope.body.kind}: {text}"
    if shown is not None and len(text) > shown:
        text = f"{text[:shown]}\n[{len(text) - shown} more characters of {envelope.id} not shown]"
    media = envelope.body.media if isinstance(envelope.body, UserMessage) else ()
    return "\n".join([neutralised(text), *(f"[attached {part.mime}]" for part in media)])


def mail_block(envelope: Envelope, *, already_read: bool = False, shown: int | None = None) -> str:
    """One envelope as the model reads it: header and words; `""` for control that shows nothing.

    `shown` bounds the characters of its words; what is left out is counted.
    """
    if isinstance(envelope.body, Control):
        return "[run stopped]" if isinstance(envelope.body.action, StopRun) else ""
    header = _header(envelope, already_read=already_read)
    return header if already_read else f"{header}\n{_words(envelope, shown)}"


def user_text(
    mail: Sequence[Envelope],
    nudge: str | None,
    already_read: Sequence[str],
    waiting: int,
    cuts: Mapping[str, int],
) -> str:
    """All words of a user item: the loop's own nudge, then the mail, then how much more is waiting."""
    alone = len(mail) == 1 and nudge is None and not waiting
    if (
        alone
        and isinstance(mail[0].body, UserMessage)
        and isinstance(mail[0].sender, FromUser)
        and mail[0].id not in already_read
    ):
        return _words(mail[0], cuts.get(mail[0].id))
    blocks = [NUDGES[nudge]] if nudge else []
    blocks += [mail_block(envelope, already_read=envelope.id in already_read, shown=cuts.get(envelope.id)) for envelope in mail]
    if waiting:
        blocks.append(f"[{waiting} more message{'s' if waiting > 1 else ''} waiting]")
    return "\n\n".join(block for block in blocks if block)


def placeholder_text(call: str, tool: str, status: str, reason: str, session: str | None, *, can_wait: bool) -> str:
    """The one result of a call that has not finished: deterministic compact JSON, not an error."""
    told: dict[str, str] = {"status": status, "tool_call_id": call, "tool": tool}
    if status == "deferred":
        told["reason"] = reason
    else:
        told["detached"] = reason
    if session is not None:
        told["session"] = session
    advice = "use wait, or go on with other work" if can_wait else "go on with other work"
    told["message"] = f"Its result will arrive as mail. Do not poll: {advice}."
    return msgspec.json.encode(told).decode()
