"""LangGraph: the usual two nodes, a fake chat model and a `ToolNode`, looping until the model makes no call."""

import asyncio
from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from benchmarks._measure import Measured, Stopwatch
from benchmarks._work import WARM_UP


def graph(rounds: int, tally: list[int], saver: Any = None, *, words_after_each: bool = False) -> Any:
    """A compiled graph that plays the script once, its last words at the end or after each call; `saver` keeps it."""

    @tool
    async def add(amount: int) -> int:
        """Add to the total."""
        tally.append(amount)
        return len(tally)

    said = AIMessage("It is done: one more.")
    calls = [AIMessage("", tool_calls=[{"name": "add", "args": {"amount": 1}, "id": f"call_{i}"}]) for i in range(rounds)]
    script = [each for asked in calls for each in (asked, said.model_copy())] if words_after_each else [*calls, said]
    model = GenericFakeChatModel(messages=iter(script))

    async def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    made = StateGraph(MessagesState)
    made.add_node("model", ask)
    made.add_node("tools", ToolNode([add]))
    made.add_edge(START, "model")
    made.add_conditional_edges("model", tools_condition)
    made.add_edge("tools", "model")
    return made.compile(checkpointer=saver)


def agent_round(n: int) -> Measured:
    async def play(rounds: int, watch: Stopwatch) -> int:
        tally: list[int] = []
        made = graph(rounds, tally)
        with watch:
            await made.ainvoke({"messages": [("user", "Go.")]}, {"recursion_limit": 3 * rounds + 10})
        return sum(tally)

    async def run() -> Measured:
        watch = Stopwatch()
        await play(WARM_UP, Stopwatch())
        done = await play(n, watch)
        return watch.each(n, done)

    return asyncio.run(run())
