"""A message around a ring of a hundred actors: the price of one hop between actors that all wait."""

import sys

import trio
import trio.testing
from attrs import frozen

from actors import Actor, ActorRef, handle
from supervision import open_system

from ._cli import main
from ._measure import Measured, Stopwatch
from ._scenario import OURS, AtMost, Contestant, Scenario

SIZE = 100


@frozen
class Token:
    """So many hops to go."""

    left: int


class Member(Actor):
    hops = 0

    def __init__(self, after: str, done: trio.Event) -> None:
        self.next = after
        self.done = done
        self.ref_of_next: ActorRef | None = None

    @handle
    def token(self, message: Token) -> None:
        Member.hops += 1
        if message.left == 1:
            self.done.set()
            return
        if self.ref_of_next is None:
            self.ref_of_next = self.find(self.next)
        self.ref_of_next.send_nowait(Token(message.left - 1))


async def ours(n: int) -> Measured:
    Member.hops = 0
    watch = Stopwatch()
    done = trio.Event()
    async with open_system() as system:
        refs = [await system.spawn(Member, f"m{(place + 1) % SIZE}", done, name=f"m{place}") for place in range(SIZE)]
        with watch:
            refs[0].send_nowait(Token(n))
            await done.wait()
    return watch.each(n, Member.hops)


async def channels(n: int) -> Measured:
    watch = Stopwatch()
    hops = 0
    ends = [trio.open_memory_channel[int](256) for _ in range(SIZE)]

    async def member(place: int) -> None:
        nonlocal hops
        send = ends[(place + 1) % SIZE][0]
        async for left in ends[place][1]:
            hops += 1
            if left == 1:
                nursery.cancel_scope.cancel()
            else:
                send.send_nowait(left - 1)

    async with trio.open_nursery() as nursery:
        for place in range(SIZE):
            nursery.start_soon(member, place)
        await trio.testing.wait_all_tasks_blocked()
        watch.__enter__()
        ends[0][0].send_nowait(n)
    watch.__exit__(None, None, None)
    return watch.each(n, hops)


CHANNELS = Contestant("channels", "trio channels")
SCENARIO = Scenario(
    name="ring",
    question="One message around a ring of 100 actors that all wait.",
    piece="hop",
    n=10_000,
    quick=1000,
    contestants=(OURS, CHANNELS),
    budgets=(AtMost(1.25, of=CHANNELS.title),),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
