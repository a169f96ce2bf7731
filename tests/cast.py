"""Actors that many tests need."""

from typing import Any

import trio
from attrs import frozen

from actors import Actor, Ask, Ended, Exit, Reject, handle


class Boom(Exception):
    """What an actor raises in a test."""


@frozen
class Add(Ask[int]):
    """Add and answer the sum."""

    amount: int


@frozen
class Sleep(Ask[str]):
    """Be busy for so long, then answer "slept"."""

    seconds: float


@frozen
class Crash(Ask[None]):
    """Raise this."""

    error: BaseException


@frozen
class Refuse(Ask[None]):
    """Raise `Reject` with these words."""

    why: str


class Worker(Actor):
    """Does what it is told, and notes in `seen` what it began, whatever became of it."""

    def __init__(self, seen: list[Any] | None = None) -> None:
        self.seen = [] if seen is None else seen
        self.total = 0

    async def on_stop(self, exit: Exit) -> None:
        """Note it."""
        self.seen.append(exit)

    @handle
    def add(self, message: Add) -> int:
        """Add."""
        self.total += message.amount
        return self.total

    @handle
    async def sleep(self, message: Sleep) -> str:
        """Be busy."""
        self.seen.append(f"sleep {message.seconds:g}")
        await trio.sleep(message.seconds)
        return "slept"

    @handle
    async def crash(self, message: Crash) -> None:
        """Fail."""
        raise message.error

    @handle
    def refuse(self, message: Refuse) -> None:
        """Answer with an error."""
        raise Reject(message.why)

    @handle
    def note(self, message: str | int) -> None:
        """Note it."""
        self.seen.append(message)

    @handle
    async def ended(self, message: Ended) -> None:
        """Note it."""
        self.seen.append(message)


class Stubborn(Worker):
    """A worker that does not stop while it sleeps: it shields itself for so long."""

    @handle
    async def sleep(self, message: Sleep) -> str:
        """Be busy, deaf to any stop."""
        with trio.CancelScope(shield=True):
            await trio.sleep(message.seconds)
        return "slept"


class Done(Worker):
    """A worker that can end at its own wish."""

    @handle
    async def finish_with(self, message: bytes) -> str:
        """End, a second later, with this value."""
        self.finish(message)
        await trio.sleep(1)
        return "goodbye"


class Noting(Worker):
    """Notes its starts and stops, by name, in a diary that many share."""

    def __init__(self, diary: list[str], name: str) -> None:
        super().__init__()
        self.diary, self.name = diary, name

    async def on_start(self) -> None:
        """Note it."""
        self.diary.append(f"+{self.name}")

    async def on_stop(self, exit: Exit) -> None:
        """Note it."""
        self.diary.append(f"-{self.name}")
