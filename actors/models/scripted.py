"""A model that plays a script: for tests, demos and benchmarks, offline, deterministic, in microseconds.

    model = ScriptedModel([call("read_log", name="prod"), say("Two warnings, no errors.")])

Each request takes the next entry of the script, whichever session asks; a request that is cancelled has taken its entry.
Like a provider, it refuses a transcript that breaks the rules, and a script that is over is an error, never silence.
When not to use it: it says nothing about what a real model does with a prompt.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any

import trio
from attrs import define, evolve, field, frozen

from actors._errors import ConfigError, ModelError

from ._api import Capabilities, Request
from ._blocks import Block, Completion, ModelEvent, Text, TextDelta, ToolCall, Usage
from ._cache import IdentityCache
from ._items import AssistantItem, Item, UserItem
from ._transcript import Validator

_PIECES = 4  # deltas of one text
_NO_USAGE = Usage()


@frozen
class Said:
    """One entry of a script; `say`, `call`, `raw_call`, `calls`, `slow` and `fail` make it."""

    blocks: tuple[Block, ...] = ()
    seconds: float = 0.0
    error: Exception | None = None
    decide: Callable[[Request], "Said"] | None = None


Scripted = Said | Callable[[Request], Said]


def say(text: str) -> Said:
    """An answer in words. Without tool calls beside it, it ends the turn."""
    return Said((Text(text),))


def call(tool: str, /, **arguments: Any) -> Said:
    """An answer that calls one tool."""
    return Said((ToolCall("", tool, arguments),))


def raw_call(tool: str, arguments: str) -> Said:
    """An answer that calls one tool with arguments as text, for those that are no JSON object, as happens with models."""
    return Said((ToolCall.from_text(tool, arguments),))


def calls(*calls: Said) -> Said:
    """One answer made of several: tool calls in this order; a `say` among them puts words beside them.

    Raises:
        ConfigError: One of them is late, fails or is a function: half an answer cannot.
    """
    for number, said in enumerate(calls, 1):
        if said.error is not None or said.seconds or said.decide is not None:
            raise ConfigError(f"calls() joins say(), call() and raw_call() into one answer; argument {number} is {said!r}")
    return Said(tuple(block for said in calls for block in said.blocks))


def slow(seconds: float, item: Scripted) -> Said:
    """The same answer, after so many seconds. Cancellable; virtual under an autojump clock."""
    if isinstance(item, Said):
        return evolve(item, seconds=item.seconds + seconds)
    return Said(seconds=seconds, decide=item)


def fail(error: Exception) -> Said:
    """No answer: the request raises `error`."""
    return Said(error=error)


class ScriptedModel:
    """Plays its script, one entry a request. `requests` holds every request made, refused ones included.

    Raises:
        ConfigError: An entry is no answer; a plain text wants `say(...)` around it.
    """

    requests: list[Request]

    def __init__(self, script: Sequence[Scripted]) -> None:
        for index, entry in enumerate(script):
            if not isinstance(entry, Said) and not callable(entry):
                raise ConfigError(
                    f"entry {index} of the script is {entry!r}; write say(...), call(...) or a function of the request"
                )
        self.requests = []
        self._script = tuple(script)
        self._played = 0
        self._calls = 0
        # One validator per conversation, told apart by its first item and forgotten with it.
        self._validators: IdentityCache[Item, Validator] = IdentityCache(lambda _: Validator())

    def __repr__(self) -> str:
        return f"<ScriptedModel: {self._played} of {len(self._script)} entries played>"

    @property
    def name(self) -> str:
        """`scripted`."""
        return "scripted"

    @property
    def capabilities(self) -> Capabilities:
        """What a chat model of today can be told."""
        return Capabilities()

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
        """The next entry of the script: its words in a few pieces, then the completion.

        Raises:
            TranscriptInvalid: The transcript breaks a rule that providers hold.
            ModelError: The script is over.
        """
        return _Playing(self._answer, request)

    def assert_finished(self) -> None:
        """AssertionError unless every entry was played."""
        left = self._script[self._played :]
        if left:
            raise AssertionError(
                f"{len(left)} of {len(self._script)} entries of the script were never asked for; the next is {left[0]!r}"
            )

    async def _answer(self, request: Request) -> list[ModelEvent]:
        """The events of one answer, the first one last."""
        said = self._next(request)
        if said.seconds:
            await trio.sleep(said.seconds)
        while said.decide is not None:
            said = _decided(said.decide, request)
            await trio.sleep(said.seconds)
        await trio.lowlevel.checkpoint()
        if said.error is not None:
            raise said.error
        blocks = tuple(map(self._numbered, said.blocks))
        called = any(isinstance(block, ToolCall) for block in blocks)
        deltas = [TextDelta(piece) for block in blocks if isinstance(block, Text) for piece in _pieces(block.text)]
        return [Completion(blocks, _NO_USAGE, "calls" if called else "end"), *reversed(deltas)]

    def _next(self, request: Request) -> Said:
        self.requests.append(request)
        transcript = request.transcript
        validator = self._validators.get(transcript[0]) if transcript else Validator()
        validator.check_request(transcript)
        if self._played == len(self._script):
            raise ModelError(
                f"the script of {len(self._script)} answers is over, and request {len(self.requests)} came, "
                f"whose last item is {_shortly(transcript[-1])}; add an answer, or end the run before"
            )
        entry = self._script[self._played]
        self._played += 1
        return entry if isinstance(entry, Said) else _decided(entry, request)

    def _numbered(self, block: Block) -> Block:
        """A provider names each call afresh, also when a script plays the same entry twice."""
        if not isinstance(block, ToolCall):
            return block
        self._calls += 1
        return ToolCall(block.id, block.tool, block.arguments, f"scripted_{self._calls}", unparsable=block.unparsable)


@define(eq=False)
class _Playing:
    """One request being answered. Context and iterator in one object: this is the hot path of every benchmark."""

    answer: Callable[[Request], Awaitable[list[ModelEvent]]]
    request: Request
    events: list[ModelEvent] = field(factory=list, init=False)  # the next one last

    async def __aenter__(self) -> AsyncIterator[ModelEvent]:
        self.events = await self.answer(self.request)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.events = []

    def __aiter__(self) -> AsyncIterator[ModelEvent]:
        return self

    async def __anext__(self) -> ModelEvent:
        if not self.events:
            raise StopAsyncIteration
        return self.events.pop()


def _decided(decide: Callable[[Request], Said], request: Request) -> Said:
    said = decide(request)
    if not isinstance(said, Said):
        raise ModelError(f"a function of the script answered {said!r}; it must return say(...), call(...) or the like")
    return said


def _pieces(text: str) -> list[str]:
    size = max(1, -(-len(text) // _PIECES))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _shortly(item: Item) -> str:
    """What somebody who debugs a script needs to see of an item."""
    if isinstance(item, UserItem | AssistantItem):
        kind, text = ("user" if isinstance(item, UserItem) else "assistant"), item.text
    else:
        kind, text = "results", " / ".join(f"{result.tool}: {result.text}" for result in item.results)
    return f"{kind}: {text[:160]!r}{'...' if len(text) > 160 else ''}"
