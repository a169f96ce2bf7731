"""The system tools: what models are told of them, and what they make of what models send."""

from collections import deque
from datetime import UTC, datetime
from typing import Any

import pytest
import trio
from scenes import virtual_time

from actors import CallRecord, Outcome
from actors.agent._actions import OpenCall
from actors.agent._record import State
from actors.agent._settle import Began
from actors.agent._toolbox import TOOLBOX, Desk, Effects, waited
from actors.agent._wait import WaitFor, WokenBy

pytestmark = virtual_time

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
DONE = Outcome("completed", "seen", None, BEGAN, 90.0)


def desk(effects: Effects | None = None) -> Desk:
    """A session with four calls: one detached, one attached, one queued, one done; and the `wait` that is looked at."""
    rows = [
        CallRecord("call_1", "look", {}, "started"),
        CallRecord("call_2", "look", {}, "started"),
        CallRecord("call_3", "look", {}, "issued"),
        CallRecord("call_4", "look", {}, "completed", DONE),
        CallRecord("call_5", "wait", {}, "started"),
    ]
    state = State("s", "Worker", calls={row.id: row for row in rows}, live={row.id: row for row in rows if not row.final})
    places = [OpenCall("call_2", "look", None, 0, state="running"), OpenCall("call_3", "look", None, 0)]
    return Desk(
        state, {place.id: place for place in places}, {"call_1": deque(["first", "last"])}, {"call_1": Began(BEGAN, 0.0)},
        lambda: False, effects or Effects(), 300.0,
    )  # fmt: skip


def said(tool: str, **arguments: Any) -> Any:
    """What a tool tells a model."""
    done = TOOLBOX[tool].call(desk(), arguments)
    assert isinstance(done, Outcome)
    return done.value if done.status == "completed" else done.error


# ------------------------------------------------------------------ schemas
@pytest.mark.parametrize("name", TOOLBOX)
def test_a_schema_is_closed_and_names_what_is_required(name: str) -> None:
    """Providers in strict mode want both."""
    schema = TOOLBOX[name].schema
    assert schema.name == name
    assert schema.description
    parameters = schema.parameters
    assert (parameters["type"], parameters["additionalProperties"]) == ("object", False)
    assert set(parameters["properties"]) == set(TOOLBOX[name].types)
    assert tuple(parameters["required"]) == TOOLBOX[name].required


def test_the_system_tools_of_this_version() -> None:
    """Those of calls; mail between agents comes with its own."""
    assert list(TOOLBOX) == [
        "wait", "get_tool_call_status", "list_running_tool_calls", "cancel_tool_call", "set_timer", "cancel_timer",
        "watch_session", "unwatch_session",
    ]  # fmt: skip
    assert TOOLBOX["wait"].schema.parameters["properties"]["timeout_seconds"]["default"] == 30
    assert TOOLBOX["get_tool_call_status"].schema.parameters["properties"]["timeout_seconds"]["default"] == 5


# ------------------------------------------------------------------ arguments
@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("wait", {"for": 7}, "`for`: got int"),
        ("wait", {"timeout_seconds": "5"}, "`timeout_seconds`: got str"),
        ("wait", {"timeout_seconds": True}, "`timeout_seconds`: got bool"),
        ("wait", {"what": "mail"}, "unknown argument `what`"),
        ("get_tool_call_status", {}, "missing `tool_call_id`"),
        ("get_tool_call_status", {"tool_call_id": 1}, "`tool_call_id`: got int"),
        ("get_tool_call_status", {"tool_call_id": "call_1", "include_progress": "no"}, "`include_progress`: got str"),
        ("cancel_tool_call", {"tool_call_id": "call_1", "reason": None}, "`reason`: got NoneType"),
        ("cancel_tool_call", {"id": "call_1"}, "unknown argument `id`; missing `tool_call_id`"),
        ("list_running_tool_calls", {"all": True}, "unknown argument `all`"),
    ],
)
def test_arguments_that_do_not_fit_are_told_all_at_once(tool: str, arguments: dict[str, Any], told: str) -> None:
    """Nothing is coerced, nothing is dropped."""
    assert said(tool, **arguments) == told


