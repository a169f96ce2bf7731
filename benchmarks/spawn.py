"""What does it cost to make an actor, until it is ready?

The twin is `nursery.start` of a task that opens a channel, hands it back by `started` and waits: no name, no mailbox
anyone can find, no supervisor, nothing restarted. The bare one does not even open the channel.
"""

import sys

import trio

from supervision import open_system

from ._cli import main
from ._measure import Measured, Stopwatch
from ._ours import Count
from ._scenario import ASYNCIO, AUTOGEN, OURS, PYKKA, THESPIAN, AtMost, Contestant, Scenario
from ._work import ADD, CAPACITY, Add


async def ours(n: int) -> Measured:
    watch = Stopwatch()
    async with open_system() as system:
        with watch:
            refs = [await system.spawn(Count) for _ in range(n)]
        done = sum([await ref.ask(ADD) for ref in refs])
    return watch.each(n, done)


async def start_bare(n: int) -> Measured:
    watch = Stopwatch()
    ready = 0

    async def wait(task_status: trio.TaskStatus[int]) -> None:
        task_status.started(1)
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        with watch:
            for _ in range(n):
                ready += await nursery.start(wait)
        nursery.cancel_scope.cancel()
    return watch.each(n, ready)


async def start_channel(n: int) -> Measured:
    watch = Stopwatch()
    count = 0

    async def consume(task_status: trio.TaskStatus[trio.MemorySendChannel[Add]]) -> None:
        nonlocal count
        send, receive = trio.open_memory_channel[Add](CAPACITY)
        task_status.started(send)
        async for message in receive:
            count += message.amount

    async with trio.open_nursery() as nursery:
        with watch:
            ends = [await nursery.start(consume) for _ in range(n)]
        for send in ends:
            await send.send(ADD)
            send.close()
    return watch.each(n, count)


START_BARE = Contestant("start_bare", "nursery.start, bare")
SCENARIO = Scenario(
    name="spawn",
    question="One actor after the other, each ready before the next, all kept.",
    piece="actor",
    n=2_000,
    quick=200,
    contestants=(
        OURS,
        START_BARE,
        Contestant("start_channel", "nursery.start, with a channel"),
        ASYNCIO,
        PYKKA.part(0.25),
        THESPIAN,
        AUTOGEN,
    ),
    budgets=(AtMost(2, of=START_BARE.title),),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
