"""What does it cost to make an actor, until it is ready?

The twin is `nursery.start` of a task that opens a channel, hands it back by `started` and waits: no name, no mailbox
anyone can find, no supervisor, nothing restarted. The bare one does not even open the channel.
"""

import sys

from supervision import open_system

from ._cli import main
from ._measure import Measured, Stopwatch
from ._ours import Count
from ._scenario import ASYNCIO, AUTOGEN, OURS, PYKKA, THESPIAN, AtMost, Contestant, Scenario
from ._work import ADD


async def ours(n: int) -> Measured:
    watch = Stopwatch()
    async with open_system() as system:
        with watch:
            refs = [await system.spawn(Count) for _ in range(n)]
        done = sum([await ref.ask(ADD) for ref in refs])
    return watch.each(n, done)


START_BARE = Contestant("trio_channel", "nursery.start, bare")
SCENARIO = Scenario(
    name="spawn",
    question="One actor after the other, each ready before the next, all kept.",
    piece="actor",
    n=500,
    quick=200,
    contestants=(
        OURS,
        START_BARE,
        Contestant("trio_channel.spawn_channel", "nursery.start, with a channel"),
        ASYNCIO,
        PYKKA.part(0.25),
        THESPIAN,
        AUTOGEN,
    ),
    budgets=(AtMost(2, of=START_BARE.title),),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
