"""AutoGen core on its `SingleThreadedAgentRuntime`: an ask is `send_message`, a tell is a publication to a topic.

Its messages must be dataclasses (or pydantic models), so it gets an `Add` of its own.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from autogen_core import (
    AgentId,
    MessageContext,
    RoutedAgent,
    SingleThreadedAgentRuntime,
    TopicId,
    TypeSubscription,
    message_handler,
)

from benchmarks._measure import Growth, Measured, Stopwatch
from benchmarks._work import SENDERS


@dataclass(frozen=True)
class Add:
    amount: int


ADD = Add(1)
KIND, TOPIC = "count", TopicId("counts", "one")
ONE = AgentId(KIND, "one")


class Count(RoutedAgent):
    def __init__(self) -> None:
        super().__init__("counts")
        self.total = 0

    @message_handler
    async def add(self, message: Add, ctx: MessageContext) -> int:  # noqa: ARG002  # the library's signature
        self.total += message.amount
        return self.total


def with_runtime(scenario: Callable[[SingleThreadedAgentRuntime, int], Awaitable[Measured]], n: int) -> Measured:
    """Run a scenario inside a started runtime that can make counts."""

    async def run() -> Measured:
        runtime = SingleThreadedAgentRuntime()
        await Count.register(runtime, KIND, Count)
        await runtime.add_subscription(TypeSubscription(TOPIC.type, KIND))
        runtime.start()
        measured = await scenario(runtime, n)
        await runtime.close()
        return measured

    return asyncio.run(run())


async def _total(runtime: SingleThreadedAgentRuntime) -> int:
    count: Count = await runtime.try_get_underlying_agent_instance(ONE, Count)
    return count.total


def tell(n: int) -> Measured:
    async def run(runtime: SingleThreadedAgentRuntime, n: int) -> Measured:
        watch = Stopwatch()
        with watch:
            for _ in range(n):
                await runtime.publish_message(ADD, TOPIC)
            await runtime.stop_when_idle()
        return watch.each(n, await _total(runtime))

    return with_runtime(run, n)


def fan_in(n: int) -> Measured:
    async def run(runtime: SingleThreadedAgentRuntime, n: int) -> Measured:
        watch = Stopwatch()

        async def send() -> None:
            for _ in range(n // SENDERS):
                await runtime.publish_message(ADD, TOPIC)

        with watch:
            await asyncio.gather(*[send() for _ in range(SENDERS)])
            await runtime.stop_when_idle()
        return watch.each(n, await _total(runtime))

    return with_runtime(run, n)


def ask(n: int) -> Measured:
    async def run(runtime: SingleThreadedAgentRuntime, n: int) -> Measured:
        watch, done = Stopwatch(), 0
        with watch:
            for _ in range(n):
                done = await runtime.send_message(ADD, ONE)
        return watch.each(n, done)

    return with_runtime(run, n)


async def _make(runtime: SingleThreadedAgentRuntime, n: int) -> list[AgentId]:
    """Agents are made when first reached; reaching for the instance is the way that sends no mail."""
    made = [AgentId(KIND, str(number)) for number in range(n)]
    for agent in made:
        await runtime.try_get_underlying_agent_instance(agent, Count)
    return made


def spawn(n: int) -> Measured:
    async def run(runtime: SingleThreadedAgentRuntime, n: int) -> Measured:
        watch = Stopwatch()
        with watch:
            made = await _make(runtime, n)
        return watch.each(n, sum([await runtime.send_message(ADD, agent) for agent in made]))

    return with_runtime(run, n)


def idle_memory(n: int) -> Measured:
    async def run(runtime: SingleThreadedAgentRuntime, n: int) -> Measured:
        growth = Growth()
        made = await _make(runtime, n)
        measured = growth.each(n, 0)
        return Measured(sum([await runtime.send_message(ADD, agent) for agent in made]), measured.figures)

    return with_runtime(run, n)
