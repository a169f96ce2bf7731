"""Running one tool call to its outcome. Whatever the tool does, an outcome comes out; only a cancellation comes through."""

import logging
from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime
from typing import Any

import trio

from actors._errors import ActorsError, leaves, sentence
from actors._outcome import Outcome
from actors._text import readable
from actors._verdict import as_text
from actors._waiters import guarded, unprotected_async
from actors.models._blocks import ToolCall

from ._context import ToolContext
from ._descent import with_its_processes
from ._loop import CancelledWithinError
from ._tool import Tool

LONGEST = 10_000  # characters of an error that a model reads: some carry a whole page
log = logging.getLogger("postroom.tools")


class _TooLongError(Exception):
    """The tool's own time limit is over."""


def in_thread(tool: Tool) -> bool:
    """Whether its calls run in a thread, which nobody can stop."""
    return tool.kind == "sync" and tool.isolation == "task"


def unknown(call: ToolCall, known: Collection[str]) -> Outcome:
    """The outcome of a call of a tool that is not there."""
    return Outcome.failed(f"there is no tool {call.tool!r}; the tools are {', '.join(sorted(known)) or 'none'}")


def unparsable(call: ToolCall) -> Outcome | None:
    """The outcome of a call whose arguments were no JSON object; None if they were one."""
    if call.unparsable is None:
        return None
    return Outcome.failed(f"the arguments of {call.tool} were no JSON object: {call.unparsable[:200]!r}")


async def execute(tool: Tool, owner: Any, call: ToolCall, context: ToolContext) -> Outcome:
    """Call the tool with strictly checked arguments. `owner` is the agent for its methods. `deferred` is no end: somebody will tell it.

    A sync tool runs in a worker thread; cancelled, the thread is abandoned and its result dropped. In a worker process it is
    killed. Processes that a tool started, in whatever way, are dead when a call that was cut off returns (`_descent`). What the tool
    raises is a failed outcome: a `ToolError`'s text alone, else with the type's name. Only what ends the program comes through,
    and a cancellation of the call.
    """
    refused = unparsable(call)
    if refused is not None:
        return refused
    started = datetime.now(UTC)
    began = trio.current_time()
    value, raised = await _caught(_limited, tool, owner, call, context)
    took = trio.current_time() - began
    if isinstance(value, Outcome):
        return Outcome("deferred", None, readable(str(value.error or "")), started, took)
    if raised is None:
        return Outcome("completed", value, None, started, took)
    if isinstance(raised, CancelledWithinError):
        return Outcome("cancelled", None, str(raised), started, took)
    if isinstance(raised, _TooLongError):
        return Outcome("timed_out", None, _too_long(tool), started, took)
    return Outcome("failed", None, _told(raised, call), started, took)


async def _caught(fn: Callable[..., Awaitable[Any]], /, *args: Any) -> tuple[Any, BaseException | None]:
    """What a tool returned, or raised: foreign code has exceptions of its own that are no `Exception`, asyncio's cancel say."""
    try:
        return await unprotected_async(fn, *args), None
    except BaseException as error:  # noqa: ASYNC103  # whatever holds a Cancelled goes on
        if any(isinstance(each, trio.Cancelled | KeyboardInterrupt | SystemExit) for each in leaves(error)):
            raise
        return None, error  # noqa: ASYNC104  # as above


async def _limited(tool: Tool, owner: Any, call: ToolCall, context: ToolContext) -> Any:
    """The tool, within its time. The limit is inside of what catches: cut off, a tool may still raise an error of its own."""
    if tool.timeout is None:
        return await with_its_processes(tool.call, owner, call.arguments, context)
    with trio.move_on_after(tool.timeout):
        return await with_its_processes(tool.call, owner, call.arguments, context)
    raise _TooLongError


def _too_long(tool: Tool) -> str:
    told = f"it was not done after {tool.timeout:g} s"
    return f"{told}; its thread cannot be stopped and may go on" if in_thread(tool) else told


def _told(error: BaseException, call: ToolCall) -> str:
    """What the model reads: of a group, each of the errors in it."""
    if isinstance(error, ActorsError):
        return readable(str(error))
    log.info("tool %s (%s) raised\n%s", call.tool, call.id, as_text(error), extra={"call": call.id, "tool": call.tool})
    told = readable("; ".join(map(_sentence, leaves(error))))
    return told if len(told) <= LONGEST else f"{told[:LONGEST]}... ({len(told) - LONGEST} more characters)"


def _sentence(error: BaseException) -> str:
    told, _ = guarded(sentence, error)
    return f"{type(error).__name__}, whose text cannot be read" if told is None else told.removesuffix(": ")
