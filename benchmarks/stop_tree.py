"""How long does an ordered stop take?

A supervisor with n children stops them in reverse, each after the one before. Spawned actors are stopped all at once: with
50 ms of cleanup each, n of them take little more than one cleanup.
"""

import sys

import trio

from actors import Actor, Exit
from supervision import ChildSpec, Supervisor, open_system

from ._cli import main
from ._measure import COST, Measured, Stopwatch
from ._ours import Count
from ._scenario import OURS, AtMost, Contestant, Scenario

CLEANUP = 0.05


class Tidy(Actor):
    stopped = 0

    async def on_stop(self, exit: Exit) -> None:  # noqa: ARG002  # the hook's form
        await trio.sleep(CLEANUP)
        Tidy.stopped += 1


async def ours(n: int) -> Measured:
    watch = Stopwatch()
    async with open_system() as system:
        tree = await system.start(Supervisor(*(ChildSpec(Count, name=f"c{i}") for i in range(n)), name="tree"))
        before = system.statistics().actors
        with watch:
            await tree.stop()
        done = before - system.statistics().actors
    return watch.each(n, done)


async def spawned(n: int) -> Measured:
    watch = Stopwatch()
    Tidy.stopped = 0
    async with open_system() as system:
        for _ in range(n):
            await system.spawn(Tidy)
        watch.__enter__()
    watch.__exit__(None, None, None)
    return Measured(Tidy.stopped, {COST: watch.wall / n * 1e6})  # it sleeps: the wall clock is what counts


SPAWNED = Contestant("spawned", "spawned, 50 ms of cleanup each")
SCENARIO = Scenario(
    name="stop_tree",
    question="A tree of 1,000 stops in order; 1,000 spawned actors stop at once.",
    piece="actor",
    n=1000,
    quick=1000,
    rounds=5,
    contestants=(OURS, SPAWNED),
    budgets=(AtMost(100), AtMost(250, row=SPAWNED.title)),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
