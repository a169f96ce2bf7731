"""A process that takes a session over, is stopped past its lease, and goes on as if nothing had happened.

    python sleeper.py URL LEASE

It says `holds`, waits for a line, and then tries every kind of write; what each of them raised is one line of JSON.
"""

import json
import sys

import trio
from test_store_writes import WRITES

from actors.store.postgres import PostgresStore
from actors.store.sqlite import SQLiteStore


async def main(url: str, lease: float) -> None:
    """Take it over, sleep, write."""
    store = PostgresStore(url, lease) if "://" in url else SQLiteStore(url, lease)
    await store.open()
    state = await store.load("s")
    assert state is not None
    print("holds", flush=True)  # noqa: T201
    sys.stdin.readline()
    raised = {}
    for name, write in WRITES.items():
        try:
            await store.commit(state, write)
        except Exception as error:  # noqa: BLE001  # what it is is the finding
            raised[name] = type(error).__name__
    print(json.dumps(raised), flush=True)  # noqa: T201
    await store.close()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], float(sys.argv[2]))
