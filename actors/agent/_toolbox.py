"""The system tools an agent may have: what models are told of them, and the pure part of what they do.

`wait` and a status request that waits are conditions of the turn (`_wait.py`): they peek at its mail and consume nothing. A
timeout is a result, not an error; an unknown id is an error at once, and so is the id of a system tool's own call in progress:
nothing can be waited for, or cancelled, there.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import trio
from attrs import define, field, frozen

from actors._outcome import Outcome
from actors.models._api import ToolSchema

from ._actions import OpenCall
from ._news import EVENTS, TOOL_EVENTS
from ._record import CallRecord, Commit, State, TimerRow, WatchRow
from ._settle import Began
from ._timers import timer
from ._wait import WaitFor, WokenBy

MOST_TIMERS = 64  # set at once in a session
LONGEST = 366 * 24 * 3600  # seconds


@define
class Effects:
    """What a system tool changes beside its outcome; kept in one commit with it."""

    cancel: tuple[str, str] | None = None  # a call, and why
    timers: list[tuple[TimerRow, float]] = field(factory=list)  # and in how many seconds each fires
    timers_gone: list[str] = field(factory=list)
    watches: list[WatchRow] = field(factory=list)
    watches_gone: list[str] = field(factory=list)

    def commit(self, calls: Sequence[CallRecord], fetched: Sequence[str]) -> Commit:
        """All this, with the calls that end with it."""
        return Commit(
            calls=tuple(calls), fetched=tuple(fetched), timers=tuple(row for row, _ in self.timers), timers_gone=tuple(self.timers_gone),
            watches=tuple(self.watches), watches_gone=tuple(self.watches_gone),
        )  # fmt: skip


NO_EFFECTS = Effects()


@frozen
class Desk:
    """What the system tools look at."""

    state: State
    open: Mapping[str, OpenCall]
    progress: Mapping[str, deque[Any]]
    began: Mapping[str, Began]
    unread_ends: Callable[[], bool]
    effects: Effects
    max_wait: float
    call: str = ""  # the one being served


class Surroundings(Protocol):
    """Who is there beside the session."""

    async def out_of_reach(self, session: str) -> str | None:
        """Why a model of this session may not reach for that one, in words for it; None if it may."""
        ...


@frozen
class Reach:
    """What a tool does if its session may reach for that one."""

    session: str
    then: Callable[[], Outcome]


@frozen
class SystemTool:
    """One of them: its schema, the types of its arguments, and what it does when it is called."""

    schema: ToolSchema
    types: Mapping[str, tuple[type, ...]]
    required: tuple[str, ...]
    run: Callable[[Desk, Mapping[str, Any]], "Outcome | WaitFor | Reach"]

    async def serve(self, desk: Desk, arguments: Mapping[str, Any], around: Surroundings) -> "Outcome | WaitFor":
        """Its outcome, or what it waits for. Bad arguments are a failed outcome that says what is wrong."""
        done = self.call(desk, arguments)
        if isinstance(done, Reach):
            refusal = await around.out_of_reach(done.session)
            return done.then() if refusal is None else Outcome.failed(refusal)
        return done

    def call(self, desk: Desk, arguments: Mapping[str, Any]) -> "Outcome | WaitFor | Reach":
        """As `serve`, as far as it goes without looking around."""
        wrong = [f"unknown argument `{name}`" for name in arguments if name not in self.types]
        wrong += [f"missing `{name}`" for name in self.required if name not in arguments]
        wrong += [
            f"`{name}`: got {type(value).__name__}" for name, value in arguments.items()
            if name in self.types and (not isinstance(value, self.types[name]) or (isinstance(value, bool) and bool not in self.types[name]))
        ]  # fmt: skip
        return Outcome.failed("; ".join(wrong)) if wrong else self.run(desk, arguments)


def running(state: State) -> list[CallRecord]:
    """The calls of tools that have no outcome yet, oldest first."""
    return [row for row in state.live.values() if row.tool not in TOOLBOX]


def _strange(call: object, state: State) -> Outcome | None:
    """What is wrong with naming this call; None if nothing is."""
    row = state.calls.get(call) if isinstance(call, str) else None
    if row is None:
        known = ", ".join(row.id for row in running(state)) or "none is running"
        return Outcome.failed(f"there is no call {call!r} in this session; running: {known}")
    if row.tool in TOOLBOX and not row.final:
        return Outcome.failed(f"{call} is this turn's own call of {row.tool}; name a call of another tool")
    return None


def _seconds(wanted: float, most: float) -> float:
    """A time to wait, clamped to what is allowed; what is no number is 0. A model may write more digits than a float has."""
    most = min(most, LONGEST)
    return most if wanted >= most else float(wanted) if wanted > 0 else 0.0


def _view(row: CallRecord, desk: Desk) -> str:
    """The toolbox's view of a call: queued, running, detached, deferred, or its outcome."""
    if row.over:
        return row.status
    place = desk.open.get(row.id)
    if place is None or place.detached is not None:
        return "detached"
    return place.state


