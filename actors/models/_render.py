"""Mail as a model reads it, and the placeholder of an unfinished call.

One block per envelope, in arrival order, separated by a blank line. Headers are composed here, from stored
fields, each time an item is rendered; they are never stored as text and no sender can write one: a body line that
looks like a header is indented by one space. Rendering is a pure function of the item, so prompt prefixes stay
cached.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

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
    ended_call,
)
from actors._outcome import Media, Outcome, flatten, value_text

NUDGES = {
    "continuation": "Your last turn was empty. Go on with the task, or say in words that you are done.",
    "wrap_up": "You have used all rounds of this run. Call no more tools: say what you found and what is left to do.",
}
NO_TOOLS: Mapping[str, str] = MappingProxyType({})
# Where a reader sees a line begin: behind what breaks a line, and behind blanks and characters that show nothing.
_BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_UNSEEN = (
    r"\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
_BLANK = rf"[ \t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000{_UNSEEN}]*"
_LOOKS_LIKE_A_HEADER = re.compile(rf"(^|[{_BREAKS}])(?={_BLANK}\[{_BLANK}(?:mail\b|run stopped))", re.IGNORECASE)
_NOT_IN_A_HEADER = re.compile(rf"[{_BREAKS}{_UNSEEN}]+")
_BRACKETS = str.maketrans("[]", "()")


def neutralised(text: str) -> str:
    """The text with every line that imitates one of our headers indented by one space."""
    if "[" not in text:
        return text
    return _LOOKS_LIKE_A_HEADER.sub(r"\1 ", text)


def _one_line(text: str) -> str:
    """What stands in a header: on one line, without the brackets that would end it. Labels and names may be a model's."""
    return _NOT_IN_A_HEADER.sub(" ", text).translate(_BRACKETS)


def seconds(duration: float) -> str:
    """A duration as people read it: `41 s`, `0.25 s`."""
    if duration < 0.001:
        return "0 s"
    return f"{duration:.0f} s" if duration >= 10 else f"{duration:.2g} s"


def _origin(sender: Sender) -> str:
    match sender:
        case FromUser(owner=owner):
            return "from user" if owner is None else f"from user ({owner})"
        case FromSession(session=session, agent=agent):
            return f"from session {session}" if agent is None else f'from session {session} (agent "{agent}")'
        case FromActor(address=address):
            return f"from actor {address}"
        case FromToolCall(session=session, call=call):
            return f"from call {call} of {session}"
        case FromSystem(source=source):
            return f"from {source}"


def _ended(call: str, tool: str | None, outcome: Outcome, *, already_read: bool) -> str:
    name = call if tool is None else f"{call} ({tool})"
    if already_read:
        return f": call {name} {outcome.status}, already read"
    took = f" in {seconds(outcome.duration)}" if outcome.duration is not None else ""
    return f": call {name} {outcome.status}{took}"


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


def _header(envelope: Envelope, *, already_read: bool, tools: Mapping[str, str]) -> str:
    hints = ", interrupt" if envelope.priority is INTERRUPT else ""
    match envelope.body:
        case ToolCallFinished(call=call, tool=tool, outcome=outcome):
            about = _ended(call, tool, outcome, already_read=already_read)
        case ContinuationResult(outcome=outcome):
            called = ended_call(envelope) or "unknown"
            about = _ended(called, tools.get(called), outcome, already_read=already_read)
        case WatchedEvent(session=session):
            about = f" from session {session}{hints}"
        case TimerFired(label=label):
            about = f" from timer {label}{hints}"
        case AgentMessage(in_reply_to=in_reply_to, expects_reply=expects_reply):
            asked = (", expects reply" if expects_reply else "") + (f", in reply to {in_reply_to}" if in_reply_to else "")
            about = f" {_origin(envelope.sender)}{asked}{hints}"
        case _:
            about = f" {_origin(envelope.sender)}{hints}"
    return f"[mail {envelope.id}{_one_line(about)}]"


def _words(envelope: Envelope, shown: int | None) -> str:
    text = body_text(envelope.body)
    if isinstance(envelope.body, WatchedEvent):
        text = f"{envelope.body.kind}: {text}"
    if shown is not None and len(text) > shown:
        text = f"{text[:shown]}\n[{len(text) - shown} more characters of {envelope.id} not shown]"
    media = envelope.body.media if isinstance(envelope.body, UserMessage) else ()
    return neutralised("\n".join(part for part in (text, *(f"[attached {part.mime}]" for part in media)) if part))


def _shown(envelope: Envelope) -> bool:
    """Whether a model is told of it at all."""
    return not isinstance(envelope.body, Control) or isinstance(envelope.body.action, StopRun)


def mail_block(
    envelope: Envelope, *, already_read: bool = False, shown: int | None = None, tools: Mapping[str, str] = NO_TOOLS
) -> str:
    """One envelope as the model reads it: header and words; `""` for control that shows nothing.

    `shown` bounds the characters of its words; what is left out is counted. `tools` are those of calls that were deferred: their
    answer has a token, which is nobody's to read, and its sender is the call.
    """
    if isinstance(envelope.body, Control):
        return "[run stopped]" if _shown(envelope) else ""
    header = _header(envelope, already_read=already_read, tools=tools)
    words = "" if already_read else _words(envelope, shown)
    return f"{header}\n{words}" if words else header


def user_text(
    mail: Sequence[Envelope],
    nudge: str | None,
    already_read: Sequence[str],
    waiting: int,
    cuts: Mapping[str, int],
    tools: Mapping[str, str] = NO_TOOLS,
) -> str:
    """All words of a user item: the loop's own nudge, then the mail, then how much more is waiting."""
    mail = [envelope for envelope in mail if _shown(envelope)]
    alone = len(mail) == 1 and nudge is None and not waiting
    if (
        alone
        and isinstance(mail[0].body, UserMessage)
        and isinstance(mail[0].sender, FromUser)
        and mail[0].id not in already_read
    ):
        words = _words(mail[0], cuts.get(mail[0].id))
        if words.strip():  # providers refuse a blank turn; a header says that somebody said nothing
            return words
    blocks = [NUDGES[nudge]] if nudge else []
    blocks += [
        mail_block(envelope, already_read=envelope.id in already_read, shown=cuts.get(envelope.id), tools=tools)
        for envelope in mail
    ]
    if waiting:
        blocks.append(f"[{waiting} more message{'s' if waiting > 1 else ''} waiting]")
    return "\n\n".join(blocks)


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
