"""How far calls are, as they say themselves.

    kept    the last 50 notes of each call, until its outcome is told
    shown   the first at once; after that the newest at most every 100 ms, what was noted in between is only kept; a last one
            before the call's end

So a tool may note every byte it moves: readers of events get ten a second, and the last word.
"""

from collections import deque
from collections.abc import Callable, Container
from typing import Any

import trio
from attrs import define, field

from actors._deadlines import Deadlines, Entry

KEPT = 50  # notes per call
EVERY = 0.1  # seconds between two that are shown


@define(eq=False)
class _Pace:
    """What was shown of one call, and what waits to be."""

    deadlines: Deadlines
    shown_at: float
    held: list[Any] = field(factory=list)
    timer: Entry | None = None


@define(eq=False)
class Progress:
    """The notes of a session's calls. `show(call, payload)` emits an event."""

    show: Callable[[str, Any], None]
    notes: dict[str, deque[Any]] = field(factory=dict)
    _paces: dict[str, _Pace] = field(factory=dict)

    def keep(self, call: str, payload: Any) -> None:
        """Keep a note. From any thread."""
        self.notes.setdefault(call, deque(maxlen=KEPT)).append(payload)

    def tell(self, call: str, payload: Any, deadlines: Deadlines) -> None:
        """Show a note now, or when it is time."""
        now = trio.current_time()
        pace = self._paces.get(call)
        if pace is None:
            self._paces[call] = _Pace(deadlines, now)
            self.show(call, payload)
        elif pace.timer is None and now - pace.shown_at >= EVERY:
            pace.shown_at = now
            self.show(call, payload)
        else:
            pace.held = [payload]
            if pace.timer is None:
                pace.timer = deadlines.add(pace.shown_at + EVERY, lambda: self._due(call, pace))

    def _due(self, call: str, pace: _Pace) -> None:
        pace.timer = None
        pace.shown_at = trio.current_time()
        held, pace.held = pace.held, []
        for payload in held:
            self.show(call, payload)

    def ended(self, call: str) -> None:
        """Show what was held back of a call that ends."""
        pace = self._paces.pop(call, None)
        if pace is None:
            return
        if pace.timer is not None:
            pace.deadlines.drop(pace.timer)
        for payload in pace.held:
            self.show(call, payload)

    def forget(self, *kept: Container[str]) -> None:
        """Drop the notes of calls that are in none of these."""
        for call in tuple(self.notes):  # a copy: threads note their progress meanwhile
            if not any(call in each for each in kept):
                del self.notes[call]
