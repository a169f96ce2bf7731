"""pydantic-ai with its `FunctionModel`."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import UsageLimits

from benchmarks._measure import Measured, Stopwatch
from benchmarks._work import WARM_UP


def agent_round(n: int) -> Measured:
    async def play(rounds: int, watch: Stopwatch) -> int:
        tally: list[int] = []

        async def add(amount: int) -> int:
            """Add to the total."""
            tally.append(amount)
            return len(tally)

        script = iter([ModelResponse(parts=[ToolCallPart("add", {"amount": 1}, f"call_{i}")]) for i in range(rounds)])
        last = ModelResponse(parts=[TextPart("done")])
        agent = Agent(FunctionModel(lambda _messages, _info: next(script, last)), tools=[add])
        with watch:
            await agent.run("Go.", usage_limits=UsageLimits(request_limit=None))
        return sum(tally)

    async def run() -> Measured:
        watch = Stopwatch()
        await play(WARM_UP, Stopwatch())
        done = await play(n, watch)
        return watch.each(n, done)

    return asyncio.run(run())
