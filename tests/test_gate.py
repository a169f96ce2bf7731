"""How often a provider may be asked, by all sessions of a system together; and what its answers cost."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import pytest
import trio
from attrs import define, field
from scenes import virtual_time
from transcripts import user

from actors import Agent, ConfigError, Limits, ModelError, RunFailed
from actors.events import UsageReported
from actors.models import Capabilities, Completion, ModelEvent, Price, ProviderLimits, Request, Text, Usage
from actors.models._gate import LONGEST, Gate, Providers, cost
from supervision import open_system

pytestmark = virtual_time

GO = Request("", (user("go"),))


@define(eq=False)
class Slow:
    """A model that answers after `seconds`, and notes when it was asked and how many answer at once."""

    seconds: float = 0.0
    tokens: int = 10
    error: ModelError | None = None
    name: str = "test:slow"
    capabilities: Capabilities = field(factory=Capabilities)
    asked: list[float] = field(factory=list)
    now: int = 0
    most: int = 0

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
        """Answer."""
        return self._stream()

    @asynccontextmanager
    async def _stream(self) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        self.asked.append(trio.current_time())
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            if self.error is not None:
                await trio.sleep(self.seconds)
                raise self.error
            yield self._events()
        finally:
            self.now -= 1

    async def _events(self) -> AsyncGenerator[ModelEvent]:
        await trio.sleep(self.seconds)
        yield Completion([Text("done")], Usage(1, self.tokens - 4, 4))


async def ask(model: Any) -> Completion:
    async with model.stream(GO) as events:
        [last] = [event async for event in events]
    assert isinstance(last, Completion)
    return last


async def asked(model: Slow, times: int, **limits: int) -> list[float]:
    """When the model was asked so many times at once, behind these limits."""
    shared = Providers({"test": ProviderLimits(**limits)}, None).shared(model)
    async with trio.open_nursery() as nursery:
        for _ in range(times):
            nursery.start_soon(ask, shared)
    return model.asked


async def test_no_more_at_once_than_there_are_places() -> None:
    """A provider that allows four refuses the fifth, and a refusal costs more than a wait."""
    model = Slow(seconds=1)
    assert await asked(model, 9, concurrency=4) == [0] * 4 + [1] * 4 + [2]
    assert model.most == 4


async def test_no_more_in_any_minute_than_there_may_be() -> None:
    """The window slides: a burst is followed by a pause."""
    assert await asked(Slow(), 7, requests_per_minute=3) == [0] * 3 + [60] * 3 + [120]


async def test_tokens_are_counted_as_they_come() -> None:
    """What is not known yet is guessed from the last request."""
    assert await asked(Slow(tokens=40), 4, tokens_per_minute=100, concurrency=1) == [0, 0, 60, 60]


async def test_a_request_that_is_larger_than_a_minute_is_made_alone() -> None:
    """A wait for ever would be a hang."""
    assert await asked(Slow(tokens=500), 3, tokens_per_minute=100, concurrency=1) == [0, 60, 120]


async def test_who_waits_is_served_in_order_and_who_gives_up_takes_nothing() -> None:
    """A session that is stopped while it waits has used nothing up."""
    model = Slow()
    shared = Providers({"test": ProviderLimits(requests_per_minute=1)}, None).shared(model)
    await ask(shared)
    with trio.move_on_after(30):
        await ask(shared)
    await ask(shared)
    assert model.asked == [0, 60]


async def test_other_providers_do_not_wait() -> None:
    """Each has limits of its own."""
    providers = Providers({"test": ProviderLimits(requests_per_minute=1)}, None)
    one, other = providers.shared(Slow()), providers.shared(Slow(name="other:slow"))
    for model in (one, other, other):
        await ask(model)
    assert trio.current_time() == 0


async def test_a_provider_that_asks_to_be_left_alone_is_by_everybody() -> None:
    """Retry-After is told to one and meant for all; other models of it are the same provider."""
    providers = Providers(None, None)
    busy = Slow(error=ModelError(model="test:busy", reason="busy", retryable=True, retry_after=20), name="test:busy")
    with pytest.raises(ModelError, match="busy"):
        await ask(providers.shared(busy))
    await ask(providers.shared(Slow()))
    assert trio.current_time() == 20


async def test_nobody_is_held_longer_than_makes_sense() -> None:
    """A server that says "tomorrow" is a refusal; the next request finds out."""
    gate = Gate(ProviderLimits())
    gate.close(86400)
    assert gate.delay(trio.current_time()) == LONGEST


@pytest.mark.parametrize(
    ("usage", "price", "paid"),
    [
        (Usage(1, 1_000_000, 100_000), Price(2, 10), 3.0),
        (Usage(1, 1_000_000, 0, cached_tokens=500_000), Price(2, 10, 0.2), 1.1),
        (Usage(1, 1_000_000, 0, cached_tokens=500_000), Price(2, 10), 2.0),
        (Usage(1, 0, 0), Price(2, 10), 0.0),
    ],
)
def test_a_cost_is_tokens_times_price(usage: Usage, price: Price, paid: float) -> None:
    """Per million; what was cached costs less where there is a price for it."""
    assert cost(usage, price) == pytest.approx(paid)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"providers": {"openai:gpt-5.2": ProviderLimits()}}, "the name of a provider"),
        ({"providers": {"openai": 4}}, "ProviderLimits"),
        ({"prices": {"openai": Price(1, 2)}}, "the name of a model"),
        ({"prices": {"openai:gpt-5.2": 3}}, "Price"),
    ],
)
def test_a_bound_or_price_written_wrongly_is_told(settings: dict[str, Any], told: str) -> None:
    """Where it is written, not at the first request."""
    with pytest.raises(ConfigError, match=told):
        open_system(**settings)


def test_a_bound_of_nothing_is_refused() -> None:
    """It would let nobody through."""
    with pytest.raises(ConfigError, match=r"concurrency=0; write a whole number, 1 or more"):
        ProviderLimits(concurrency=0)


class Clerk(Agent):
    """You are brief."""


async def test_sessions_of_a_system_share_a_provider() -> None:
    """Fifty agents behind one key are one customer."""
    model = Slow(seconds=2)
    async with open_system(providers={"test": ProviderLimits(concurrency=2)}) as system, trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon((await system.open(Clerk, model=model)).ask, "go")
    assert (model.most, model.asked) == (2, [0, 0, 2, 2, 4, 4])


async def test_a_cost_is_on_the_event_and_counts_for_the_limit() -> None:
    """Two dollars are two dollars."""
    model, prices = Slow(tokens=1_000_004), {"test:slow": Price(1, 0)}
    async with open_system(prices=prices, limits=Limits(max_cost=1.5)) as system, system.events() as events:
        session = await system.open(Clerk, model=model)
        assert [await session.ask("go"), await session.ask("go")] == ["done", "done"]
        with suppress(RunFailed):
            await session.ask("go")
        async for event in events:
            if isinstance(event, UsageReported):
                assert event.usage.cost == pytest.approx(1.0)
                break
    assert len(model.asked) == 2


# ------------------------------------------------------------------ where there is another model
def fallbacks(*models: Slow) -> Any:
    """An agent that asks these in order."""
    return type("Chooser", (Agent,), {"model": list(models), "__doc__": "You choose."})


def alone(seconds: float, name: str = "busy:one") -> Slow:
    """A model whose provider asks to be left alone."""
    return Slow(error=ModelError(model=name, status=429, reason="busy", retryable=True, retry_after=seconds), name=name)


async def test_a_provider_that_asked_to_be_left_alone_is_passed_over_where_there_is_another() -> None:
    """Nobody waits ten minutes for a model whose deputy is there; when it opens again it is asked again."""
    busy, deputy = alone(500), Slow(name="other:one")
    async with open_system() as system:
        session = await system.open(fallbacks(busy, deputy))
        for _ in range(3):
            await session.ask("go")
        assert (trio.current_time(), busy.asked, deputy.asked) == (0, [0], [0, 0, 0])
        await trio.sleep(501)
        await session.ask("go")
        assert busy.asked == [0, 501]


async def test_where_all_ask_to_be_left_alone_the_first_to_open_is_waited_for() -> None:
    """Not the last of the list."""
    one, other = alone(500, "busy:one"), alone(20, "other:one")
    async with open_system() as system:
        session = await system.open(fallbacks(one, other))
        with pytest.raises(RunFailed):
            await session.ask("go")
        assert one.asked == [0]
        assert other.asked[:2] == [0, 20]


async def test_a_refusal_by_the_others_is_no_reason_to_give_up_the_one_that_opens_later() -> None:
    """What no retry would cure there may be no trouble here."""
    busy, strict = alone(20), Slow(name="other:one", error=ModelError(model="other:one", status=400, reason="too long"))
    async with open_system() as system:
        session = await system.open(fallbacks(busy, strict))
        await session.send("go")
        await trio.sleep(5)
        busy.error = None
        assert await session.wait_answer() == "done"
        assert (busy.asked, trio.current_time()) == ([0, 20], 20)


async def test_who_stands_in_line_when_the_provider_closes_goes_elsewhere_at_once() -> None:
    """Ninety sessions with a deputy do not wait behind the four that were told."""
    busy, deputy = alone(500), Slow(name="other:one")
    busy.seconds = 1
    async with open_system(providers={"busy": ProviderLimits(concurrency=1)}) as system:
        agent = fallbacks(busy, deputy)
        async with trio.open_nursery() as nursery:
            for _ in range(9):
                nursery.start_soon((await system.open(agent)).ask, "go")
        assert (trio.current_time(), len(busy.asked), len(deputy.asked)) == (1, 1, 9)
