"""A few connections to one database, and transactions on them that outlive the loss of the server.

Theory
======

A transaction is repeated as long as it is known that nothing of it was kept: the server was away, or chose it as the victim of
a deadlock. Between two tries the wait doubles, from 50 ms to 2 s, for `PATIENCE` seconds in all; then the caller gets the error
in words. If the connection is lost while a COMMIT is on its way, nobody can tell by that whether it was kept. So each
transaction brings a question (`kept`) that is asked on the next connection: yes, and it is done; no, and it is repeated.

Until its COMMIT a transaction can be cancelled. From then on it cannot, and what follows from it in memory (`then`) is done before
any other task runs.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
import trio
from trio.lowlevel import enable_ki_protection

from actors._errors import StoreError

from ._pg_connection import GRACE, TrioConnection
from ._pg_trouble import lost, passing, trouble, unfit

T = TypeVar("T")
SIZE = 8  # connections, one for each transaction in progress
PATIENCE = 10.0  # seconds for which a server may be away before a caller hears of it
FIRST, MOST = 0.05, 2.0  # seconds between two tries
ANSWER = 10.0  # seconds for a COMMIT to be answered; then its connection counts as lost
UNKNOWN = "whether what was asked was kept is not known: mail that is sent again under its id is kept once"


class UnknownEnd(StoreError):
    """The server went away during a COMMIT, and did not come back in time to tell whether it was kept."""


Work = Callable[[TrioConnection], Awaitable[T]]
Question = Callable[[TrioConnection, T], Awaitable[bool]]


async def _never(_db: TrioConnection, _result: Any) -> bool:
    """What only reads, or may be done twice, is repeated."""
    return False


class Pool:
    """Connections of one process to one database."""

    def __init__(self, info: str, place: str, size: int = SIZE) -> None:
        self.info = info
        self.place = place
        self.closed = True
        self._idle: list[TrioConnection] = []
        self._places = trio.CapacityLimiter(size)

    def close(self) -> None:
        """Close what is idle; what is in use is closed when it comes back."""
        self.closed = True
        self._forget()

    def _forget(self) -> None:
        while self._idle:
            self._idle.pop().drop()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[TrioConnection]:
        """A connection without a transaction; one that is left inside a transaction is rolled back. Raises `psycopg.Error`."""
        async with self._places:
            known = bool(self._idle)
            db = self._idle.pop() if known else await TrioConnection.to(self.info)
            try:
                if not known:
                    await db.set_up()
                yield db
            finally:
                with trio.move_on_after(GRACE, shield=True):
                    await db.end_transaction()
                if self.closed or not db.idle:
                    db.drop()
                else:
                    self._idle.append(db)

    @enable_ki_protection
    async def transact(self, work: Work[T], then: Callable[[T], Any] | None = None, kept: Question[T] = _never) -> Any:
        """Run `work` in a transaction; what `then` makes of its result, or the result, once it is durable.

        Raises:
            UnknownEnd: It may have been kept: the server went away meanwhile, for long.
            StoreError: The server could not; nothing was kept.
        """
        until = trio.current_time() + PATIENCE
        unsure: list[T] = []
        wait = FIRST
        while True:
            if self.closed:
                raise StoreError(f"the store {self.place} is closed; use it inside the block of its system")
            try:
                return await self._once(work, then, kept, unsure)
            except UnicodeEncodeError as error:  # half a character: it was never sent
                raise trouble(self.place, psycopg.DataError(str(error))) from None
            except psycopg.Error as error:
                if lost(error) or unfit(error):
                    self._forget()
                if not passing(error) or trio.current_time() + wait > until:
                    if not unsure:
                        raise trouble(self.place, error) from None
                    raise UnknownEnd(str(trouble(self.place, error, UNKNOWN))) from None
            await trio.sleep(wait)
            wait = min(2 * wait, MOST)

    async def _once(self, work: Work[T], then: Callable[[T], Any] | None, kept: Question[T], unsure: list[T]) -> Any:
        """One try. A result whose COMMIT was not answered stays in `unsure`."""
        async with self.connection() as db:
            if unsure:
                if await kept(db, unsure[0]):
                    return unsure[0] if then is None else then(unsure[0])
                unsure.clear()
            result = await work(db)
            with trio.move_on_after(ANSWER, shield=True):
                unsure.append(result)
                await self._commit(db, unsure)
                return result if then is None else then(result)
            db.drop()
            raise psycopg.OperationalError(f"a COMMIT was not answered within {ANSWER:g} s")

    async def _commit(self, db: TrioConnection, unsure: list[T]) -> None:
        try:
            await db.commit()
        except psycopg.Error as error:
            if not lost(error):
                unsure.clear()
            raise
        unsure.clear()
