"""How often a provider may be asked, and what its answers cost: what all sessions of a system share.

A request waits for three things, first come, first served: a free place (`concurrency`), room in the last minute (of
requests, of tokens), and the end of the time for which the provider asked to be left alone (Retry-After). How many tokens a request
will take is known when it is answered; until then it counts as many as the last one took. A minute is any minute, not one by
the clock, so a limit of 60 holds from any second to the next but 59.

A request that an SDK repeats by itself counts once.

Who has another model to ask is `hasty`: it waits for a place and for room, but not for a provider that asked to be left alone, also
where it stood in line when that was.
"""

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from math import inf
from types import TracebackType

import trio
from attrs import define, evolve, field, frozen

from actors._check import check_type, check_whole, require
from actors._errors import ModelError

from ._api import Capabilities, Model, Price, Request
from ._blocks import Completion, ModelEvent, Usage

MINUTE = 60.0
LONGEST = 600.0  # seconds that a provider can close itself for at a time: more is no wait but a refusal


@frozen(init=False)
class ProviderLimits:
    """How often all sessions of a system together may ask a provider. None is no bound.

    Args:
        concurrency: Requests at once.
        requests_per_minute: Requests in any minute.
        tokens_per_minute: Tokens in any minute, in and out. One request that takes more by itself is made alone.

    Raises:
        ConfigError: A bound that would let nothing through, or that is no whole number.
    """

    concurrency: int | None
    requests_per_minute: int | None
    tokens_per_minute: int | None

    def __init__(
        self,
        *,
        concurrency: int | None = None,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
    ) -> None:
        given = {
            "concurrency": concurrency,
            "requests_per_minute": requests_per_minute,
            "tokens_per_minute": tokens_per_minute,
        }
        for name, value in given.items():
            if value is not None:
                check_whole("ProviderLimits", name, value, 1)
        self.__attrs_init__(**given)


UNLIMITED = ProviderLimits()


class LeftAlone(ModelError):
    """Its provider asked to be left alone, and whoever asked had no wish to wait. Nothing was sent."""


@define(eq=False)
class _Taken:
    """One request's share of the minute."""

    at: float
    tokens: int


class Gate:
    """The way to one provider."""

    def __init__(self, limits: ProviderLimits) -> None:
        self._places = trio.CapacityLimiter(limits.concurrency or inf)
        self._requests = limits.requests_per_minute or inf
        self._tokens = limits.tokens_per_minute or inf
        self._open = limits == UNLIMITED
        self.counts = limits.requests_per_minute is not None or limits.tokens_per_minute is not None
        self._line = trio.StrictFIFOLock()
        self._minute: deque[_Taken] = deque()
        self._usual = 0  # tokens of the last request
        self._closed = -inf
        self._hasty: set[trio.CancelScope] = set()

    def delay(self, now: float) -> float:
        """How many seconds the next request has to wait; 0 for not at all. Pure but for forgetting what is over."""
        while self._minute and self._minute[0].at <= now - MINUTE:
            self._minute.popleft()
        opens = self._closed
        tokens, requests = sum(taken.tokens for taken in self._minute) + self._usual, len(self._minute) + 1
        for taken in self._minute:
            if tokens <= self._tokens and requests <= self._requests:
                break
            opens = max(opens, taken.at + MINUTE)
            tokens, requests = tokens - taken.tokens, requests - 1
        return max(0.0, opens - now)

    def wide_open(self) -> bool:
        """Whether nobody waits, nor is anything counted."""
        return self._open and self._closed <= trio.current_time()

    @property
    def closed_for(self) -> float:
        """For how many seconds its provider wants to be left alone."""
        return max(0.0, self._closed - trio.current_time())

    @asynccontextmanager
    async def passed(self, *, hasty: bool = False) -> AsyncGenerator[_Taken]:
        """Wait for what a request has to wait for, and hold its place. A cancelled wait takes nothing, nor does one that is `LeftAlone`."""
        taken = _Taken(0.0, 0)
        if self.wide_open():
            yield taken
            return
        await (self._hastily(taken) if hasty else self._patiently(taken))
        try:
            yield taken
        finally:
            self._places.release_on_behalf_of(taken)

    async def _patiently(self, taken: _Taken) -> None:
        await self._places.acquire_on_behalf_of(taken)
        ready = False
        try:
            async with self._line:
                while delay := self.delay(trio.current_time()):  # noqa: ASYNC110  # the time is known
                    await trio.sleep(delay)
                taken.at, taken.tokens = trio.current_time(), self._usual
                if self.counts:
                    self._minute.append(taken)
            ready = True
        finally:
            if not ready:
                self._places.release_on_behalf_of(taken)

    async def _hastily(self, taken: _Taken) -> None:
        with trio.CancelScope() as scope:
            self._hasty.add(scope)
            try:
                if self.closed_for:
                    scope.cancel()
                await self._patiently(taken)
            finally:
                self._hasty.discard(scope)
        if scope.cancelled_caught:
            reason = f"its provider asked to be left alone for another {self.closed_for:.3g} s"
            raise LeftAlone(reason=reason, retryable=True)

    def answered(self, taken: _Taken, usage: Usage) -> None:
        """It took so many."""
        taken.tokens = self._usual = usage.input_tokens + usage.output_tokens

    def close(self, seconds: float) -> None:
        """The provider asked to be left alone."""
        self._closed = max(self._closed, trio.current_time() + min(seconds, LONGEST))
        for scope in self._hasty if self.closed_for else ():
            scope.cancel()

    def heed(self, error: ModelError) -> None:
        """It may say for how long the provider wants to be left alone."""
        if error.retry_after is not None:
            self.close(error.retry_after)


