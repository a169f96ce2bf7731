"""LangGraph with its SQLite checkpointer (WAL, `synchronous=FULL`): the same graph as in `langgraph.py`, a checkpoint behind each step.

By default it writes the checkpoint of a step while the next one runs already; `durability="sync"` has it written before.
"""

import asyncio
import time
from statistics import median
from typing import Any

import msgspec
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from benchmarks._disk import a_file, size
from benchmarks._measure import COST, Measured, Stopwatch
from benchmarks._work import WARM_UP

from .langgraph import graph

THREAD = {"configurable": {"thread_id": "s"}}


def durable_round(n: int) -> Measured:
    return _rounds(n, "async")


def written_before(n: int) -> Measured:
    """No step begins before the checkpoint of the last one is written."""
    return _rounds(n, "sync")


def _rounds(n: int, durability: Any) -> Measured:
    async def play(rounds: int, watch: Stopwatch) -> int:
        tally: list[int] = []
        with a_file() as path:
            async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
                made = graph(rounds, tally, saver)
                config = {"recursion_limit": 3 * rounds + 10, **THREAD}
                with watch:
                    await made.ainvoke({"messages": [("user", "Go.")]}, config, durability=durability)
        return sum(tally)

    async def run() -> Measured:
        watch = Stopwatch()
        await play(WARM_UP, Stopwatch())
        done = await play(n, watch)
        return Measured(done, {COST: watch.waited(n)})

    return asyncio.run(run())


def long_session(n: int) -> Measured:
    """Turn after turn of one thread, each of a tool call and a last word."""
    tally: list[int] = []
    turns: list[float] = []

    async def run() -> Measured:
        with a_file() as path:
            async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
                made = graph(n, tally, saver, words_after_each=True)
                for _ in range(n):
                    began = time.perf_counter()
                    ended = await made.ainvoke({"messages": [("user", "Add one, and say that it is done.")]}, THREAD)
                    turns.append((time.perf_counter() - began) * 1e6)
            whole = len(msgspec.json.encode([message.model_dump(mode="json") for message in ended["messages"]]))
            share = 100 * size(path) / whole
            watch = Stopwatch()
            async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
                with watch:
                    await graph(1, tally, saver).aget_state(THREAD)
        early, late = median(turns[n // 4 : n // 2]), median(turns[-max(1, n // 4) :])
        figures = {f"turn {n * 3 // 8}": early, f"turn {n * 7 // 8}": late, "of its JSON": share, "loading": watch.waited(n)}
        return Measured(sum(tally), figures)

    return asyncio.run(run())
