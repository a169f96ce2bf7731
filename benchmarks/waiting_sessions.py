"""Do ten thousand sessions that all wait for their models get their answers when these are there?

Each asks a model that takes four seconds, again and again; the ideal is one answer in four seconds each: 2,500 a second, so that
all that the process does for one may take 400 microseconds. Completions begin spread over four seconds, as people come. What is
measured is wall time: microseconds of the process for each answer, all sessions together. The twin is trio alone: as many tasks
that sleep. The collector is set as a server sets it, for both.
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
from ._scenario import OURS, AtLeast, Contestant, Scenario

SECONDS = 4.0  # of a completion
ANSWERS = 3  # of each session
QUICK = 100  # pieces of work up to which nobody judges
WAIT = {True: 0.1, False: SECONDS}


class Mind:
    """A model that thinks for some seconds."""

    name = "bench:mind"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    @asynccontextmanager
    async def stream(self, _request: Request) -> AsyncIterator[AsyncIterator[Completion]]:
        yield self._said()

    async def _said(self) -> AsyncIterator[Completion]:
        await trio.sleep(self.seconds)
        yield Completion((Text("done"),), Usage(), "end")


class Thinker(Agent):
    """You think."""


async def ours(n: int) -> Measured:
    done, seconds = 0, WAIT[n <= QUICK]
    async with open_system() as system:
        refs = [await system.open(Thinker, model=Mind(seconds)) for _ in range(n // ANSWERS)]

        async def talk(place: int) -> None:
            nonlocal done
            await trio.sleep(seconds * place / len(refs))
            for _ in range(ANSWERS):
                answer = await refs[place].ask("Go on.")
                done += answer == "done"

        with serving():
            since = time.perf_counter()
            async with trio.open_nursery() as nursery:
                for place in range(len(refs)):
                    nursery.start_soon(talk, place)
            took = time.perf_counter() - since
    return Measured(done, {"": took / n * 1e6})


async def sleeps(n: int) -> Measured:
    done, seconds = 0, WAIT[n <= QUICK]
    count = n // ANSWERS

    async def talk(place: int) -> None:
        nonlocal done
        await trio.sleep(seconds * place / count)
        for _ in range(ANSWERS):
            await trio.sleep(seconds)
            done += 1

    with serving():
        since = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for place in range(count):
                nursery.start_soon(talk, place)
        took = time.perf_counter() - since
    return Measured(done, {"": took / n * 1e6})


SLEEPS = Contestant("sleeps", "bare trio sleeps")
SCENARIO = Scenario(
    name="waiting_sessions",
    question="10,000 sessions on 4 s completions, three answers each (wall time).",
    piece="answer",
    n=10_000 * ANSWERS,
    quick=30 * ANSWERS,
    rounds=3,
    contestants=(OURS, SLEEPS),
    budgets=(AtLeast(0.8, SLEEPS.title),),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
