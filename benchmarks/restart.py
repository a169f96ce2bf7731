"""How soon does a crashed actor answer again?

A message makes the handler raise; the next ask is answered by the next life. The twin row spawns an actor and asks it once, so
the difference is what a crash costs over a birth. The log is off: wording a traceback costs more than the restart.
"""

import logging
import sys
from math import inf

from attrs import frozen

from actors import Actor, handle
from supervision import open_system

from ._cli import main
from ._measure import Measured, Stopwatch
from ._ours import Count
from ._scenario import OURS, AtMost, Contestant, Scenario
from ._work import ADD, Add


@frozen
class Break:
    """Crash."""


class Frail(Actor):
    @handle
    async def add(self, message: Add) -> int:
        return message.amount

    @handle
    async def crash(self, _message: Break) -> None:
        raise RuntimeError


async def ours(n: int) -> Measured:
    logging.disable()
    watch = Stopwatch()
    async with open_system() as system:
        ref = await system.spawn(Frail, max_restarts=n, within=inf)
        with watch:
            for _ in range(n):
                ref.send_nowait(Break())
                await ref.ask(ADD)
        done = system.statistics().restarts
    return watch.each(n, done)


async def spawned(n: int) -> Measured:
    watch = Stopwatch()
    done = 0
    async with open_system() as system:
        with watch:
            for _ in range(n):
                done += await (await system.spawn(Count)).ask(ADD)
    return watch.each(n, done)


SPAWNED = Contestant("spawned", "a spawn and its first answer")
SCENARIO = Scenario(
    name="restart",
    question="A crash, and the answer of the next life; its log record is off.",
    piece="restart",
    n=500,
    quick=100,
    contestants=(OURS, SPAWNED),
    budgets=(AtMost(3, of=SPAWNED.title),),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
