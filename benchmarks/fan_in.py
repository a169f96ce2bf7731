"""What does a message cost when a hundred senders write to one receiver, and most of them must wait for room?"""

import sys

import trio

from actors import ActorRef
from supervision import open_system

from ._cli import main
from ._measure import Measured, Stopwatch
from ._ours import Count, total
from ._scenario import ASYNCIO, AUTOGEN, OURS, PYKKA, Contestant, Scenario
from ._work import ADD, SENDERS


async def ours(n: int) -> Measured:
    watch = Stopwatch()
    async with open_system() as system:
        ref = await system.spawn(Count, name="count")
        with watch:
            async with trio.open_nursery() as nursery:
                for _ in range(SENDERS):
                    nursery.start_soon(_send, ref, n // SENDERS)
            done = await total(ref)
    return watch.each(n, done)


async def _send(ref: ActorRef, n: int) -> None:
    for _ in range(n):
        await ref.send(ADD, wait=60)


SCENARIO = Scenario(
    name="fan_in",
    question="100 senders that wait for room, one receiver.",
    piece="message",
    n=10_000,
    quick=2_000,
    contestants=(OURS, Contestant("trio_channel", "trio channel(256)"), ASYNCIO, PYKKA, AUTOGEN.part(0.1)),
    absent="(Thespian's simple base takes one caller at a time; Pykka's and AutoGen core's queues have no bound to wait for.)",
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
