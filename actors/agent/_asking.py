"""Asking a session's models: the first that answers counts, and a `StopRun` ends the asking.

Nothing of an answer that was cut, or that its model took back by failing, counts: an `Interrupted` retracts what was shown of it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import trio
from attrs import frozen

from actors import events
from actors._errors import ModelError
from actors._mailbox import Mailbox, Match
from actors._waiters import guarded_async
from actors.models._api import Model, Request
from actors.models._blocks import Completion, TextDelta, ThinkingDelta


@frozen
class Answered:
    """A completion, and the name of the model that made it."""

    completion: Completion
    model: str


@frozen
class Unanswered:
    """Why no model answered: what the last one raised, or None if the run was stopped while they were asked."""

    error: Exception | None


class Asking:
    """The models of a session, in the order in which they are tried. `show` emits an event."""

    def __init__(self, models: Sequence[Model], box: Mailbox, show: Callable[..., None]) -> None:
        self._models = models
        self._box = box
        self._show = show

    async def ask(self, request: Request, cursor: int, stops: Match) -> Answered | Unanswered:
        """Ask until one answers, or until mail behind `cursor` that `stops` holds for; it may be there already."""
        error: Exception | None = None
        for model in self._models:
            if self._box.matching(cursor, stops):
                return Unanswered(None)
            with trio.CancelScope() as scope:
                watch = self._box.watch_for(cursor, stops, scope.cancel)
                try:
                    completion, error = await guarded_async(self._stream, model, request)
                finally:
                    self._box.forget(watch)
                if error is None:
                    return Answered(completion, model.name)
            self._show(events.Interrupted)
            if scope.cancel_called:
                return Unanswered(None)
        return Unanswered(error)

    async def _stream(self, model: Model, request: Request) -> Completion:
        completion: Any = None
        async with model.stream(request) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    self._show(events.TextDelta, text=event.text)
                elif isinstance(event, ThinkingDelta):
                    self._show(events.ThinkingDelta, text=event.text)
                else:
                    completion = event
        if not isinstance(completion, Completion):
            raise ModelError(f"{model.name} ended its stream without a completion")
        return completion
