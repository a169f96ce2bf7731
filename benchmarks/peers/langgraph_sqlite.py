"""LangGraph with its SQLite checkpointer: the same graph as in `langgraph.py`, a checkpoint behind each step."""

import asyncio

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from benchmarks._disk import a_file
from benchmarks._measure import COST, Measured, Stopwatch
from benchmarks._work import WARM_UP

from .langgraph import graph


def durable_round(n: int) -> Measured:
    async def play(rounds: int, watch: Stopwatch) -> int:
        tally: list[int] = []
        with a_file() as path:
            async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
                made = graph(rounds, tally, saver)
                config = {"recursion_limit": 3 * rounds + 10, "configurable": {"thread_id": "s"}}
                with watch:
                    await made.ainvoke({"messages": [("user", "Go.")]}, config)
        return sum(tally)

    async def run() -> Measured:
        watch = Stopwatch()
        await play(WARM_UP, Stopwatch())
        done = await play(n, watch)
        return Measured(done, {COST: watch.waited(n)})

    return asyncio.run(run())