# ------------------------------------------------------------------ wait
def _wait(desk: Desk, arguments: Mapping[str, Any]) -> Outcome | WaitFor:
    what = arguments.get("for", "any_call")
    now = trio.current_time()
    until = now + _seconds(arguments.get("timeout_seconds", 30), desk.max_wait)
    if what == "mail":
        return WaitFor("mail", now, until)
    if what == "any_call":
        ran = tuple(row.id for row in running(desk.state))
        if ran or desk.unread_ends():
            return WaitFor("any_call", now, until, ran=ran)
        late = ", ".join(desk.state.deferred)
        hint = f"; the answer to {late} will be mail, whenever it comes: wait for it by its id, or go on" if late else ""
        return Outcome.failed(f"no call is running, so there is nothing to wait for{hint}")
    named = what if isinstance(what, list) else [what]
    if not named:
        return Outcome.failed("`for` is an empty list; name a call, any_call or mail")
    strange = next((wrong for wrong in (_strange(call, desk.state) for call in named) if wrong is not None), None)
    return strange or WaitFor(tuple(dict.fromkeys(named)), now, until)


def waited(wait: WaitFor, by: WokenBy, desk: Desk, now: float) -> Outcome:
    """The outcome of a wait that is over."""
    if wait.status_of is not None:
        return status(desk, wait.status_of, progress=wait.progress)
    told = {"woken_by": by.what, "tool_call_ids": list(by.calls), "waited_seconds": round(now - wait.since, 3)}
    return Outcome("completed", told, None, None, now - wait.since)


# ------------------------------------------------------------------ calls
def status(desk: Desk, call: str, *, progress: bool) -> Outcome:
    """What is known of a call, as the status tool tells it."""
    row = desk.state.calls[call]
    outcome = row.outcome
    began = outcome.started if outcome is not None else _began(desk, call)
    ended_at = None
    if outcome is not None and began is not None and outcome.duration is not None:
        ended_at = datetime.fromtimestamp(began.timestamp() + outcome.duration, began.tzinfo).isoformat()
    told: dict[str, Any] = {
        "tool_call_id": row.id, "tool": row.tool, "status": _view(row, desk), "is_final": row.final,
        "started_at": began.isoformat() if began is not None else None, "completed_at": ended_at,
        "result": outcome.text if outcome is not None else None,
    }  # fmt: skip
    if progress:
        told["progress"] = list(reversed(desk.progress.get(call, ())))
    return Outcome.completed(told)


def _began(desk: Desk, call: str) -> datetime | None:
    began = desk.began.get(call)
    return None if began is None else began.at


def shown_by(row: CallRecord) -> tuple[str, ...]:
    """The call whose final outcome this status request has shown."""
    value = row.outcome.value if row.outcome is not None else None
    if row.tool == "get_tool_call_status" and isinstance(value, dict) and value.get("is_final"):
        return (str(value["tool_call_id"]),)
    return ()


def _status(desk: Desk, arguments: Mapping[str, Any]) -> Outcome | WaitFor:
    call = arguments["tool_call_id"]
    strange = _strange(call, desk.state)
    if strange is not None:
        return strange
    progress = arguments.get("include_progress", True)
    if arguments.get("wait_for_completion", False) and not desk.state.calls[call].final:
        now = trio.current_time()
        until = now + _seconds(arguments.get("timeout_seconds", 5), desk.max_wait)
        return WaitFor((call,), now, until, status_of=call, progress=progress)
    return status(desk, call, progress=progress)


