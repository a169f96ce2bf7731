"""What does a message cost when its receiver has nothing else to do, and must be woken for each?

A hundred receivers that all wait; the sender writes one message to each, lets them all read and wait again, and starts
over. So every single message wakes a task, while what the sender itself spends on giving way is shared by a hundred.
"""

import sys

import trio
from trio.testing import wait_all_tasks_blocked

from supervision import open_system

from ._cli import main
from ._measure import Measured, Stopwatch
from ._ours import Count, total
from ._scenario import ASYNCIO, OURS, AtLeast, Contestant, Scenario
from ._work import ADD, RECEIVERS, SETTLE


async def ours(n: int) -> Measured:
    watch = Stopwatch()
    async with open_system() as system:
        refs = [await system.spawn(Count) for _ in range(RECEIVERS)]
        await wait_all_tasks_blocked()
        with watch:
            for _ in range(n // RECEIVERS):
                for ref in refs:
                    ref.send_nowait(ADD)
                for _ in range(SETTLE):
                    await trio.lowlevel.checkpoint()
        done = sum([await total(ref) for ref in refs])
    return watch.each(n, done)


CHANNEL = Contestant("trio_channel", "trio channel(256), send_nowait")
SCENARIO = Scenario(
    name="tell_idle",
    question="One message at a time to each of 100 receivers that all wait.",
    piece="message",
    n=10_000,
    quick=2_000,
    contestants=(OURS, CHANNEL, ASYNCIO),
    budgets=(AtLeast(0.8, CHANNEL.title),),
    absent="(Thespian's simple base has no waiting receiver, AutoGen core one queue for all, Pykka's threads do not all wait again in turn.)",
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
