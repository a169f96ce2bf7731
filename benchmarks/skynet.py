"""A hundred thousand actors: the skynet benchmark, with actors that stay.

A 10-ary tree whose leaves know their number; every inner actor asks its ten children and adds. All of them live at once, each
with an address, a mailbox and a place in the tree. The row of memory is what the process grew by for each.
"""

import sys

from attrs import frozen

from actors import Actor, handle
from supervision import open_system

from ._cli import main
from ._measure import Measured, Stopwatch
from ._scenario import OURS, Scenario
from ._work import TOTAL, Total

WIDTH = 10


@frozen
class Share:
    """Leaves first, first + 1, ... of a subtree."""

    first: int
    leaves: int


class Node(Actor):
    def __init__(self, share: Share) -> None:
        self.share = share
        self.children: list[object] = []

    async def on_start(self) -> None:
        if self.share.leaves > 1:
            part = self.share.leaves // WIDTH
            for place in range(WIDTH):
                share = Share(self.share.first + place * part, part)
                self.children.append(await self.spawn(Node, share, name=f"n{place}", init_timeout=3600))

    @handle
    async def total(self, message: Total) -> int:
        if not self.children:
            return self.share.first
        return sum([await child.ask(message, timeout=None) for child in self.children])  # type: ignore[attr-defined]


async def ours(n: int) -> Measured:
    watch = Stopwatch()
    async with open_system() as system:
        with watch:
            root = await system.spawn(Node, Share(0, n), init_timeout=3600)
            total = await root.ask(TOTAL, timeout=None)
    return watch.each(n, n if total == n * (n - 1) // 2 else 0)


SCENARIO = Scenario(
    name="skynet",
    question="A 10-ary tree with so many leaves, all alive at once, adds their numbers.",
    piece="leaf",
    n=100_000,
    quick=1000,
    rounds=1,
    fresh=True,
    contestants=(OURS,),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
