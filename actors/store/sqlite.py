"""The store of one machine: a SQLite file.

What a session's next request and decision need is in memory while it is live, and only then; the file has the rest. One
thread writes (`_writer.py`); a second connection reads, off its way. Nothing else in the process opens the file.
"""

import sqlite3
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from typing import Any, TypeVar

import trio
from attrs import define, frozen

from actors._envelope import Envelope, Receipt
from actors._errors import LeaseLost, StoreError
from actors._mailbox import Mailbox
from actors._outcome import Outcome
from actors.agent._record import Commit, Draft, State

from ._admit import Accepted, Letter
from ._api import Checkup, SessionSummary
from ._box import StoredMailbox
from ._change import changed, joined
from ._checkup import checkup
from ._continuations import answer
from ._holder import LEASE, new_holder
from ._retention import retain
from ._schema import connect, connect_to_read
from ._tables import (
    Change,
    Claim,
    Foreign,
    Lease,
    claim,
    commit,
    commit_both,
    create,
    delete,
    foreign,
    history,
    let_go,
    look_at_all,
    renew,
    summaries,
    unfinished,
)
from ._trouble import trouble
from ._writer import Job, Writer

T = TypeVar("T")


@define
class _Wanted:
    """Whether somebody still waits for a session. The writer does its job all the same, and the session would be nobody's."""

    release: Callable[[State], object]
    still: bool = True
    held: State | None = None

    def __enter__(self) -> None:
        """Somebody waits."""

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.still = False
            if self.held is not None:  # it came in the moment in which the wait was given up
                self.release(self.held)


@frozen
class _Begun:
    """A commit that its session has, and the file not yet."""

    change: Change
    job: Job