def _list(desk: Desk, _arguments: Mapping[str, Any]) -> Outcome:
    return Outcome.completed({"running": [_line(row, desk) for row in (*running(desk.state), *desk.state.deferred.values())]})


def _line(row: CallRecord, desk: Desk) -> dict[str, Any]:
    began = _began(desk, row.id)
    at = began.isoformat() if began is not None else None
    return {"tool_call_id": row.id, "tool": row.tool, "status": _view(row, desk), "started_at": at}


def _cancel(desk: Desk, arguments: Mapping[str, Any]) -> Outcome:
    call = arguments["tool_call_id"]
    strange = _strange(call, desk.state)
    if strange is not None:
        return strange
    row = desk.state.calls[call]
    before = _view(row, desk)
    if not row.final:
        desk.effects.cancel = (call, arguments.get("reason") or "cancelled by the agent")
    return Outcome.completed({"cancelled": not row.final, "previous_status": before})


# ------------------------------------------------------------------ timers
def _set_timer(desk: Desk, arguments: Mapping[str, Any]) -> Outcome:
    seconds = arguments["after_seconds"]
    if not 0 <= seconds <= LONGEST:
        return Outcome.failed(f"`after_seconds`: got {seconds}; give a number from 0 to {LONGEST}")
    if len(desk.state.timers) >= MOST_TIMERS:
        running = ", ".join(desk.state.timers)
        return Outcome.failed(f"{MOST_TIMERS} timers are set, as many as may be: {running}; cancel one first")
    id = f"timer-{desk.call.removeprefix('call_')}"  # the same when the call is repeated
    desk.effects.timers.append((timer(id, seconds, arguments["text"], arguments.get("label"), desk.state.hops), seconds))
    return Outcome.completed({"timer_id": id})


def _cancel_timer(desk: Desk, arguments: Mapping[str, Any]) -> Outcome:
    id = arguments["timer_id"]
    known = id in desk.state.timers
    if known:
        desk.effects.timers_gone.append(id)
    return Outcome.completed({"cancelled": known})


# ------------------------------------------------------------------ watches
def _watch_session(desk: Desk, arguments: Mapping[str, Any]) -> Outcome | Reach:
    session, seconds, pattern = arguments["session"], arguments.get("ttl_seconds", 600), arguments.get("tool")
    events = arguments.get("events", list(EVENTS if pattern is None else TOOL_EVENTS))
    strange = [event for event in events if event not in EVENTS]
    if strange or not events:
        return Outcome.failed(f"`events`: got {strange or events}; one can watch {', '.join(EVENTS)}")
    if not 0 < seconds <= LONGEST:
        return Outcome.failed(f"`ttl_seconds`: got {seconds}; give a number above 0, up to {LONGEST}")
    if session == desk.state.id:
        return Outcome.failed(f"{session} is your own session; watch another one")
    now = datetime.now(UTC)
    over = [id for id, row in desk.state.watches.items() if row.until <= now]
    most: int = desk.state.limits.max_watches  # type: ignore[assignment]  # all limits are set
    if len(desk.state.watches) - len(over) >= most:
        running = ", ".join(id for id in desk.state.watches if id not in over)
        return Outcome.failed(
            f"{most} watches are set, as many as may be: {running or 'none'}; end one with unwatch_session first"
        )
    id = f"watch-{desk.call.removeprefix('call_')}"  # the same when the call is repeated

    def begin() -> Outcome:
        desk.effects.watches_gone += over
        until = datetime.now(UTC) + timedelta(seconds=seconds)
        desk.effects.watches.append(WatchRow(id, session, until, tuple(dict.fromkeys(events)), pattern))
        return Outcome.completed({"watch_id": id})

    return Reach(session, begin)


def _unwatch_session(desk: Desk, arguments: Mapping[str, Any]) -> Outcome:
    id = arguments["watch_id"]
    row = desk.state.watches.get(id)
    if row is not None:
        desk.effects.watches_gone.append(id)
    return Outcome.completed({"stopped": row is not None and row.until > datetime.now(UTC)})


