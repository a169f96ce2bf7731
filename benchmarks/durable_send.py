"""What does it cost to accept a message durably: a receipt means that the disk has it?

Ours is the whole way: a ref, the session's rules, the checks of the mailbox, JSON, the writer, the wake-up. Beside it stands
`sqlite3` alone, which writes the same rows in the same batches from one loop, with `synchronous=FULL` as well: as many
messages in a transaction as there are senders. Time is the clock's on the wall, for a flush is what one waits for.
"""

import sqlite3
import sys
import time
from contextlib import closing

import trio

from actors import Agent, Limits
from actors.models import ScriptedModel
from actors.store._schema import connect
from supervision import open_system

from ._cli import main
from ._disk import a_file
from ._measure import Measured, Stopwatch
from ._scenario import OURS, AtLeast, Contestant, Scenario

SENDERS = (1, 20, 200)
SHARE = {1: 0.1, 20: 0.4, 200: 1.0}  # of the messages: one alone is slow


class Reader(Agent):
    """You read."""


def plural(senders: int) -> str:
    return f"{senders} sender{'s' * (senders > 1)}"


async def ours(n: int) -> Measured:
    """Each sender waits for its receipt before it sends again; the reader is paused."""
    done, figures = 0, {}
    for senders in SENDERS:
        with a_file() as path:
            async with open_system(store=f"sqlite:///{path}") as system:
                limits = Limits(max_unread=10 * n)
                session = await system.open(Reader, session="s", model=ScriptedModel([]), limits=limits)
                await session.pause()
                each, watch = max(1, int(n * SHARE[senders]) // senders), Stopwatch()

                async def send(count: int = each, to: str = session.address) -> None:
                    ref = system.session(to)  # it is awaited below
                    for _ in range(count):
                        await ref.send("A message of some forty characters.")

                with watch:
                    async with trio.open_nursery() as nursery:
                        for _ in range(senders):
                            nursery.start_soon(send)
                [kept] = await system.sessions()
                done += kept.unread
                figures[plural(senders)] = watch.waited(senders * each)
    intended = sum(senders * max(1, int(n * SHARE[senders]) // senders) for senders in SENDERS)
    return Measured(n if done == intended else done, figures)


def raw(n: int) -> Measured:
    """The same rows, the same batches, nothing around them."""
    figures = {}
    for senders in SENDERS:
        with a_file() as path:
            watch, count = Stopwatch(), max(1, int(n * SHARE[senders]) // senders)
            with closing(connect(str(path))) as db:
                _session(db)
                with watch:
                    for batch in range(count):
                        _batch(db, batch * senders, senders)
                assert db.execute("SELECT count(*) FROM mail").fetchone() == (count * senders,)
            figures[plural(senders)] = watch.waited(count * senders)
    return Measured(n, figures)


def _session(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO sessions (id, agent, status, limits, facts, codec) VALUES ('s', 'Reader', 'paused', '{}', '{}', 1)")
    db.execute("INSERT INTO mailboxes (box) VALUES (1)")


def _batch(db: sqlite3.Connection, before: int, senders: int) -> None:
    db.execute("BEGIN IMMEDIATE")
    for seq in range(before + 1, before + senders + 1):
        row = ((1 << 32) + seq, 0, None, '{"type":"user","owner":null}', 0, time.time(), None, None)
        body = '{"type":"user_message","text":"A message of some forty characters.","media":[]}'
        db.execute("INSERT INTO mail VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, body, 1))
        db.execute("UPDATE mailboxes SET last = ?, wakes = ? WHERE box = 1", (seq, seq))
    db.execute("COMMIT")


SCENARIO = Scenario(
    name="durable_send",
    question="Messages that are on the disk when their receipt comes, by the clock on the wall.",
    piece="message",
    n=4_000,
    rounds=5,
    quick=200,
    contestants=(OURS, Contestant("raw", "sqlite3")),
    budgets=tuple(AtLeast(0.5, f"sqlite3, {plural(each)}", row=f"ours, {plural(each)}") for each in (1, 200)),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
