"""Pykka: a thread for each actor, a queue without bound."""

import threading
from typing import Any

import pykka

from benchmarks._measure import Growth, Measured, Stopwatch
from benchmarks._work import ADD, SENDERS, TOTAL, Add, Total


class Count(pykka.ThreadingActor):
    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def on_receive(self, message: Any) -> Any:
        match message:
            case Add(amount):
                self.total += amount
                return self.total
            case Total():
                return self.total


def tell(n: int) -> Measured:
    watch, ref = Stopwatch(), Count.start()
    with watch:
        for _ in range(n):
            ref.tell(ADD)
        done = ref.ask(TOTAL)
    ref.stop()
    return watch.each(n, done)


def fan_in(n: int) -> Measured:
    watch, ref = Stopwatch(), Count.start()

    def send() -> None:
        for _ in range(n // SENDERS):
            ref.tell(ADD)

    threads = [threading.Thread(target=send) for _ in range(SENDERS)]
    with watch:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        done = ref.ask(TOTAL)
    ref.stop()
    return watch.each(n, done)


def ask(n: int) -> Measured:
    watch, ref, done = Stopwatch(), Count.start(), 0
    with watch:
        for _ in range(n):
            done = ref.ask(ADD, timeout=5)
    ref.stop()
    return watch.each(n, done)


def spawn(n: int) -> Measured:
    watch = Stopwatch()
    with watch:
        refs = [Count.start() for _ in range(n)]
    done = sum([ref.ask(ADD) for ref in refs])
    pykka.ActorRegistry.stop_all()
    return watch.each(n, done)


def idle_memory(n: int) -> Measured:
    growth = Growth()
    refs = [Count.start() for _ in range(n)]
    measured = growth.each(n, 0)
    done = sum([ref.ask(ADD) for ref in refs])
    pykka.ActorRegistry.stop_all()
    return Measured(done, measured.figures)
