"""PostgreSQL stores for tests, without a system around them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import trio

from actors.store._pg_connection import TrioConnection
from actors.store.postgres import PostgresStore


@asynccontextmanager
async def opened(url: str, lease: float = 30.0, seconds: float = 20) -> AsyncIterator[PostgresStore]:
    """The store in this database; what is done in it may take so long."""
    store = PostgresStore(url, lease)
    with trio.fail_after(seconds):
        await store.open()
        try:
            yield store
        finally:
            await store.close()


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    """What is in the tables."""
    with psycopg.connect(url, autocommit=True) as db:
        found = db.execute(query.encode())
        return found.fetchall() if found.description else []


def pause(store: PostgresStore) -> None:
    """Nothing renews its lease, and it hears of nothing, as if its process were stopped."""
    store._watch._scope.cancel()


class Losing(TrioConnection):
    """A connection that loses its server at the next COMMIT: before it is done, or when it is done and nobody knows."""

    lose: str = ""
    lost: int = 0

    async def commit(self) -> None:
        """Commit, or lose it."""
        how = ""
        if Losing.lose:
            found = await self.execute("SELECT pg_current_xact_id_if_assigned() IS NOT NULL")
            if await found.fetchone() == (True,):  # it has written something
                how, Losing.lose = Losing.lose, ""
        if how != "before":
            await super().commit()
        if how:
            Losing.lost += 1
            self.drop()
            raise psycopg.OperationalError("the connection was lost")


async def until(holds: Callable[[], bool]) -> None:
    """Wait until this holds: other processes do their part in real time."""
    while not holds():  # noqa: ASYNC110
        await trio.sleep(0.002)
