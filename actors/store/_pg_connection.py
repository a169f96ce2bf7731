"""A psycopg connection on trio: no thread, no other event loop.

psycopg talks to libpq in generators that yield what they wait for; here trio waits for it. A cancelled query is cancelled at
the server too, and read to its end, so that its connection can be used again; where the server does not answer within `GRACE`
seconds, the connection is closed instead.
"""

import os
import socket
from typing import Any, TypeVar

import psycopg
import trio
from psycopg import errors, pq
from psycopg.abc import PQGen, PQGenConn
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow
from psycopg.waiting import Ready, Wait

T = TypeVar("T")
GRACE = 5.0  # seconds to end a query that is not wanted any more
CONNECT = 10.0  # seconds to connect, where the user's `connect_timeout` says nothing else
KEEPALIVE = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}

LOCKED = 10_000  # milliseconds for which a row may be locked by others, where nobody set `lock_timeout`

_SETTINGS = f"""
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
UNION ALL SELECT set_config('lock_timeout', '{LOCKED}', false) WHERE current_setting('lock_timeout') = '0'
"""  # ours


async def _until(fd: int, want: int) -> int:
    """Wait until the socket is as wanted; what it is ready for."""
    if want == Wait.R:
        await trio.lowlevel.wait_readable(fd)
        return Ready.R
    if want == Wait.W:
        await trio.lowlevel.wait_writable(fd)
        return Ready.W
    found = 0
    async with trio.open_nursery() as nursery:

        async def one(wait: Any, ready: int) -> None:
            nonlocal found
            await wait(fd)
            found |= ready
            nursery.cancel_scope.cancel()

        nursery.start_soon(one, trio.lowlevel.wait_readable, Ready.R)
        nursery.start_soon(one, trio.lowlevel.wait_writable, Ready.W)
    return found


async def _drive(gen: PQGen[T], fd: int) -> T:
    """Run a generator of psycopg's to its end."""
    try:
        want = next(gen)
        while True:
            want = gen.send(await _until(fd, want))
    except StopIteration as end:
        await trio.lowlevel.cancel_shielded_checkpoint()
        result: T = end.value
        return result


async def _drive_to(gen: PQGenConn[T]) -> T:
    """As `_drive`, for one that chooses its socket as it goes."""
    try:
        fd, want = next(gen)
        while True:
            fd, want = gen.send(await _until(fd, want))
    except StopIteration as end:
        result: T = end.value
        return result


async def resolved(info: str) -> dict[str, Any]:
    """The parameters of a connection with the addresses of its hosts, for libpq would look them up with the loop held."""
    params: dict[str, Any] = {**KEEPALIVE, **conninfo_to_dict(info)}
    hosts = str(params.get("host") or os.environ.get("PGHOST") or "").split(",")
    if params.get("hostaddr") or all(not host or host.startswith(("/", "@")) for host in hosts):
        return params
    ports = str(params.get("port") or os.environ.get("PGPORT") or "5432").split(",")
    found: list[tuple[str, str, str]] = []
    for place, host in enumerate(hosts):
        port = ports[place] if len(ports) > 1 else ports[0]
        if not host or host.startswith(("/", "@")):
            found.append((host, "", port))
            continue
        try:
            known = await trio.socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            raise errors.OperationalError(f"host {host!r} is not known: {error}") from None
        found += [(host, str(address), port) for address in dict.fromkeys(each[4][0] for each in known)]
    names = zip(("host", "hostaddr", "port"), zip(*found, strict=True), strict=True)
    return {**params, **{name: ",".join(column) for name, column in names}}


class TrioConnection(psycopg.AsyncConnection[TupleRow]):
    """A connection that waits with trio."""

    def __init__(self, pgconn: Any, *args: Any, **options: Any) -> None:
        super().__init__(pgconn, *args, **options)
        self.lock = trio.Lock()  # type: ignore[assignment]  # used as the lock of asyncio is

    @classmethod
    async def to(cls, info: str, *, autocommit: bool = False) -> "TrioConnection":
        """Connect. Raises `psycopg.OperationalError`."""
        params = await resolved(info)
        seconds = float(params.pop("connect_timeout", None) or CONNECT)
        found: TrioConnection | None = None
        with trio.move_on_after(seconds):
            found = await _drive_to(cls._connect_gen(make_conninfo("", **params)))
        if found is None:
            raise errors.ConnectionTimeout(f"no answer within {seconds:g} s")
        found._autocommit = autocommit  # noqa: SLF001  # as psycopg's own `connect` does
        return found

    async def set_up(self) -> None:
        """Let a COMMIT be answered when it is on disk, also where a server is set to answer sooner; wait for no lock for ever."""
        await self.execute(_SETTINGS.encode())
        await self.commit()

    @property
    def idle(self) -> bool:
        """Whether it is open and outside any transaction."""
        return not self.closed and self.pgconn.transaction_status == pq.TransactionStatus.IDLE

    async def end_transaction(self) -> None:
        """Roll back, if there is something to roll back and somebody to do it."""
        if not self.closed and not self.idle:
            try:
                await self.rollback()
            except psycopg.Error:
                self.drop()

    def drop(self) -> None:
        """Close it at once."""
        self._closed = True
        self.pgconn.finish()

    async def wait(self, gen: PQGen[T], interval: float = 0.0, timeout: float | None = None) -> T:  # noqa: ARG002, ASYNC109  # theirs
        """Run a generator; cancelled, end its query."""
        try:
            if timeout is None:
                return await _drive(gen, self.pgconn.socket)
            with trio.fail_after(timeout):
                return await _drive(gen, self.pgconn.socket)
        except trio.TooSlowError:
            raise errors._WaitTimeout from None  # noqa: SLF001  # what `notifies` expects
        except (trio.Cancelled, KeyboardInterrupt):
            if self.pgconn.transaction_status == pq.TransactionStatus.ACTIVE:
                with trio.move_on_after(GRACE, shield=True):
                    await self._end_query(gen)
                if self.pgconn.transaction_status == pq.TransactionStatus.ACTIVE:
                    self.drop()
            raise

    async def _end_query(self, gen: PQGen[Any]) -> None:
        try:
            await _drive_to(self._cancel_gen())
            await _drive(gen, self.pgconn.socket)
        except psycopg.Error:
            return  # ended as asked, or by itself, or lost with its connection
