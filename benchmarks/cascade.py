"""What does a tree of actors cost from its first birth to its last end?

An actor spawns ten, each of them ten, three deep; stopping the first stops them all, children before parents.
"""

import sys

from actors import Actor, Exit
from supervision import open_system

from ._cli import main
from ._measure import Measured, Stopwatch
from ._scenario import OURS, Scenario

BREADTH = 10


class Branch(Actor):
    ended = 0

    def __init__(self, budget: int) -> None:
        self.budget = budget

    async def on_start(self) -> None:
        left = self.budget - 1
        for place in range(min(BREADTH, left)):
            share = left // BREADTH + (place < left % BREADTH)
            await self.spawn(Branch, share, name=f"b{place}", init_timeout=600)

    async def on_stop(self, exit: Exit) -> None:  # noqa: ARG002  # the hook's form
        Branch.ended += 1


async def ours(n: int) -> Measured:
    Branch.ended = 0
    watch = Stopwatch()
    async with open_system() as system:
        with watch:
            root = await system.spawn(Branch, n, init_timeout=600)
            await root.stop()
    return watch.each(n, Branch.ended)


SCENARIO = Scenario(
    name="cascade",
    question="A tree ten wide and three deep is spawned from within, and stopped from its top.",
    piece="actor",
    n=1111,
    quick=111,
    rounds=7,
    contestants=(OURS,),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
