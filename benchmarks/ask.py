"""What does a question cost, from asking to the answer?

Ours carries its default timeout of 5 s in every ask. The first twin is the least that can be done in trio, a request
and a reply over two memory channels that nobody times; the second is the same under `fail_after(5)`, as a caller who
does not want to wait for ever must write it.
"""

import sys

from supervision import open_system

from ._cli import main
from ._measure import Measured, Stopwatch
from ._ours import Count
from ._scenario import ASYNCIO, AUTOGEN, OURS, PYKKA, THESPIAN, AtLeast, Contestant, Scenario
from ._work import ADD


async def ours(n: int) -> Measured:
    watch = Stopwatch()
    done = 0
    async with open_system() as system:
        ref = await system.spawn(Count, name="count")
        with watch:
            for _ in range(n):
                done = await ref.ask(ADD)
    return watch.each(n, done)


CHANNELS = Contestant("trio_channel", "two trio channels, bare")
CHANNELS_TIMED = Contestant("trio_channel.ask_timed", "two trio channels, fail_after")
SCENARIO = Scenario(
    name="ask",
    question="One asker, one answer at a time.",
    piece="round trip",
    n=3_000,
    quick=1_000,
    contestants=(OURS, CHANNELS, CHANNELS_TIMED, ASYNCIO, PYKKA, THESPIAN, AUTOGEN.part(0.25)),
    budgets=(AtLeast(1, CHANNELS.title), AtLeast(1.5, CHANNELS_TIMED.title), AtLeast(10, AUTOGEN.title)),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
