"""What does an agent's round cost beside its model: one request, one tool call, its result?

Every contestant plays the same script with a model that answers at once: a tool call 200 times, then a last word. The
tool adds to a count, which is what is checked. `round 10` and `round 1,000` are taken from one long session of ours:
a round must not cost more because there were many before it.
"""

import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from actors import Agent, tool
from actors.models import ScriptedModel, call, say
from supervision import System, open_system

from ._cli import main
from ._measure import Measured, Stopwatch
from ._scenario import LANGGRAPH, OPENAI_AGENTS, OURS, PYDANTIC_AI, AtLeast, AtMost, Contestant, Scenario
from ._work import WARM_UP

ROUNDS = 200  # of a session
LONG = 1_010  # rounds of the long session
WINDOW = 20  # rounds whose median is "round 10" (the first of them), and "round 1,000" (the last)


class Tally:
    """What the tool adds to, and when it did."""

    def __init__(self) -> None:
        self.total = 0
        self.times: list[float] = []


class Adder(Agent):
    """You add numbers with your tool."""

    max_rounds = 1_000_000

    @tool
    async def add(self, amount: int) -> int:
        """Add to the total.

        Args:
            amount: How much.
        """
        tally: Tally = self.deps
        tally.times.append(time.process_time())
        tally.total += amount
        return tally.total


async def play(system: System, rounds: int, watch: Stopwatch) -> Tally:
    """One session that calls its tool in each of `rounds` rounds and then has the last word."""
    tally = Tally()
    model = ScriptedModel([call("add", amount=1)] * rounds + [say("done")])
    session = await system.open(Adder, model=model, deps=tally)
    with watch:
        await session.ask("Go.", timeout=300)
    model.assert_finished()
    return tally


async def ours(n: int) -> Measured:
    watch = Stopwatch()
    async with open_system() as system:
        await play(system, WARM_UP, Stopwatch())
        tally = await play(system, n, watch)
    return watch.each(n, tally.total)


async def long_session(n: int) -> Measured:
    async with open_system() as system:
        await play(system, WARM_UP, Stopwatch())
        tally = await play(system, n, Stopwatch())
    return Measured(
        tally.total, {"round 10": middle(tally.times[: WINDOW + 1]), f"round {n - 10:,}": middle(tally.times[-WINDOW - 1 :])}
    )


def middle(times: Sequence[float]) -> float:
    """The median microseconds from one tool call to the next."""
    return median(after - before for before, after in pairwise(times)) * 1e6


SCENARIO = Scenario(
    name="agent_round",
    question="A scripted model, one tool call a round, in one session.",
    piece="round",
    n=ROUNDS,
    quick=20,
    contestants=(
        OURS,
        Contestant("long_session", "ours, long session", kind="ours", share=LONG / ROUNDS),
        LANGGRAPH,
        PYDANTIC_AI,
        OPENAI_AGENTS,
    ),
    budgets=(
        AtMost(200),
        AtLeast(6, LANGGRAPH.title),
        AtMost(1.2, of="ours, long session, round 10", row="ours, long session, round 1,000"),
    ),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
