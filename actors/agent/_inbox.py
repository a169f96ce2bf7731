"""A host's inbox: strings that a program has for its agent, fetched while a run goes on (`Inbox` says when).

Foreign code is called here: what it raises, and what it returns that is no list of strings, is logged and costs nothing else.
"""

import inspect
import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from actors._text import readable
from actors._waiters import guarded

log = logging.getLogger("postroom.agent")


class Inbox(Protocol):
    """Where a host keeps strings for an agent; any object with such a `reader` is one.

    Drained after a tool round, after an empty turn, after what would be the final answer (which adds a round), and so before a
    wrap-up; never before a run's first request, idle, paused, or while an answer of a given schema is asked for; only while the
    mailbox has room. What a drain returns is accepted as a person's mail before anything else can happen: stripped, blanks
    dropped, several joined by a blank line. It restarts the count of rounds at most `max_rounds` times a run.
    """

    def reader(self, agent: str, /) -> Callable[[], Sequence[str]]:
        """Called as a run of this agent begins: a function that returns the strings that are new since its last call, oldest first.

        What either raises is logged, and the run goes on.
        """
        ...


def check_inbox(agent: str, inbox: Any) -> Any:
    """The inbox, or None for none. `TypeError` if it has no reader that takes the name of the agent."""
    if inbox is None:
        return None
    reader = getattr(inbox, "reader", None)
    if not callable(reader):
        raise TypeError(f"{agent}: found inbox={inbox!r}; give an object with a method `reader(self, agent)`, or None")
    try:
        inspect.signature(reader).bind(agent)
    except TypeError:
        raise TypeError(
            f"{agent}: {type(inbox).__name__}.reader{inspect.signature(reader)} cannot be called with one argument; "
            "write `def reader(self, agent)`"
        ) from None
    except ValueError:  # a builtin that tells no signature
        pass
    return inbox


class Drain:
    """The reader of one run. What it gave is held until it was accepted: a store that fails loses nothing."""

    def __init__(self, inbox: Any, agent: str, before: "Drain | None" = None) -> None:
        self._agent = agent
        self.held: list[str] = [] if before is None else before.held
        self._fn, error = guarded(inbox.reader, agent)
        if error is None and not callable(self._fn):
            error = TypeError(f"it returned {self._fn!r}, which cannot be called")
        if error is not None:
            self._fn = None
            log.error("the inbox of %s gave no reader for this run: %r", agent, error, exc_info=error)

    def text(self) -> str:
        """What was not accepted yet, as one message; `""` if there is nothing."""
        if self._fn is not None:
            drained, error = guarded(self._fn)
            if error is not None:
                log.error("the inbox of %s could not be drained: %r", self._agent, error, exc_info=error)
            else:
                self.held += self._strings(drained)
        return "\n\n".join(self.held)

    def accepted(self) -> None:
        """It was: the next `text` is new."""
        self.held.clear()

    def _strings(self, drained: Any) -> list[str]:
        if isinstance(drained, str) or not isinstance(drained, Sequence):
            log.error("the inbox of %s returned %r; a drain returns a list of strings", self._agent, drained)
            return []
        elements, error = guarded(list, drained)
        if error is not None:
            log.error("the inbox of %s could not be drained: %r", self._agent, error, exc_info=error)
            return []
        for element in elements:
            if not isinstance(element, str):
                log.error("the inbox of %s returned %r among its strings; it is left out", self._agent, element)
        return [text for element in elements if isinstance(element, str) and (text := readable(element.strip()))]
