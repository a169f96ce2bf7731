"""SQLite stores for tests, without a system around them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from actors import FromUser, UserMessage
from actors.agent._record import Draft
from actors.store.sqlite import SQLiteStore


@asynccontextmanager
async def opened(path: str, lease: float = 30.0) -> AsyncIterator[SQLiteStore]:
    """The store on this file."""
    store = SQLiteStore(path, lease)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def mail(body: object, id: str | None = None, to: str = "s") -> Draft:
    """A person's mail."""
    return Draft(to, UserMessage(body) if isinstance(body, str) else body, FromUser("ada"), id)
