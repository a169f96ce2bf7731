"""What does an agent's round cost when nothing of it may be lost: each step on the disk before the next one begins?

As `agent_round`, with a store. A round of ours is three commits and two flushes that wait for each other: the call's end with its
mail; then the results with what was read, together with the answer to them and the start of its calls. For a model may be asked
before what it reads is kept, as long as nothing follows from its answer before both are; one that takes its time has them flushed
meanwhile. (A commit of its own for the start of a call is needed only where it had to wait for a slot.) The clock is the one on
the wall.

LangGraph writes behind its steps unless it is told otherwise; `sync` is the row of the same promise. The budget is held against the
faster one.
"""

import sys

from attrs import evolve

from supervision import open_system

from ._cli import main
from ._disk import a_file
from ._measure import COST, Measured, Stopwatch
from ._scenario import LANGGRAPH_SQLITE, OURS, AtLeast, Scenario
from ._work import WARM_UP
from .agent_round import play


async def ours(n: int) -> Measured:
    watch = Stopwatch()
    with a_file() as path:
        async with open_system(store=f"sqlite:///{path}") as system:
            await play(system, WARM_UP, Stopwatch())
            tally = await play(system, n, watch)
    return Measured(tally.total, {COST: watch.waited(n)})


SCENARIO = Scenario(
    name="durable_round",
    question="A scripted model, one tool call a round, everything on the disk; by the clock on the wall.",
    piece="round",
    n=400,
    rounds=3,
    quick=20,
    contestants=(
        OURS,
        LANGGRAPH_SQLITE,
        evolve(LANGGRAPH_SQLITE, key="langgraph_sqlite.written_before", title="LangGraph, sync"),
    ),
    budgets=(AtLeast(8, LANGGRAPH_SQLITE.title),),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
