"""Running one tool call to its outcome. Whatever the tool does, an outcome comes out; only a cancellation comes through."""

import logging
from datetime import UTC, datetime
from typing import Any

import trio

from actors._errors import BadArguments, ToolError
from actors._outcome import Outcome
from actors._verdict import as_text
from actors._waiters import guarded_async
from actors.models._blocks import ToolCall

from ._context import ToolContext
from ._tool import Tool

log = logging.getLogger("postroom.tools")


def refusal(tool: Tool | None, call: ToolCall, known: list[str]) -> Outcome | None:
    """Why a call cannot be made at all: no such tool, or arguments that are no JSON object. None if it can."""
    if tool is None:
        return Outcome.failed(f"there is no tool {call.tool!r}; the tools are {', '.join(sorted(known)) or 'none'}")
    if call.unparsable is not None:
        return Outcome.failed(f"the arguments of {call.tool} were no JSON object: {call.unparsable[:200]!r}")
    return None


async def execute(tool: Tool, owner: Any, call: ToolCall, context: ToolContext) -> Outcome:
    """Call the tool with strictly checked arguments. `owner` is the agent for its methods.

    A sync tool runs in a worker thread; cancelled, the thread is abandoned and its result dropped. What the tool raises is a
    failed outcome: a `ToolError`'s text alone, else with the type's name.
    """
    started = datetime.now(UTC)
    began = trio.current_time()
    status, value, error = await _attempt(tool, owner, call, context)
    return Outcome(status, value, error, started, trio.current_time() - began)  # type: ignore[arg-type]


async def _attempt(tool: Tool, owner: Any, call: ToolCall, context: ToolContext) -> tuple[str, Any, str | None]:
    if tool.timeout is None:
        value, raised = await guarded_async(tool.call, owner, call.arguments, context)
    else:
        with trio.move_on_after(tool.timeout) as scope:
            value, raised = await guarded_async(tool.call, owner, call.arguments, context)
        if scope.cancelled_caught:
            return "timed_out", None, f"it was not done after {tool.timeout:g} s"
    if raised is None:
        return "completed", value, None
    return "failed", None, _told(raised, call)


def _told(error: Exception, call: ToolCall) -> str:
    if isinstance(error, BadArguments | ToolError):
        return str(error)
    log.info("tool %s (%s) raised\n%s", call.tool, call.id, as_text(error), extra={"call": call.id, "tool": call.tool})
    return f"{type(error).__name__}: {error}"
