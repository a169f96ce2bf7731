"""Asking a session's models: the first that answers counts. R4: mail that cuts it short is seen at once.

Where there are several, one whose provider asked to be left alone is passed over, and waited for only if no other will do: all of them
were passed over, or what the others said is nothing that a later try would cure.

Nothing of an answer that was cut, or that its model took back by failing, counts: an `Interrupted` retracts what was shown of it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import trio
from attrs import evolve, fields, frozen

from actors import events
from actors._errors import ModelError
from actors._mailbox import Mailbox, Match
from actors._text import readable, readable_within
from actors._waiters import guarded_async
from actors.models._api import Model, Request
from actors.models._blocks import Block, Completion, Text, TextDelta, Thinking, ThinkingDelta, ToolCall
from actors.models._gate import LeftAlone, closed_for, hasty

_TOLD = {kind: tuple(each.name for each in fields(kind) if each.name != "id") for kind in (Text, Thinking, ToolCall)}


@frozen
class Answered:
    """A completion, and the name of the model that made it."""

    completion: Completion
    model: str


@frozen
class Unanswered:
    """Why no model answered: what one raised that may answer later, else the last; None if the asking was cut short.

    `streamed` counts the characters that were shown of answers that do not count.
    """

    error: Exception | None
    streamed: int = 0


def final(error: Exception) -> bool:
    """Whether the same request would fail again."""
    return isinstance(error, ModelError) and not error.retryable


class Asking:
    """The models of a session, in the order in which they are tried. `show` emits an event."""

    def __init__(self, models: Sequence[Model], box: Mailbox, show: Callable[..., None]) -> None:
        self._models = models
        self._hasty = [hasty(model) for model in models] if len(models) > 1 else models
        self._box = box
        self._show = show
        self._streamed = 0

    async def ask(self, request: Request, cursor: int, cuts: Match) -> Answered | Unanswered:
        """Ask until one answers, or until mail behind `cursor` that `cuts` holds for; it may be there already."""
        self._streamed = 0
        told: Exception | None = None
        passed: list[Model] = []  # over, because their providers asked to be left alone
        for model, hasty_one in zip(self._models, self._hasty, strict=True):
            answer = await self._one(hasty_one, request, cursor, cuts)
            if isinstance(answer, Answered) or answer.error is None:
                return answer
            if isinstance(answer.error, LeftAlone):
                passed.append(model)
            elif told is None or final(told):
                told = answer.error
        if passed and (told is None or final(told)):
            return await self._one(min(passed, key=closed_for), request, cursor, cuts)
        return Unanswered(told, self._streamed)

    async def _one(self, model: Model, request: Request, cursor: int, cuts: Match) -> Answered | Unanswered:
        if self._box.matching(cursor, cuts):
            self._show(events.Interrupted)
            return Unanswered(None, self._streamed)
        with trio.CancelScope() as scope:
            watch = self._box.watch_for(cursor, cuts, scope.cancel)
            try:
                completion, error = await guarded_async(self._stream, model, request)
            finally:
                self._box.forget(watch)
            if error is None:
                return Answered(completion, model.name)
        if scope.cancel_called:
            error = None
        if not isinstance(error, LeftAlone):
            self._show(events.Interrupted)
        return Unanswered(error, self._streamed)

    async def _stream(self, model: Model, request: Request) -> Completion:
        completion: Any = None
        async with model.stream(request) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    self._streamed += len(event.text)
                    self._show(events.TextDelta, text=readable(event.text))
                elif isinstance(event, ThinkingDelta):
                    self._streamed += len(event.text)
                    self._show(events.ThinkingDelta, text=readable(event.text))
                else:
                    completion = event
        if not isinstance(completion, Completion):
            raise ModelError(f"{model.name} ended its stream without a completion")
        return _legible(completion)


def _legible(completion: Completion) -> Completion:
    """The answer as stores and providers take it: some JSON readers let half a character through."""
    blocks = tuple(map(_legible_block, completion.blocks))
    same = all(made is block for made, block in zip(blocks, completion.blocks, strict=True))
    return completion if same else evolve(completion, blocks=blocks)


def _legible_block(block: Block) -> Block:
    told = {name: getattr(block, name) for name in _TOLD[type(block)]}
    changed = {name: made for name, value in told.items() if (made := readable_within(value)) is not value}
    return evolve(block, **changed) if changed else block
