"""The OpenAI Agents SDK with a fake `Model`, its tracing off."""

import asyncio
from typing import Any

from agents import Agent, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from benchmarks._measure import Measured, Stopwatch
from benchmarks._work import WARM_UP


class Fake(Model):
    """Plays the script, whatever it is asked."""

    def __init__(self, rounds: int) -> None:
        call = {"name": "add", "arguments": '{"amount": 1}', "type": "function_call"}
        calls = [ResponseFunctionToolCall.model_validate({**call, "call_id": f"call_{i}"}) for i in range(rounds)]
        text = ResponseOutputText(text="done", type="output_text", annotations=[])
        last = ResponseOutputMessage(id="msg_1", role="assistant", status="completed", type="message", content=[text])
        self.script = iter([*calls, last])

    async def get_response(self, *_args: Any, **_options: Any) -> ModelResponse:
        return ModelResponse(output=[next(self.script)], usage=Usage(), response_id=None)

    def stream_response(self, *_args: Any, **_options: Any) -> Any:
        raise NotImplementedError


def agent_round(n: int) -> Measured:
    set_tracing_disabled(True)

    async def play(rounds: int, watch: Stopwatch) -> int:
        tally: list[int] = []

        @function_tool
        async def add(amount: int) -> int:
            """Add to the total."""
            tally.append(amount)
            return len(tally)

        agent = Agent(name="adder", model=Fake(rounds), tools=[add])
        with watch:
            await Runner.run(agent, "Go.", max_turns=rounds + 1)
        return sum(tally)

    async def run() -> Measured:
        watch = Stopwatch()
        await play(WARM_UP, Stopwatch())
        done = await play(n, watch)
        return watch.each(n, done)

    return asyncio.run(run())