class SQLiteStore:
    """Sessions in a SQLite file, durable when a commit or a send returns."""

    durable: bool = True

    def __init__(self, path: str, lease: float = LEASE) -> None:
        self.path = path
        self.holder = new_holder()
        self._lease = lease
        self._renewed = 0.0
        self._states: dict[str, State] = {}
        self._boxes: dict[str, StoredMailbox] = {}
        self._keys: dict[str, int] = {}
        self._idle: dict[str, int] = {}  # up to which of its mail a session that was let go of had nothing to do
        self._begun: dict[str, _Begun] = {}  # what is on its way to the file, though its state has it
        self._woken: Callable[[str], object] = lambda _session: None
        self._lost: Callable[[str], object] = lambda _session: None
        self._writer: Writer | None = None
        self._connections: tuple[sqlite3.Connection, ...] = ()
        self._reading = trio.CapacityLimiter(1)

    async def open(self) -> None:
        """Open the file; make it if there is none."""
        writing = await trio.to_thread.run_sync(connect, self.path)
        reading = await trio.to_thread.run_sync(connect_to_read, self.path)
        self._connections = (reading, writing)
        self._writer = Writer(self.path, writing, self._look, self._seen)

    async def close(self) -> None:
        """Finish what was begun, and close the file."""
        writer, self._writer = self._writer, None
        with trio.CancelScope(shield=True):
            if writer is not None:
                with suppress(StoreError):  # a lease that is not handed over runs out
                    await writer.do(lambda db: let_go(db, self.holder))
                await writer.close()
            for db in self._connections:
                await trio.to_thread.run_sync(db.close)
        self._connections = ()
        self._states.clear()
        self._boxes.clear()

    def _open(self) -> Writer:
        if self._writer is None:
            raise StoreError(f"the store {self.path} is closed; use it inside the block of its system")
        return self._writer

    async def _read(self, fn: Callable[..., T], *args: Any) -> T:
        """Look at the file, off the writer's way: what was committed before is seen, all of one moment."""
        self._open()
        db = self._connections[0]

        def look() -> T:
            try:
                db.execute("BEGIN")
                try:
                    return fn(db, *args)
                finally:
                    db.execute("COMMIT")
            except sqlite3.Error as error:
                raise trouble(self.path, error) from None

        return await trio.to_thread.run_sync(look, limiter=self._reading)

    # -------------------------------------------------------------- sessions
    async def create(self, state: State) -> None:
        """Keep a new session."""
        lease, wanted = self._take(), _Wanted(self.release)

        def kept(key: int) -> None:
            if wanted.still:
                self._hold(key, state)
                wanted.held = state
            else:
                self._let_go(state)

        with wanted:
            await self._open().do(lambda db: create(db, state, lease), kept)

    def _take(self) -> Lease:
        now = time.time()
        return Lease(self.holder, now, now + self._lease)

    def _hold(self, key: int, state: State) -> StoredMailbox:
        self._states[state.id], self._keys[state.id] = state, key
        self._idle.pop(state.id, None)
        box = self._boxes[state.id] = StoredMailbox(state.id, self.send, state.hear)
        self._bound(state)
        return box

    def _bound(self, state: State) -> None:
        box, limits = self._boxes[state.id], state.limits
        box.capacity, box.max_hops = limits.max_unread, limits.max_hops  # type: ignore[assignment]  # all limits are set

    async def find(self, session: str) -> SessionSummary | None:
        """The session in one line, if there is one."""
        return next(iter(await self._read(summaries, session)), None)

    async def look(self, session: str) -> tuple[State, Sequence[Envelope]] | None:
        """A copy of the session as it stands, and its unread mail."""
        return await self._read(look_at_all, session)

    async def checkup(self) -> Checkup:
        """How it stands."""
        return await self._read(checkup, self.path, self._take())

    async def load(self, session: str) -> State | None:
        """Take a session over. From the moment its epoch is raised its mailbox is here; then its history is read."""
        if session in self._states:
            return self._states[session]
        lease, wanted = self._take(), _Wanted(self.release)

        def claimed(found: Claim | None) -> Claim | None:
            if found is not None and wanted.still:
                box = self._hold(found.key, found.state)
                box.restore(found.unread, found.last, found.state.mail_cursor, found.state.control_cursor)
                wanted.held = found.state
            elif found is not None:
                self._let_go(found.state)
            return found

        with wanted:
            taken: Claim | None = await self._open().do(lambda db: claim(db, session, lease), claimed)
        if taken is None:
            return None
        state = taken.state
        complete = False
        try:
            past = await self._read(history, taken.key, session, taken.last)
            state.take_up(past.items, past.calls)
            for envelope in self._boxes[session].unread(0):  # it may have come after that look, and before this moment
                state.hear(envelope)
            complete = True
        finally:
            if not complete:
                self.release(state)
        return state

    def release(self, state: State, seen: int = 0) -> None:
        """Let go of a session. Mail up to `seen` brings it back in this process no more."""
        if self._states.get(state.id) is state:
            self._drop(state.id)
            if seen > state.mail_cursor:
                self._idle[state.id] = seen
            self._let_go(state)

    def _let_go(self, state: State) -> None:
        if self._writer is not None:
            self._writer.post(lambda db: let_go(db, self.holder, state.id, state.epoch))

    def _drop(self, session: str) -> None:
        self._states.pop(session, None)
        self._boxes.pop(session, None)
        self._keys.pop(session, None)
        self._begun.pop(session, None)

    def mailbox(self, session: str) -> Mailbox:
        """The mailbox of a session that is in memory."""
        return self._boxes[session]

    async def sessions(self) -> Sequence[SessionSummary]:
        """Every session, in the order they were created."""
        return await self._read(summaries)

    async def unfinished(self, agents: Collection[str]) -> Sequence[str]:
        """The sessions of these agents that may have something to do."""
        return await self._read(unfinished, agents, self._take(), dict(self._idle))

    def watch(
        self,
        woken: Callable[[str], object],
        lost: Callable[[str], object],
        room: Callable[[], float] = lambda: inf,  # noqa: ARG002  # it takes up nothing by itself
    ) -> None:
        """Call `woken` with a session that is not in memory and was sent mail that may wake it; `lost` with one that others took."""
        self._woken, self._lost = woken, lost

    async def delete(self, session: str) -> None:
        """Delete it; a tombstone stays."""
        lease = self._take()
        await self._open().do(lambda db: delete(db, session, lease))

    async def retain(self, before: float) -> int:
        """Forget old mail that nothing refers to."""
        gone: int = await self._open().do(lambda db: retain(db, before))
        return gone

    # -------------------------------------------------------------- other processes
    async def tend(self) -> None:
        """Hold on to what is held here, and see what other processes did. Raises `StoreError`."""
        lease = self._take()
        due = lease.now - self._renewed >= self._lease / 3
        await self._open().do((lambda db: renew(db, lease)) if due else (lambda _db: None))
        self._renewed = lease.now if due else self._renewed

    def _look(self, db: sqlite3.Connection) -> Foreign:
        """In the writer's thread. What is on its way to a mailbox may be found again here; it is not taken in twice."""
        here = {session: box.last for session, box in list(self._boxes.items())}
        return foreign(db, here, self._take(), dict(self._idle))

    def _seen(self, found: Foreign) -> None:
        for session, envelopes in found.mail:
            box = self._boxes.get(session)
            for envelope in envelopes if box is not None else ():
                box.deliver(envelope)  # type: ignore[union-attr]
        for session in [each for each in self._states if each not in found.held]:
            self._lost(session)
        for session in found.woken:
            if session not in self._states:
                self._woken(session)

    # -------------------------------------------------------------- commits and mail
    async def commit(self, state: State, commit_: Commit) -> None:
        """Keep a commit, then apply it."""
        change = self._changed(state, commit_)
        writer, begun = self._open(), self._begun.get(state.id)

        def kept(accepted: list[Accepted]) -> None:
            for each in accepted:
                self._deliver(each)
            self._apply(state, commit_, change)
            self._is_kept(state.id, begun)

        work = partial(commit, change=change)
        if begun is not None:
            whole = joined(begun.change, change)
            if whole is not None and writer.withdraw(begun.job):
                work = partial(commit, change=whole)
            else:
                work = partial(commit_both, begun=begun.change, change=change)
        await writer.carry_out(work, kept)

    async def begin(self, state: State, commit_: Commit) -> None:
        """Apply a commit that is on its way to the file; the next one sees to it that it is there.

        Until the writer has it, the next one takes it along, as one change. So no failure of the next one may undo it for good: it stays
        in `_begun` until it is kept. And what came between the two, mail that found room because of it, say, keeps it where it is.
        """
        if state.id in self._begun or commit_.mail or not commit_.loop:
            await self.commit(state, commit_)
            return
        change = self._changed(state, commit_)

        def kept(accepted: list[Accepted]) -> None:
            for each in accepted:
                self._deliver(each)
            self._is_kept(state.id, begun)

        begun = _Begun(change, self._open().post(partial(commit, change=change), kept))
        self._begun[state.id] = begun
        self._apply(state, commit_, change)

    def _changed(self, state: State, commit_: Commit) -> Change:
        if self._states.get(state.id) is not state:
            raise LeaseLost(f"session {state.id} was let go of, or the store {self.path} is closed; nothing was kept")
        box = self._boxes[state.id]
        if max(commit_.mail_cursor or 0, commit_.control_cursor or 0) > box.last:
            raise ValueError(f"{state.id} has mail up to seq {box.last}; this commit's cursors lie behind that")
        return changed(state, self._keys[state.id], commit_, box.holds)

    def _apply(self, state: State, commit_: Commit, change: Change) -> None:
        state.apply(commit_)
        box = self._boxes.get(state.id)
        if box is None:
            return  # it was let go of meanwhile
        if change.cursors is not None:
            box.advance(state.mail_cursor, state.control_cursor)
            box.trim(min(state.mail_cursor, state.control_cursor))
        if commit_.limits is not None:
            self._bound(state)

    def _is_kept(self, session: str, begun: _Begun | None) -> None:
        if begun is not None and self._begun.get(session) is begun:
            del self._begun[session]

    def send(self, draft: Draft) -> Coroutine[Any, Any, Receipt]:
        """Accept mail; durable when it returns."""
        return self._open().take_in(Letter.of(draft), self._deliver)

    async def complete(self, token: str, outcome: Outcome) -> Receipt:
        """Answer a deferred call."""

        def kept(accepted: list[Accepted]) -> Receipt:
            receipt, *_ = [self._deliver(each) for each in accepted]
            return receipt

        receipt: Receipt = await self._open().do(lambda db: answer(db, token, outcome), kept)
        return receipt

    def _deliver(self, accepted: Accepted) -> Receipt:
        if accepted.envelope is not None:
            box = self._boxes.get(accepted.to)
            if box is not None:
                box.deliver(accepted.envelope)
            elif accepted.wakes:
                self._woken(accepted.to)
        return accepted.receipt
