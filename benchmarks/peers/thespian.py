"""Thespian on its simple base: actors run in the caller's thread, a handler inside the `tell` that reaches it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from thespian.actors import Actor, ActorSystem

from benchmarks._measure import Growth, Measured, Stopwatch
from benchmarks._work import ADD, TOTAL, Add, Total


class Count(Actor):
    """Answers only `Total`: on the simple base an answer that nobody asked for is what the next asker gets."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def receiveMessage(self, message: Any, sender: Any) -> None:  # noqa: N802  # the library's name
        match message:
            case Add(amount):
                self.total += amount
            case Total():
                self.send(sender, self.total)


class Answering(Count):
    def receiveMessage(self, message: Any, sender: Any) -> None:  # noqa: N802  # the library's name
        super().receiveMessage(message, sender)
        self.send(sender, self.total)


@contextmanager
def system() -> Iterator[Any]:
    made = ActorSystem("simpleSystemBase")
    try:
        yield made
    finally:
        made.shutdown()


def tell(n: int) -> Measured:
    watch = Stopwatch()
    with system() as actors:
        count = actors.createActor(Count)
        with watch:
            for _ in range(n):
                actors.tell(count, ADD)
            done = actors.ask(count, TOTAL, 5)
    return watch.each(n, done)


def ask(n: int) -> Measured:
    watch, done = Stopwatch(), 0
    with system() as actors:
        count = actors.createActor(Answering)
        with watch:
            for _ in range(n):
                done = actors.ask(count, ADD, 5)
    return watch.each(n, done)


def spawn(n: int) -> Measured:
    watch = Stopwatch()
    with system() as actors:
        with watch:
            counts = [actors.createActor(Answering) for _ in range(n)]
        done = sum(actors.ask(count, ADD, 5) for count in counts)
    return watch.each(n, done)


def idle_memory(n: int) -> Measured:
    with system() as actors:
        growth = Growth()
        counts = [actors.createActor(Answering) for _ in range(n)]
        measured = growth.each(n, 0)
        done = sum(actors.ask(count, ADD, 5) for count in counts)
    return Measured(done, measured.figures)
