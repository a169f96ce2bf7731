"""Does a round cost more because there were ten thousand before it?

One session in memory, one tool call a round, 10,000 rounds in a run; the cost of a round is the median of the hundred around it.
A model that looks at its request gets the whole transcript, which is a copy of so many pointers, and sends it; this one does not
look: what else a round does must not grow. With `compact` the request is bounded too.
"""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from statistics import median
from typing import Any

from actors import AssistantItem, Item
from actors.models import Completion, Request, Text, ToolCall, Usage
from supervision import open_system

from ._cli import main
from ._measure import Measured
from ._scenario import AtMost, Contestant, Scenario
from .agent_round import Adder, Tally, intervals

ROUNDS = 10_000
AROUND = 100  # rounds whose median is the cost of one


class Caller:
    """A model that calls the tool so many times, then says so. It remembers no request."""

    name = "bench:caller"

    def __init__(self, rounds: int) -> None:
        self.left = rounds

    @asynccontextmanager
    async def stream(self, _request: Request) -> AsyncIterator[AsyncIterator[Completion]]:
        yield self._said()

    async def _said(self) -> AsyncIterator[Completion]:
        self.left -= 1
        block = ToolCall("", "add", {"amount": 1}) if self.left >= 0 else Text("done")
        yield Completion((block,), Usage(), "end")


def window(items: tuple[Item, ...]) -> Sequence[Item]:
    """The person's words, and the last twenty rounds."""
    start = max(1, len(items) - 40)
    while start < len(items) and not isinstance(items[start], AssistantItem):
        start += 1
    return items[:1] + items[start:]


async def whole(n: int, **options: Any) -> Measured:
    tally = Tally()
    async with open_system() as system:
        session = await system.open(Adder, model=Caller(n), deps=tally, **options)
        await session.ask("Go.", timeout=600)
    each = intervals(tally.times)
    places = (n // 100, n // 10, n)
    around = {f"round {place:,}": median(each[max(0, place - AROUND) : place] or each) for place in places}
    return Measured(tally.total, around)


async def compacted(n: int) -> Measured:
    return await whole(n, compact=window)


WHOLE = Contestant("whole", "ours", kind="ours")
COMPACT = Contestant("compacted", "ours, compact", kind="ours")
SCENARIO = Scenario(
    name="growth",
    question="A session of 10,000 rounds, one tool call each: what a round costs early and late.",
    piece="round",
    n=ROUNDS,
    quick=300,
    rounds=3,
    contestants=(WHOLE, COMPACT),
    budgets=(
        AtMost(1.5, of="ours, round 100", row="ours, round 10,000"),
        AtMost(1.5, of="ours, compact, round 100", row="ours, compact, round 10,000"),
    ),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
