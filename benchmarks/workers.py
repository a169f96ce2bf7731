"""Do four worker processes on one PostgreSQL do the work of three?

Every session was written to while nobody ran it, and its model takes a while to answer. A worker has an eighth of the sessions in
memory at a time, 200 of 1,600, so one worker needs eight rounds of that while, four need two. The clock starts before the workers
do, and stops when the last session has its answer in the database. Workers and database share all CPUs there are.
"""

import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import trio

from actors import Agent
from actors.models import Capabilities, Completion, Request, Text, Usage
from supervision import System, open_system, run

from ._cli import main
from ._measure import Measured, Stopwatch
from ._postgres import a_database
from ._scenario import OURS, AtLeast, Contestant, Scenario

SHARE = 8  # a worker has one of so many sessions in memory
PACE = 160  # sessions for each second that a model takes: 10 s where there are 1,600
PATIENCE = 900.0  # seconds for all of it
ANSWERED = "SELECT count(*) FROM sessions WHERE items >= 2"


class Waits:
    """A model that takes its time."""

    name = "waits:1"
    capabilities = Capabilities()
    seconds = 0.0

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[Completion]]:  # noqa: ARG002  # it always says the same
        """Answer, later."""

        async def events() -> AsyncIterator[Completion]:
            await trio.sleep(self.seconds)
            yield Completion([Text("read")], Usage(1, 1, 1), "end")

        made = events()
        try:
            yield made
        finally:
            await made.aclose()  # type: ignore[attr-defined]


class Clerk(Agent):
    """You answer."""

    model = Waits()


async def _written_to(url: str, n: int) -> None:
    async with open_system(store=url) as system:
        for number in range(n):
            await (await system.open(Clerk, session=f"s{number}")).stop_run()
    async with open_system(store=url) as system:
        for number in range(n):
            await system.ref(f"s{number}").send("Are you there?")


async def _work(_system: System) -> None:
    await trio.sleep_forever()


def _worker(url: str, most: int) -> int:
    child = os.fork()
    if not child:
        try:
            run(_work, store=url, agents=[Clerk], max_live=most)
        finally:
            os._exit(0)
    return child


def _by(workers: int, n: int) -> Measured:
    url, work = a_database(), Stopwatch()
    trio.run(_written_to, url, n)
    Waits.seconds = n / PACE
    with psycopg.connect(url, autocommit=True) as db, work:
        running = [_worker(url, max(1, n // SHARE)) for _ in range(workers)]
        until, done = time.monotonic() + PATIENCE, 0
        while done < n and time.monotonic() < until:
            time.sleep(0.05)
            [(done,)] = db.execute(ANSWERED).fetchall()
    for child in running:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
    return Measured(done, {"": work.waited(n)})


def ours(n: int) -> Measured:
    """Four."""
    return _by(4, n)


def one(n: int) -> Measured:
    """One alone."""
    return _by(1, n)


SCENARIO = Scenario(
    name="workers",
    question="Sessions whose model takes 10 s, on one PostgreSQL without flushes: four workers, and one; by the clock on the wall.",
    piece="session",
    n=1_600,
    rounds=1,
    quick=16,
    cpus="all",
    contestants=(OURS, Contestant("one", "one worker")),
    budgets=(AtLeast(3.0, than="one worker"),),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