class Providers:
    """The gates of a system, by the first part of a model's name, and its prices, by the whole of it."""

    def __init__(self, limits: Mapping[str, ProviderLimits] | None, prices: Mapping[str, Price] | None) -> None:
        self._limits = dict(limits or {})
        self._prices = dict(prices or {})
        for name, found in self._limits.items():
            require(":" not in name, "providers", f"{name!r}", "the name of a provider, such as 'openai'")
            check_type("providers", name, found, ProviderLimits, "ProviderLimits(...)")
        for name, price in self._prices.items():
            require(":" in name, "prices", f"{name!r}", "the name of a model, such as 'openai:gpt-5.2'")
            check_type("prices", name, price, Price, "Price(input, output, cached)")
        self._gates: dict[str, Gate] = {}

    def shared(self, model: Model) -> Model:
        """The model, asked as often as its provider may be, its usage with its cost."""
        return _Shared(model, self._gate(model.name.partition(":")[0]), self._prices.get(model.name))

    def _gate(self, provider: str) -> Gate:
        if provider not in self._gates:
            self._gates[provider] = Gate(self._limits.get(provider, UNLIMITED))
        return self._gates[provider]


def cost(usage: Usage, price: Price) -> float:
    """What it cost."""
    fresh = usage.input_tokens - usage.cached_tokens
    cached = price.input if price.cached is None else price.cached
    return (fresh * price.input + usage.cached_tokens * cached + usage.output_tokens * price.output) / 1e6


@frozen(eq=False)
class _Shared:
    """A model behind its provider's gate."""

    model: Model
    gate: Gate
    price: Price | None
    hasty: bool = False

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def capabilities(self) -> Capabilities:
        return self.model.capabilities

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
        return _Asked(self, request)

    @asynccontextmanager
    async def queued(self, request: Request) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        """Ask when it is its turn."""
        async with self.gate.passed(hasty=self.hasty) as taken, self.model.stream(request) as events:
            plain = self.price is None and not self.gate.counts
            yield events if plain else _Priced(self, taken, aiter(events))


def hasty(model: Model) -> Model:
    """The model for who can ask another one: `LeftAlone` where it would have to be waited for because it asked for that."""
    return evolve(model, hasty=True) if isinstance(model, _Shared) else model


def closed_for(model: Model) -> float:
    """For how many seconds its provider wants to be left alone."""
    return model.gate.closed_for if isinstance(model, _Shared) else 0.0


@define(eq=False)
class _Asked(AbstractAsyncContextManager[AsyncIterator[ModelEvent]]):
    """One request. Where nothing holds it up and nothing is counted, it is the model's own, but for what a failure says."""

    shared: _Shared
    request: Request
    _way: AbstractAsyncContextManager[AsyncIterator[ModelEvent]] = field(init=False)

    async def __aenter__(self) -> AsyncIterator[ModelEvent]:
        shared = self.shared
        direct = shared.price is None and shared.gate.wide_open()
        self._way = shared.model.stream(self.request) if direct else shared.queued(self.request)
        try:
            return await self._way.__aenter__()
        except ModelError as refused:
            shared.gate.heed(refused)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return await self._way.__aexit__(kind, error, trace)  # noqa: ASYNC102  # as of what it stands for
        except ModelError as failed:
            self.shared.gate.heed(failed)
            raise
        finally:
            if isinstance(error, ModelError):
                self.shared.gate.heed(error)


@frozen(eq=False)
class _Priced:
    """The events of an answer, the last with its cost."""

    shared: _Shared
    taken: _Taken
    events: AsyncIterator[ModelEvent]

    def __aiter__(self) -> AsyncIterator[ModelEvent]:
        return self

    async def __anext__(self) -> ModelEvent:
        event = await anext(self.events)
        if not isinstance(event, Completion):
            return event
        self.shared.gate.answered(self.taken, event.usage)
        price = self.shared.price
        if price is None:
            return event
        return evolve(event, usage=evolve(event.usage, cost=cost(event.usage, price)))
