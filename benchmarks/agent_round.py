"""What does an agent's round cost beside its model: one request, one tool call, its result?

Every contestant plays the same script with a model that answers at once: a tool call 200 times, then a last word. The
tool adds to a count, which is what is checked.

A round must not cost more because there were many before it. So a session that has been through 900 rounds and fresh
ones that have been through 5 take turns, ten rounds each: `round 10` and `round 1,000` are the medians, taken
milliseconds apart, so that a machine that changes its speed in between cannot fake a growth or hide one.
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
LONG = 1_100  # rounds of the long session, and of the fresh ones beside it: one turn for each 55
TURN = 10  # rounds
YOUNG = 5  # rounds that a fresh session has behind it


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


def script(*runs: int) -> ScriptedModel:
    """Runs of so many tool calls, each with a last word."""
    return ScriptedModel([said for run in runs for said in (*[call("add", amount=1)] * run, say("done"))])


async def play(system: System, rounds: int, watch: Stopwatch) -> Tally:
    """One session of one run."""
    tally, model = Tally(), script(rounds)
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
    turns = n // (LONG // 20)
    fresh: list[float] = []
    late: list[float] = []
    async with open_system() as system:
        await play(system, WARM_UP, Stopwatch())
        old = Tally()
        behind = n - turns * TURN
        elder = await system.open(Adder, model=script(behind, *[TURN] * turns), deps=old)
        await elder.ask("Go.", timeout=300)
        for _ in range(turns):
            young = Tally()
            session = await system.open(Adder, model=script(YOUNG, TURN), deps=young)
            await session.ask("Go.")
            await session.ask("Go on.")
            fresh += intervals(young.times[YOUNG:])
            await elder.ask("Go on.")
            late += intervals(old.times[-TURN:])
    return Measured(old.total, {"round 10": median(fresh), f"round {n - turns * TURN // 2:,}": median(late)})


def intervals(times: Sequence[float]) -> list[float]:
    """Microseconds from one tool call to the next."""
    return [(after - before) * 1e6 for before, after in pairwise(times)]


SCENARIO = Scenario(
    name="agent_round",
    question="A scripted model, one tool call a round, in one session.",
    piece="round",
    n=ROUNDS,
    rounds=7,
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
