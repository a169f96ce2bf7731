"""Systems on a stored place, opened again and again: what a process leaves behind, the next one finds.

A place is the path of a SQLite file or the address of a PostgreSQL schema.
"""

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import trio
from attrs import define, field
from postgres_stores import pause, rows

from actors import Agent, ResultsItem, SessionRecord, ToolContext, UserItem, tool
from actors.models import Scripted, ScriptedModel
from actors.store._pg_tables import renew
from actors.store.postgres import PostgresStore
from supervision import System, open_system


@define
class Effects:
    """What tools did, in order: their idempotency keys."""

    keys: list[str] = field(factory=list)
    waits: bool = True  # the next call runs until `ends`
    ends: trio.Event = field(factory=trio.Event)


class Clerk(Agent):
    """You keep books."""

    model: ClassVar[ScriptedModel] = ScriptedModel([])
    deps: Effects

    async def _do(self, context: ToolContext) -> str:
        self.deps.keys.append(context.idempotency_key)
        if self.deps.waits:
            await self.deps.ends.wait()
        return "booked"

    @tool
    async def book(self, context: ToolContext) -> str:
        """Book it, once."""
        return await self._do(context)

    @tool(idempotent=True)
    async def note(self, context: ToolContext) -> str:
        """Note it; twice does no harm."""
        return await self._do(context)

    @tool(idempotent=True, attach=0)
    async def note_later(self, context: ToolContext) -> str:
        """As `note`, in the background."""
        return await self._do(context)


def played(*script: Scripted) -> type[Clerk]:
    """A clerk whose model plays this script; its sessions are the same clerk's."""
    return type("Clerk", (Clerk,), {"model": ScriptedModel(script), "__doc__": "You keep books."})


async def until(holds: Callable[[], bool]) -> None:
    """Wait until this holds: threads do their part in real time, and tell nobody."""
    while not holds():  # noqa: ASYNC110
        await trio.sleep(0.01)


def outcomes(record: SessionRecord) -> list[str]:
    """The statuses of all results, in order."""
    items = [item for item in record.items if isinstance(item, ResultsItem)]
    return [each.outcome.status for item in items for each in item.results]


def said(record: SessionRecord) -> list[str]:
    """What people said, in order, as often as it stands there."""
    items = [item for item in record.items if isinstance(item, UserItem)]
    return [getattr(mail.body, "text", "") for item in items for mail in item.mail]


BURY = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as db:  # this process lives on: its lease would bind the next one
    db.execute("UPDATE sessions SET holder = NULL")
"""


def url_of(place: Path | str) -> str:
    """What a user writes."""
    return f"sqlite:///{place}" if isinstance(place, Path) else place


@asynccontextmanager
async def system_on(place: Path | str, *agents: type[Agent], deps: Effects | None = None, **how: Any) -> AsyncIterator[System]:
    """A system on this place."""
    made = {agent: (lambda: deps) for agent in agents} if deps is not None else None
    with trio.fail_after(20):
        async with open_system(store=url_of(place), agents=agents, deps=made, **how) as system:
            yield system


async def killed(place: Path | str, agent: type[Agent], deps: Effects, words: Sequence[str] = ("go",)) -> None:
    """Run a session until its tool was begun, and leave what stands there then: that is what a SIGKILL leaves."""
    alive = place.with_suffix(".alive") if isinstance(place, Path) else place
    async with system_on(alive, agent, deps=deps) as system:
        session = await system.open(agent, session="s", deps=deps)
        for each in words:
            await session.send(each)
        await until(lambda: bool(deps.keys))
        await trio.sleep(0.05)
        if isinstance(place, Path):
            await _copied(place)
        else:
            _fenced(system, place)
        deps.waits = False
        deps.keys.clear()


async def _copied(path: Path) -> None:
    for suffix in ("", "-wal"):  # by another process: to open and close the file here would undo SQLite's locks
        await trio.run_process(["cp", f"{path.with_suffix('.alive')}{suffix}", f"{path}{suffix}"])
    await trio.run_process([sys.executable, "-c", BURY, str(path)])


def _fenced(system: System, url: str) -> None:
    """Whatever it still wants to write is refused, and it does not hear of it before it ends."""
    store: Any = system._root.store
    pause(store)
    rows(url, "UPDATE sessions SET epoch = epoch + 1, holder = NULL")


async def asleep(system: System) -> None:
    """As if its process slept past its lease."""
    store: Any = system._root.store
    if isinstance(store, PostgresStore):
        await store._pool.transact(partial(renew, me=store.holder, seconds=0))
    else:
        store._lease = store._renewed = 0.0
        await store.tend()


def awake(system: System) -> None:
    """Its time to renew its lease has come."""
    store: Any = system._root.store
    if isinstance(store, PostgresStore):
        store._watch._due = 0.0
        store._watch.look()
