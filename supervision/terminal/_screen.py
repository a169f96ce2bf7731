"""A run as a person watches it: the answer streams, everything else is a line of its own."""

import logging
from collections.abc import Callable
from contextlib import suppress

from attrs import define, field
from rich.console import Console
from rich.text import Text

from actors.events import Answer, AnyEvent, Interrupted, TextDelta, ToolStarted, TurnStarted

from ._lines import line


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to whoever runs us to end in order."""
        raise BrokenPipeError


@define(eq=False)
class Screen:
    """Draws events in the order they come."""

    console: Console = field(factory=lambda: _Console(highlight=False, soft_wrap=True))
    _tools: dict[str, str] = field(factory=dict, init=False)
    _within: bool = field(default=False, init=False)  # the last thing printed has not ended its line
    _streamed: bool = field(default=False, init=False)  # this turn's words were shown as they came

    def show(self, event: AnyEvent) -> None:
        """Show one event."""
        match event:
            case TurnStarted():
                self._streamed = False
            case TextDelta(text=text):
                self._stream(text)
            case Answer(text=text) if not self._streamed:
                self._stream(text)
            case ToolStarted(call=str(call), tool=tool):
                self._tools[call] = tool
            case Interrupted() if not self._streamed:
                return  # nothing of it was shown
            case _:
                pass
        told = line(event, self._tools.get(event.call or "", "call"))
        if told is not None:
            self.line(told)

    def _stream(self, text: str) -> None:
        self._streamed = True
        self.console.print(text, end="", markup=False)
        self._within = not text.endswith("\n")

    def line(self, text: Text | str = "") -> None:
        """Show a line of its own."""
        self.end_line()
        self.console.print(text, markup=False)

    def note(self, text: str) -> None:
        """Show a word of our own."""
        self.line(Text(text, "bold yellow"))

    def end_line(self) -> None:
        """Go to the beginning of a line."""
        if self._within:
            self.console.print()
        self._within = False


class Notes(logging.Handler):
    """Log records as notes: what crashed and what happens next, in a line; the traceback below it only for who asks."""

    def __init__(self, note: Callable[[str], None], *, tracebacks: bool) -> None:
        super().__init__(logging.WARNING)
        self._note = note
        self._tracebacks = tracebacks

    def emit(self, record: logging.LogRecord) -> None:
        """Show one."""
        told = record.getMessage()
        with suppress(BrokenPipeError):  # nobody reads any more: what is drawn next ends the run, a record ends nothing
            self._note(told if self._tracebacks else told.partition("\n")[0])
