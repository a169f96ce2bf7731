"""Sessions that rest leave memory; mail that wakes them brings them back (`_waking.py`).

    a session has rested for `idle_timeout` seconds        it leaves
    more than `max_live` are in memory                     those that have rested longest leave, as soon as they rest

A session rests while it has no run, no call and no order to apply. One that somebody looks at closely stays: a task waits for its
end, an actor watches it, its host gave it an inbox. Leaving is no end: its status stays, its watchers and readers hear nothing.
Where nothing is stored, nothing leaves.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from typing import Any

import trio

from actors._errors import StoreError

from ._session import SessionPlace

TEND = 0.25  # seconds between two looks at what other processes did
OFTEN = 5.0  # seconds between two looks for sessions that rest, or a quarter of `idle_timeout`
FORGET = 3600.0  # seconds between two looks for mail to forget, or `retention` if that is less
SCAN = 10.0  # seconds between two looks for sessions whose owner is gone


class Resting:
    """Watches over the sessions of one system that are in memory."""

    def __init__(
        self, root: Any, idle_timeout: float = 60.0, max_live: int | None = None, retention: float | None = None
    ) -> None:
        self._root = root
        self._idle_timeout = idle_timeout
        self._retention = retention
        self._forgot = -inf
        self._max_live = inf if max_live is None else max_live
        self._coming = 0
        self._door = trio.Lock()  # one looks for room at a time, first come, first served
        self._since: dict[str, tuple[object, float]] = {}  # since when each rests, and what would show that it did something

    async def tend(self) -> None:
        """Until cancelled: keep leases, take in what other processes did, let go of what rests."""
        root = self._root
        looked = scanned = rested = trio.current_time()
        often = max(0.01, min(OFTEN, self._idle_timeout / 4))
        while root.store.durable:
            await trio.sleep(min(TEND, often))
            try:
                if trio.current_time() - looked >= TEND:
                    looked = trio.current_time()
                    await root.store.tend()
                await self._forget()
                if looked - scanned >= SCAN:
                    scanned = looked
                    await root.waking.scan()
            except StoreError as error:
                root.waking.trouble(error)
            if trio.current_time() - rested >= often:
                rested = trio.current_time()
                self.let_go(self._idle_timeout)

    async def _forget(self) -> None:
        now = trio.current_time()
        if self._retention is not None and now - self._forgot >= min(FORGET, self._retention):
            self._forgot = now
            await self._root.store.retain(time.time() - self._retention)

    def let_go(self, longer_than: float) -> None:
        """Those that have rested so long leave; and, where there are too many, those that rested longest."""
        now = trio.current_time()
        live = [place for place in self._root.router.places.values() if isinstance(place, SessionPlace)]
        resting: list[tuple[float, SessionPlace]] = []
        for place in live:
            mark = (place.state.version, place.mailbox.last)
            before, since = self._since.get(place.address, (None, now))
            since = since if before == mark else now
            self._since[place.address] = (mark, since)
            if place.can_leave():
                resting.append((since, place))
        resting.sort(key=lambda each: each[0])
        too_many = len(live) - self._max_live
        for number, (since, place) in enumerate(resting):
            if now - since >= longer_than or number < too_many:
                place.leave("it rests")
                self._since.pop(place.address, None)
        if len(self._since) > 2 * len(live) + 100:
            here = {place.address for place in live}
            self._since = {address: seen for address, seen in self._since.items() if address in here}

    @asynccontextmanager
    async def room(self) -> AsyncIterator[None]:
        """Wait until there is room in memory for one more, which is brought in inside; those that rest make room."""
        async with self._door:
            while self._max_live != inf and self._live() + self._coming >= self._max_live:
                self.let_go(0.0)
                await trio.sleep(0.01)
            self._coming += 1
        try:
            yield
        finally:
            self._coming -= 1

    def places_left(self) -> float:
        """How many more may come into memory, where those that rest make room."""
        if self._max_live == inf:
            return inf
        places = self._root.router.places.values()
        return self._max_live - sum(isinstance(place, SessionPlace) and not place.can_leave() for place in places)

    def _live(self) -> int:
        return sum(isinstance(place, SessionPlace) for place in self._root.router.places.values())