# ------------------------------------------------------------------ looking
@pytest.mark.parametrize(
    ("call", "status", "result", "began", "ended"),
    [
        ("call_1", "detached", None, "2026-01-01T00:00:00+00:00", None),
        ("call_2", "running", None, None, None),
        ("call_3", "queued", None, None, None),
        ("call_4", "completed", "seen", "2026-01-01T00:00:00+00:00", "2026-01-01T00:01:30+00:00"),
    ],
)
def test_a_status_is_told_with_its_times(call: str, status: str, result: Any, began: str | None, ended: str | None) -> None:
    """Queued, running, detached, or what became of it."""
    told = said("get_tool_call_status", tool_call_id=call)
    assert told == {
        "tool_call_id": call, "tool": "look", "status": status, "is_final": call == "call_4", "started_at": began,
        "completed_at": ended, "result": result, "progress": ["last", "first"] if call == "call_1" else [],
    }  # fmt: skip


def test_the_list_is_of_what_runs_oldest_first() -> None:
    """System tools are not on it."""
    assert [row["tool_call_id"] for row in said("list_running_tool_calls")["running"]] == ["call_1", "call_2", "call_3"]


@pytest.mark.parametrize(
    ("call", "before", "cancelled"), [("call_1", "detached", True), ("call_3", "queued", True), ("call_4", "completed", False)]
)
def test_a_cancel_tells_what_it_hit(call: str, before: str, *, cancelled: bool) -> None:
    """What has ended is left alone."""
    effects = Effects()
    done = TOOLBOX["cancel_tool_call"].call(desk(effects), {"tool_call_id": call, "reason": "too slow"})
    assert isinstance(done, Outcome)
    assert done.value == {"cancelled": cancelled, "previous_status": before}
    assert effects.cancel == ((call, "too slow") if cancelled else None)


@pytest.mark.parametrize("tool", ["get_tool_call_status", "cancel_tool_call"])
@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("call_9", "there is no call 'call_9' in this session; running: call_1, call_2, call_3"),
        ("call_5", "call_5 is this turn's own"),
    ],
)
def test_an_id_that_cannot_be_meant_is_an_error_at_once(tool: str, call: str, told: str) -> None:
    """With those that can."""
    assert said(tool, tool_call_id=call).startswith(told)


# ------------------------------------------------------------------ waiting
async def test_a_wait_is_a_condition_with_a_deadline() -> None:
    """The turn says when it is over."""
    now = trio.current_time()
    for arguments, what, seconds in (
        ({}, "any_call", 30),
        ({"for": "mail", "timeout_seconds": 7}, "mail", 7),
        ({"for": ["call_1", "call_2", "call_1"], "timeout_seconds": 10**9}, ("call_1", "call_2"), 300),
    ):
        ran = ("call_1", "call_2", "call_3") if what == "any_call" else ()
        assert TOOLBOX["wait"].call(desk(), arguments) == WaitFor(what, now, now + seconds, ran=ran)  # type: ignore[arg-type]


def test_what_a_wait_waited_for_is_told() -> None:
    """What woke it, which calls, how long it took."""
    outcome = waited(WaitFor("any_call", 1.0, 31.0), WokenBy("call", ("call_1",)), desk(), 3.25)
    assert outcome.value == {"woken_by": "call", "tool_call_ids": ["call_1"], "waited_seconds": 2.25}


def test_a_status_request_that_waited_tells_the_status() -> None:
    """Whatever ended it."""
    outcome = waited(WaitFor(("call_1",), 1.0, 6.0, status_of="call_1", progress=False), WokenBy("timeout"), desk(), 6.0)
    assert (outcome.value["status"], "progress" in outcome.value) == ("detached", False)
