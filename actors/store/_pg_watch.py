"""What a process does beside its transactions: hold its leases, hear of what others did, tell others, take up what nobody holds.

Theory
======

`NOTIFY` wakes; the table is what counts. Two channels concern a process: its own, on which it is told which of its sessions have
new mail, and one that all share, on which is told which sessions have mail and no owner. Whatever is told is looked up, so it
may be told twice, or late, or never: every `RESCAN` seconds, and whenever the line was lost, everything is looked at anyway.
What is to be told is gathered, and told in one statement per round: many messages to one process cost it one wake-up.

A lease is a row of the process, not of each session: it is held until a time by the database's clock, and renewed long before.
Taking a session raises its epoch in the same update, so whoever comes late commits nothing. Sessions that nobody holds are taken a
few at a time, skipping what another process is just taking. A process that sees that another one of its machine is gone
removes its lease: nobody waits for that to run out.

Two connections serve this alone, so that it goes on while all others wait for locks. They are begun again, with growing waits, for
as long as it takes.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import ExitStack
from functools import partial
from math import inf
from typing import Any, Protocol

import psycopg
import trio

from actors._envelope import Envelope
from actors._errors import StoreError

from ._pg_connection import TrioConnection
from ._pg_pool import FIRST, MOST, Pool
from ._pg_tables import bury, claim_some, held, let_go, mail, renew

RESCAN = 5.0  # seconds between two looks at everything
FEW = 32  # sessions that are taken at a time, and are not in memory yet
PATIENCE = 10.0  # seconds for a session that was taken to come into memory; then others may have it
AGAIN = 0.05  # seconds between two looks for room
KEYS = 350  # in one message, which may have 8,000 bytes

_TELL = """
SELECT pg_notify('postroom_' || md5(%(schema)s || holder), string_agg(key::text, ',')) FROM (
    SELECT s.key, coalesce((SELECT l.holder FROM leases l WHERE l.holder = s.holder AND l.until > clock_timestamp()), '') AS holder
    FROM sessions s WHERE s.key = ANY(%(keys)s)
) AS told WHERE holder <> %(me)s GROUP BY holder
"""
_CHANNELS = "SELECT 'postroom_' || md5(%s || %s), 'postroom_' || md5(%s)"


class Home(Protocol):
    """What the watch needs of its store."""

    @property
    def holder(self) -> str:
        """The name under which this process holds sessions."""
        ...

    def here(self) -> dict[int, int]:
        """The keys and epochs of the sessions in memory."""
        ...

    def last(self, key: int) -> int | None:
        """Up to which seq the mail of a session is in memory; None if it is not here."""
        ...

    def take_in(self, key: int, mail: Sequence[Envelope]) -> None:
        """Deliver the next mail of a session that is in memory."""
        ...

    def lost(self, key: int) -> None:
        """Somebody else has this session now."""
        ...


class Watch:
    """The background of one store."""

    def __init__(self, home: Home, info: str, place: str, lease: float) -> None:
        self.agents: Collection[str] = ()  # whose sessions may be taken up here
        self.woken: Callable[[str], object] = lambda _session: None
        self.room: Callable[[], float] = lambda: inf  # how many sessions more may come into memory
        self._home = home
        self._pool = Pool(info, place, size=1)
        self._lease = lease
        self._schema = ""
        self._scope = trio.CancelScope()
        self._over = trio.Event()
        self._call = trio.Event()
        self._outbox: set[int] = set()
        self._stale: set[int] = set()
        self._freed: dict[int, int] = {}  # what is let go of, and up to which of its mail it had nothing to do
        self._strays: set[int] = set()  # held, at the last look, and not here
        self._waiting: set[int] = set()  # sessions with mail and without an owner
        self._taken: dict[int, float] = {}  # taken, and not in memory yet: until when
        self._look = True
        self._full = False  # more waits than there is room for
        self._due = 0.0  # when the lease is renewed

    # -------------------------------------------------------------- what the store says
    async def begin(self, schema: str) -> None:
        """Take a lease, and begin."""
        self._schema, self._pool.closed = schema, False
        with ExitStack() as undo:
            undo.callback(self._pool.close)
            await self._pool.transact(partial(renew, me=self._home.holder, seconds=self._lease))
            await self._pool.transact(bury)
            undo.pop_all()
        self._due = trio.current_time() + self._lease / 3
        trio.lowlevel.spawn_system_task(self._run, name="postroom store (watch)")

    async def end(self) -> None:
        """Tell what is to be told, and hand everything over."""
        self._scope.cancel()
        await self._over.wait()
        try:
            keys = await self._pool.transact(partial(let_go, me=self._home.holder))
            self._outbox.update(keys)
            await self._pool.transact(self._give_up)
            await self._tell()
        except StoreError:
            pass  # a lease that is not handed over runs out
        self._pool.close()

    async def _give_up(self, db: TrioConnection) -> None:
        await db.execute("DELETE FROM leases WHERE holder = %s", (self._home.holder,))

    def tell(self, key: int) -> None:
        """A session was sent mail by this process, which does not have it in memory, or has not seen it there."""
        (self._outbox if self._home.last(key) is None else self._stale).add(key)
        self._call.set()

    def look(self) -> None:
        """Look for sessions that may be taken up."""
        self._look = True
        self._call.set()

    def free(self, key: int, seen: int = 0) -> None:
        """A session is not here any more."""
        self._freed[key] = seen
        self._call.set()

    def arrived(self, key: int) -> None:
        """A session came into memory."""
        if self._taken.pop(key, None) is not None and not self._taken:
            self._look = True
            self._call.set()

    def behind(self, key: int) -> None:
        """A session here lacks mail that others sent."""
        self._stale.add(key)
        self._call.set()

    # -------------------------------------------------------------- the background
    async def _run(self) -> None:
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._forever, self._listen)
                    nursery.start_soon(self._forever, self._work)
        finally:
            self._over.set()

    async def _forever(self, part: Callable[[], Awaitable[None]]) -> None:
        wait = FIRST
        while True:
            began = trio.current_time()
            try:
                await part()
            except (psycopg.Error, StoreError):
                wait = FIRST if trio.current_time() - began > 2 * MOST else min(2 * wait, MOST)
            await trio.sleep(wait)
            self._look = True
            self._stale.update(self._home.here())
            self._call.set()

    async def _listen(self) -> None:
        db = await TrioConnection.to(self._pool.info, autocommit=True)
        try:
            found = await db.execute(_CHANNELS, (self._schema, self._home.holder, self._schema))
            own, common = await found.fetchone() or ("", "")
            await db.execute(f'LISTEN "{own}"'.encode())
            await db.execute(f'LISTEN "{common}"'.encode())
            self._look = True
            self._stale.update(self._home.here())
            self._call.set()
            async for said in db.notifies():
                keys = {int(key) for key in said.payload.split(",") if key}
                (self._stale if said.channel == own else self._waiting).update(keys)
                self._call.set()
        finally:
            db.drop()

    async def _work(self) -> None:
        scan = trio.current_time() + RESCAN
        while True:
            again = trio.current_time() + AGAIN if self._full else inf
            with trio.move_on_at(min(scan, self._due, again, *self._taken.values())):
                await self._call.wait()
            self._full = False
            self._call = trio.Event()
            now = trio.current_time()
            if now >= self._due:
                await self._renew()
            if now >= scan:
                scan = now + RESCAN
                await self._pool.transact(bury)
                self._look = True
                self._stale.update(self._home.here())
            self._give_back(now)
            await self._tell()
            await self._let_go()
            await self._catch_up()
            await self._take()

    async def _renew(self) -> None:
        await self._pool.transact(partial(renew, me=self._home.holder, seconds=self._lease))
        self._due = trio.current_time() + self._lease / 3
        before = self._home.here()
        mine: dict[int, int] = await self._pool.transact(partial(held, me=self._home.holder))
        here = self._home.here()
        for key, epoch in here.items():
            if before.get(key) == epoch and mine.get(key) != epoch:
                self._home.lost(key)
        strays = mine.keys() - before.keys() - here.keys() - self._taken.keys()
        self._freed.update(dict.fromkeys(strays & self._strays, 0))
        self._strays = set(strays)

    async def _catch_up(self) -> None:
        """Read what others sent. A seq is given after the one before it is kept, so this leaves no gap."""
        while self._stale:
            key = self._stale.pop()
            last = self._home.last(key)
            if last is not None:
                found: list[Envelope] = await self._pool.transact(partial(mail, box=key, after=last))
                self._home.take_in(key, found)

    def _give_back(self, now: float) -> None:
        late = {key for key, until in self._taken.items() if until <= now}
        for key in late:
            del self._taken[key]
        self._freed.update(dict.fromkeys(late, 0))

    async def _tell(self) -> None:
        while self._outbox:
            some = [self._outbox.pop() for _ in range(min(KEYS, len(self._outbox)))]
            try:
                await self._pool.transact(
                    partial(_tell, values={"schema": self._schema, "keys": some, "me": self._home.holder})
                )
            except StoreError:
                self._outbox.update(some)
                raise

    async def _let_go(self) -> None:
        here, freed = self._home.here(), self._freed
        self._freed = {}
        gone = {key: seen for key, seen in freed.items() if key not in here}
        if not gone:
            return
        try:
            self._outbox.update(await self._pool.transact(partial(let_go, me=self._home.holder, keys=gone)))
        except StoreError:
            self._freed = gone | self._freed
            raise
        await self._tell()

    async def _take(self) -> None:
        """Take up what waits: what was told of first; then, now and then, whatever there is. No more than there is room for."""
        while self.agents and (self._waiting or self._look):
            room = int(min(FEW, self.room()) - len(self._taken))
            if room <= 0:
                self._full = True
                return
            some = [self._waiting.pop() for _ in range(min(room, len(self._waiting)))] or None
            if some is None:
                self._look = False
            work = partial(claim_some, me=self._home.holder, agents=self.agents, most=room, keys=some)
            taken: list[tuple[int, str, int]] = await self._pool.transact(work)
            for key, session, _epoch in taken:
                self._taken[key] = trio.current_time() + PATIENCE
                self.woken(session)
            if some is None and len(taken) == room:
                self._look = True


async def _tell(db: TrioConnection, values: Any) -> None:
    await db.execute(_TELL, values)