def _schema(name: str, description: str, properties: dict[str, Any], required: tuple[str, ...] = ()) -> ToolSchema:
    parameters = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return ToolSchema(name, description, parameters)


_CALL = {"type": "string", "description": "The id of a tool call, such as call_3f."}
_SECONDS = {"type": "number", "description": "How long to wait at most."}

TOOLBOX: Mapping[str, SystemTool] = {
    "wait": SystemTool(
        _schema(
            "wait",
            "Wait until a running call finishes or a message arrives. It says what woke it; the message or result itself is shown after it.",
            {
                "for": {
                    "anyOf": [{"type": "string", "enum": ["any_call", "mail"]}, {"type": "array", "items": {"type": "string"}}],
                    "description": "any_call, mail, or a list of call ids. A message ends every wait.",
                },
                "timeout_seconds": {**_SECONDS, "default": 30},
            },
        ),
        {"for": (str, list), "timeout_seconds": (int, float)}, (), _wait,
    ),
    "get_tool_call_status": SystemTool(
        _schema(
            "get_tool_call_status",
            "What is known of a tool call: its status, its progress (newest first), its result once it is final.",
            {
                "tool_call_id": _CALL,
                "include_progress": {"type": "boolean", "default": True},
                "wait_for_completion": {"type": "boolean", "default": False},
                "timeout_seconds": {**_SECONDS, "default": 5},
            },
            ("tool_call_id",),
        ),
        {"tool_call_id": (str,), "include_progress": (bool,), "wait_for_completion": (bool,), "timeout_seconds": (int, float)},
        ("tool_call_id",), _status,
    ),
    "list_running_tool_calls": SystemTool(
        _schema("list_running_tool_calls", "The tool calls that have not finished yet.", {}), {}, (), _list
    ),
    "cancel_tool_call": SystemTool(
        _schema(
            "cancel_tool_call",
            "Cancel a running tool call. Says whether it was still running, and what its status was.",
            {"tool_call_id": _CALL, "reason": {"type": "string"}},
            ("tool_call_id",),
        ),
        {"tool_call_id": (str,), "reason": (str,)}, ("tool_call_id",), _cancel,
    ),
    "set_timer": SystemTool(
        _schema(
            "set_timer",
            "Be told something later: after so many seconds the text arrives as a message, also if you are done by then.",
            {
                "after_seconds": {"type": "number"},
                "text": {"type": "string", "description": "What you want to be told."},
                "label": {"type": "string", "description": "What to call the timer."},
            },
            ("after_seconds", "text"),
        ),
        {"after_seconds": (int, float), "text": (str,), "label": (str,)}, ("after_seconds", "text"), _set_timer,
    ),
    "cancel_timer": SystemTool(
        _schema(
            "cancel_timer",
            "Cancel a timer that you set. Says whether it had not fired yet.",
            {"timer_id": {"type": "string"}}, ("timer_id",),
        ),
        {"timer_id": (str,)}, ("timer_id",), _cancel_timer,
    ),
    "watch_session": SystemTool(
        _schema(
            "watch_session",
            "Be told what happens in another session: each event arrives as a message, for as long as you say or until one of the two ends.",
            {
                "session": {"type": "string", "description": "The id of the session."},
                "events": {
                    "type": "array", "items": {"type": "string", "enum": list(EVENTS)},
                    "description": "Which events; all if absent, those of tools if `tool` is given.",
                },
                "tool": {"type": "string", "description": "Only events of tools whose name fits this pattern, such as run_*."},
                "ttl_seconds": {"type": "number", "default": 600},
            },
            ("session",),
        ),
        {"session": (str,), "events": (list,), "tool": (str,), "ttl_seconds": (int, float)}, ("session",), _watch_session,
    ),
    "unwatch_session": SystemTool(
        _schema(
            "unwatch_session",
            "End a watch. Says whether it was still going on.",
            {"watch_id": {"type": "string"}}, ("watch_id",),
        ),
        {"watch_id": (str,)}, ("watch_id",), _unwatch_session,
    ),
}  # fmt: skip
