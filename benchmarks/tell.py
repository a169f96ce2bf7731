"""What does a message cost, from a sender that does not wait for each, to a typed handler?

One sender, one receiver, bounded at 256 unread. Ours sends bursts of 200 through a ref; a receiver takes what is there
at once. The first twin is a memory channel as its documentation shows it, `await send` and `async for`; the second is
the same channel with bursts of `send_nowait`, the best a channel can do. The clock stops when all has been handled.
"""

import sys

from supervision import open_system

from ._cli import main
from ._measure import Measured, Stopwatch
from ._ours import Count, send_in_bursts, total
from ._scenario import ASYNCIO, AUTOGEN, OURS, PYKKA, THESPIAN, AtLeast, Contestant, Scenario


async def ours(n: int) -> Measured:
    watch = Stopwatch()
    async with open_system() as system:
        ref = await system.spawn(Count, name="count")
        with watch:
            await send_in_bursts(ref, n)
            done = await total(ref)
    return watch.each(n, done)


CHANNEL = Contestant("trio_channel", "trio channel(256)")
CHANNEL_NOWAIT = Contestant("trio_channel.tell_nowait", "trio channel(256), send_nowait")
SCENARIO = Scenario(
    name="tell",
    question="One sender, bursts of messages to one typed handler.",
    piece="message",
    n=20_000,
    quick=2_000,
    contestants=(OURS, CHANNEL, CHANNEL_NOWAIT, ASYNCIO, PYKKA, THESPIAN, AUTOGEN.part(0.1)),
    budgets=(AtLeast(4, CHANNEL.title), AtLeast(2, PYKKA.title)),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
