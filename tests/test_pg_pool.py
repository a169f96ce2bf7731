"""Connections that will not do any more, though their server is there: others take their place."""

from functools import partial

import psycopg
import pytest
import trio
from postgres_server import empty
from postgres_stores import rows

from actors import StoreError
from actors.store._pg_connection import TrioConnection
from actors.store._pg_pool import Pool


@pytest.fixture
def url() -> str:
    """An empty schema."""
    return empty()


async def write(db: TrioConnection, pauses: list[float]) -> None:
    """Something to commit; before that, the next of these pauses."""
    await db.execute("INSERT INTO marks VALUES (1)")
    await trio.sleep(pauses.pop(0))


async def test_a_transaction_that_stood_still_for_too_long_is_done_again(url: str) -> None:
    """A laptop slept, a process was stopped: the server gave up on it, and nothing of it was kept."""
    rows(url, "CREATE TABLE marks (mark integer)")
    pool = Pool(url.replace("options=", "options=-cidle_in_transaction_session_timeout%3D50%20"), "the place")
    pool.closed = False
    await pool.transact(partial(write, pauses=[0.2, 0.0]))
    pool.close()
    assert rows(url, "SELECT count(*) FROM marks") == [(1,)]


async def test_a_connection_that_was_begun_while_the_server_was_read_only_is_not_used_for_ever(url: str) -> None:
    """It stays read-only; one that begins now is not."""
    rows(url, "CREATE TABLE marks (mark integer)")
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE ROLE reader LOGIN SUPERUSER")
        db.execute("ALTER ROLE reader SET default_transaction_read_only = on")
        pool = Pool(f"{url}&user=reader", "the place")
        pool.closed = False
        try:
            with pytest.raises(StoreError, match="is read-only; give the address of the primary"):
                await pool.transact(partial(write, pauses=[0.0]))
            db.execute("ALTER ROLE reader RESET default_transaction_read_only")
            await pool.transact(partial(write, pauses=[0.0]))
        finally:
            pool.close()
            db.execute("DROP ROLE reader")
    assert rows(url, "SELECT count(*) FROM marks") == [(1,)]
