"""The timers of a session: kept with it, and told as mail when their time comes.

A timer is set and cancelled by a commit, so it outlives the loop, and the process where the session's store does. It fires by one
commit too, which drops it and sends its `TimerFired` under the timer's id: once, however often that is tried. A full mailbox makes
it wait, and so does a store that cannot keep it.
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from actors._envelope import FromSystem, TimerFired
from actors._errors import LeaseLost, MailboxFull, SendRefused, StoreError
from actors._waiters import OneByOne
from actors.store._api import Store

from ._record import Commit, Draft, State, TimerRow

log = logging.getLogger("postroom.agent")
AGAIN = 1.0  # seconds until one that could not be told tries again


class Clock(Protocol):
    """What calls back later."""

    def after(self, seconds: float, fn: Callable[[], Awaitable[None]]) -> Any:
        """Run an async function in so many seconds, in a task of the system's."""
        ...

    def forget(self, entry: Any) -> None:
        """Not any more."""
        ...


def timer(id: str, seconds: float, text: str, label: str | None, hops: int) -> TimerRow:
    """A timer that fires in so many seconds. Without a label, its id is one."""
    return TimerRow(id, datetime.now(UTC) + timedelta(seconds=seconds), id if label is None else label, text, hops)


class Timers:
    """Those of one session, in this process."""

    def __init__(self, state: State, store: Store, clock: Clock) -> None:
        self._state = state
        self._store = store
        self._clock = clock
        self._armed: dict[str, Any] = {}
        self._one: OneByOne | None = None

    def one(self) -> OneByOne:
        """Whether a timer fires or is cancelled is decided and kept inside of this, one by one: whoever comes second finds it done."""
        self._one = self._one or OneByOne()
        return self._one

    def arm_all(self) -> None:
        """Take up those that are kept; what fell due meanwhile fires now."""
        now = datetime.now(UTC)
        for row in self._state.timers.values():
            if row.id not in self._armed:
                self.arm(row, max(0.0, (row.due - now).total_seconds()))

    def arm(self, row: TimerRow, seconds: float) -> None:
        """It is kept: let it fire in so many seconds."""

        async def fire() -> None:
            await self._fire(row)

        self._armed[row.id] = self._clock.after(seconds, fire)

    def disarm(self, *ids: str) -> None:
        """These are not kept any more."""
        for id in ids:
            entry = self._armed.pop(id, None)
            if entry is not None:
                self._clock.forget(entry)

    def follow(self) -> None:
        """Orders may have set some, and dropped some."""
        self.disarm(*(set(self._armed) - set(self._state.timers)))
        self.arm_all()

    def soonest(self) -> float:
        """In how many seconds the first of them falls due."""
        now = datetime.now(UTC)
        return max(0.0, min((row.due - now).total_seconds() for row in self._state.timers.values()))

    def close(self) -> None:
        """This activation is over."""
        self.disarm(*self._armed)

    async def set(self, row: TimerRow, seconds: float) -> None:
        """Keep it, and arm it."""
        await self._store.commit(self._state, Commit(timers=(row,), loop=False))
        self.arm(row, seconds)

    async def cancel(self, id: str) -> bool:
        """Whether it had not fired yet."""
        async with self.one():
            if id not in self._state.timers:
                return False
            await self._store.commit(self._state, Commit(timers_gone=(id,), loop=False))
            self.disarm(id)
            return True

    async def _fire(self, row: TimerRow) -> None:
        async with self.one():
            await self._told(row)

    async def _told(self, row: TimerRow) -> None:
        if self._armed.pop(row.id, None) is None or row.id not in self._state.timers:
            return
        mail = Draft(self._state.id, TimerFired(row.label, row.text), FromSystem("timer"), row.id, hops=row.hops)
        try:
            await self._store.commit(self._state, Commit(timers_gone=(row.id,), mail=(mail,), loop=False))
        except LeaseLost:
            return  # whoever has the session now has its timers
        except (MailboxFull, StoreError) as error:
            if isinstance(error, StoreError):
                log.error("timer %s of %s could not be kept yet: %s", row.id, self._state.id, error)  # noqa: TRY400  # it is worded
            self.arm(row, AGAIN)
        except SendRefused:
            return  # the session has ended: there is nobody to tell
