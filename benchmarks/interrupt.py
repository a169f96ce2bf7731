"""How long does an agent go on with what it was doing after it was told to stop?

A thousand sessions on completions of one second share one process; their agents let an interrupt cut a completion off. One
after the other is interrupted, and what is measured is the time from the send to the next request that its model gets, with
the interrupt in it. The work of all others goes on meanwhile: this is wall time, and the p99 of it. Completions begin spread over a
second, as people come; the collector is set as a server sets it.

Two twins are trio alone: a thousand tasks that sleep a second at a time, each under a scope; one is cancelled, and says so. The
first do nothing else. The second work, whenever they wake, about as long as a session does for a round: their p99 is what
this machine, beside whatever else it does now, allows to anybody who does so much in one thread.
"""

import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from actors import Agent
from actors.models import Completion, Request, Text, Usage
from supervision import open_system
from supervision.terminal._collector import serving

from ._cli import main
from ._measure import Measured
from ._scenario import OURS, AtMost, Contestant, Scenario

SESSIONS = 1_000
SECONDS = 1.0  # of a completion
WORK = 0.0004  # seconds of CPU that the second twins take for a round


class Mind:
    """A model that thinks for a second, and notes when it was asked."""

    name = "bench:mind"

    def __init__(self) -> None:
        self.asked = trio.Event()
        self.at = 0.0

    @asynccontextmanager
    async def stream(self, _request: Request) -> AsyncIterator[AsyncIterator[Completion]]:
        self.at = time.perf_counter()
        self.asked.set()
        yield self._said()

    async def _said(self) -> AsyncIterator[Completion]:
        await trio.sleep(SECONDS)
        yield Completion((Text("on and on"),), Usage(), "end")


class Thinker(Agent):
    """You think."""

    interrupt_completions = True
    max_rounds = 1_000_000


def spread(waits: list[float]) -> Measured:
    """The median and the p99, in microseconds."""
    waits.sort()
    return Measured(
        len(waits), {"p50": waits[len(waits) // 2] * 1e6, "p99": waits[min(len(waits) - 1, len(waits) * 99 // 100)] * 1e6}
    )


async def ours(n: int) -> Measured:
    waits: list[float] = []
    async with open_system() as system:
        minds = [Mind() for _ in range(min(n, SESSIONS))]
        refs = [await system.open(Thinker, model=mind) for mind in minds]

        async def busy(place: int) -> None:
            await trio.sleep(SECONDS * place / len(refs))  # else all of them end in one step
            while True:
                await refs[place].ask("Go on.")

        async with trio.open_nursery() as nursery:
            for place in range(len(refs)):
                nursery.start_soon(busy, place)
            await trio.sleep(1.2 * SECONDS)
            with serving():
                for number in range(n):
                    mind, ref = minds[number % len(minds)], refs[number % len(minds)]
                    mind.asked = trio.Event()
                    since = time.perf_counter()
                    await ref.interrupt("Stop, look here.")
                    await mind.asked.wait()
                    waits.append(mind.at - since)
                    await trio.sleep(0.002)
            nursery.cancel_scope.cancel()
        for ref in refs:
            await ref.stop_run()
    return spread(waits)


async def scopes(n: int) -> Measured:
    return await _cancelled(n, 0.0)


async def laden(n: int) -> Measured:
    return await _cancelled(n, WORK)


def _work(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def _cancelled(n: int, work: float) -> Measured:
    waits: list[float] = []
    count = min(n, SESSIONS)
    scope: list[trio.CancelScope] = [trio.CancelScope() for _ in range(count)]
    seen = [trio.Event() for _ in range(count)]

    async def task(place: int) -> None:
        await trio.sleep(SECONDS * place / count)
        while True:
            with trio.CancelScope() as scope[place]:
                await trio.sleep(SECONDS)
            seen[place].set()
            _work(work)

    async with trio.open_nursery() as nursery:
        for place in range(count):
            nursery.start_soon(task, place)
        await trio.sleep(1.2 * SECONDS)
        with serving():
            for number in range(n):
                place = number % count
                seen[place] = trio.Event()
                since = time.perf_counter()
                scope[place].cancel()
                await seen[place].wait()
                waits.append(time.perf_counter() - since)
                await trio.sleep(0.002)
        nursery.cancel_scope.cancel()
    return spread(waits)


SCENARIO = Scenario(
    name="interrupt",
    question="From an interrupt to the request that holds it, beside 1,000 sessions on 1 s completions (wall time).",
    piece="interrupt",
    n=1_000,
    quick=20,
    rounds=5,
    contestants=(OURS, Contestant("scopes", "trio tasks, cancelled"), Contestant("laden", "trio tasks that work as much")),
    budgets=(AtMost(5_000, row="ours, p99"),),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
