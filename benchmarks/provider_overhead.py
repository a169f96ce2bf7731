"""What does a session add to a provider's SDK? One request, its stream read, one tool call, its result.

A session and the bare SDK take turns at the same server, a conversation of twenty rounds each, in one process: the same history,
the same stream, read to its end. What the session takes longer for a round is ours: the request made of the transcript, events,
commits, the call's task, the loop; the median of these pairs counts. The collector is set as a server sets it, for both: an SDK is
100,000 objects, and a full collection of them falls on whoever happens to run.
"""

import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from statistics import median
from typing import Any

from actors import Agent, tool
from supervision import System, open_system
from supervision.terminal._collector import serving

from ._cli import main
from ._measure import Measured, Stopwatch
from ._provider import ADD, provider
from ._scenario import AtMost, Contestant, Scenario

ROUNDS = 20  # of one conversation

Bare = Callable[[Any, int], Awaitable[None]]


class Adder(Agent):
    """You add numbers with your tool."""

    max_rounds = 1_000_000
    deps: list[int]

    @tool
    async def add(self, amount: int) -> int:
        """Add to the total.

        Args:
            amount: How much.
        """
        self.deps.append(amount)
        return len(self.deps)


TOOL = Adder.__tools__["add"]


async def _session(system: System, model: str, watch: Stopwatch) -> int:
    """A conversation as an agent has it; how many calls it made."""
    done: list[int] = []
    session = await system.open(Adder, model=model, deps=done)
    with watch:
        await session.ask("Go.", timeout=60)
    return len(done)


async def _chat(client: Any, rounds: int) -> None:
    """The same with OpenAI's SDK alone."""
    function = {"name": "add", "description": TOOL.description, "parameters": TOOL.schema}
    messages: list[Any] = [{"role": "system", "content": "You add numbers with your tool."}, {"role": "user", "content": "Go."}]
    for number in range(rounds + 1):
        async with await client.chat.completions.create(
            model=f"calls-{rounds}", messages=messages, stream=True, stream_options={"include_usage": True},
            tools=[{"type": "function", "function": function}],
        ) as stream:  # fmt: skip
            said = "".join([chunk.choices[0].delta.content or "" for chunk in [each async for each in stream] if chunk.choices])
        call = {"id": f"call_{number}", "type": "function", "function": {"name": ADD[0], "arguments": '{"amount":1}'}}
        messages.append({"role": "assistant", "content": said, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": str(number)})


async def _messages(client: Any, rounds: int) -> None:
    """The same with Anthropic's SDK alone."""
    declared = {"name": "add", "description": TOOL.description, "input_schema": TOOL.schema}
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "Go."}]}]
    for number in range(rounds + 1):
        async with await client.messages.create(
            model=f"calls-{rounds}", messages=messages, stream=True, max_tokens=16_000, system="You add numbers with your tool.",
            tools=[declared],
        ) as stream:  # fmt: skip
            deltas = [each.delta for each in [each async for each in stream] if each.type == "content_block_delta"]
        said = {"type": "text", "text": "".join(getattr(delta, "text", "") for delta in deltas)}
        call = {"type": "tool_use", "id": f"call_{number}", "name": ADD[0], "input": ADD[1]}
        told = {"type": "tool_result", "tool_use_id": f"call_{number}", "content": [{"type": "text", "text": str(number)}]}
        messages += [{"role": "assistant", "content": [said, call]}, {"role": "user", "content": [told]}]


async def _compared(n: int, model: str, client: Any, bare: Bare) -> Measured:
    """Conversations in turns, until there were `n` rounds of each."""
    done, pairs = 0, []
    rounds = min(ROUNDS, n)
    async with open_system() as system, client:
        await _session(system, f"{model}:calls-2", Stopwatch())
        await bare(client, 2)
        with serving():
            for _ in range(n // rounds):
                ours, theirs = Stopwatch(), Stopwatch()
                done += await _session(system, f"{model}:calls-{rounds}", ours)
                with theirs:
                    await bare(client, rounds)
                pairs.append([watch.cpu / (rounds + 1) * 1e6 for watch in (ours, theirs)])
    each = [median(costs) for costs in zip(*pairs, strict=True)]
    over = median(ours - theirs for ours, theirs in pairs)
    return Measured(done + n % rounds, {"a round": each[0], "bare SDK": each[1], "over it": max(0.0, over)})


async def openai(n: int) -> Measured:
    sdk = import_module("openai")
    with provider("OPENAI_BASE_URL", "OPENAI_API_KEY", "/v1") as url:
        return await _compared(n, "openai", sdk.AsyncOpenAI(base_url=url, api_key="sesame"), _chat)


async def anthropic(n: int) -> Measured:
    sdk = import_module("anthropic")
    with provider("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY") as url:
        return await _compared(n, "anthropic", sdk.AsyncAnthropic(base_url=url, api_key="sesame"), _messages)


SCENARIO = Scenario(
    name="provider_overhead",
    question="A session at a provider's SDK, one tool call a round, against the SDK alone.",
    piece="round",
    n=200,
    rounds=5,
    quick=20,
    contestants=(
        Contestant("openai", "openai", kind="ours", package="openai", module="openai"),
        Contestant("anthropic", "anthropic", kind="ours", package="anthropic", module="anthropic"),
    ),
    budgets=(AtMost(1000, row="openai, over it"), AtMost(1000, row="anthropic, over it")),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
