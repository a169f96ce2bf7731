"""`postroom run module:Agent "task"`: open a session, hold a conversation with it, say by the exit code how it ended."""

import logging
import sys
from collections.abc import Callable
from typing import Any

from actors import Agent
from actors.events import AnyEvent
from supervision._runner import run
from supervision._system import System

from ._conversation import Conversation
from ._json import event_json
from ._screen import Notes, Screen


def run_agent(
    agent: type[Agent], task: str, *, model: str | None, as_json: bool, tracebacks: bool, store: str | None = None
) -> int:
    """Run `agent` on `task` and show it; the exit code."""
    options: dict[str, Any] = {} if model is None else {"model": model}
    screen = Screen()
    show: Callable[[AnyEvent], None] = print_json if as_json else screen.show
    note = print_note if as_json else screen.note
    logging.getLogger().addHandler(Notes(note, tracebacks=tracebacks))

    async def hold(system: System) -> int:
        session = await system.open(agent, **options)
        try:
            return await Conversation(session, show, note).hold(task)
        except BaseExceptionGroup as group:
            raise lone(group) from None

    code = run(hold, store=store)
    screen.end_line()
    return code


def print_json(event: AnyEvent) -> None:
    """One event, one line, at once."""
    sys.stdout.write(f"{event_json(event)}\n")
    sys.stdout.flush()


def print_note(text: str) -> None:
    """What is no event does not go where events go."""
    sys.stderr.write(f"{text}\n")


def lone(error: BaseException) -> BaseException:
    """The one error in groups of one: a nursery wraps what a person can only use bare."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
