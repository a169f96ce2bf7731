"""The store of many machines: a PostgreSQL database.

What a session's next request and decision need is in memory while it is live, and only then, in the one process that holds it.
Any process accepts mail for any session: it is inserted, and whoever holds the session is woken (`_pg_watch.py`). A mailbox in
memory takes mail in by its seqs; what arrives here before an earlier one does waits for it.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from functools import partial
from math import inf

import trio
from attrs import define, field

from actors._envelope import Envelope, Receipt
from actors._errors import LeaseLost, VersionConflict
from actors._mailbox import Mailbox
from actors._outcome import Outcome
from actors.agent._record import Commit, Draft, State

from ._admit import Accepted, Letter
from ._api import Checkup, SessionSummary
from ._box import StoredMailbox
from ._change import changed
from ._holder import LEASE, new_holder
from ._pg_connection import TrioConnection
from ._pg_continuations import answer
from ._pg_look import checkup, delete, look_at_all, retain
from ._pg_pool import Pool, UnknownEnd
from ._pg_post import accept, is_kept, lock
from ._pg_schema import migrate
from ._pg_tables import claim, commit, create, history, is_created, is_last, rows, summaries
from ._pg_trouble import place_of
from ._pg_watch import Watch
from ._tables import Change, Claim

_BOXES = "SELECT box FROM mailboxes WHERE address = ANY(%s)"


@define(eq=False)
class _Held:
    """A session in memory. One commit of it is under way at a time, so its row tells whether the last was kept."""

    key: int
    state: State
    box: StoredMailbox
    lock: trio.Lock = field(factory=trio.Lock)
    early: dict[int, Envelope] = field(factory=dict)  # mail whose predecessor is not here yet
    unsure: tuple[Change, Commit] | None = None  # a commit that may have been kept


class PostgresStore:
    """Sessions in a PostgreSQL database, durable when a commit or a send returns."""

    durable: bool = True

    def __init__(self, url: str, lease: float = LEASE) -> None:
        self.place = place_of(url)
        self.holder = new_holder()
        self._held: dict[str, _Held] = {}
        self._sessions: dict[int, str] = {}
        self._lost: Callable[[str], object] = lambda _session: None
        self._pool = Pool(url, self.place)
        self._watch = Watch(self, url, self.place, lease)

    async def open(self) -> None:
        """Connect; make the tables if there are none."""
        self._pool.closed = False
        with ExitStack() as undo:
            undo.callback(self._pool.close)
            schema: str = await self._pool.transact(partial(migrate, place=self.place))
            await self._watch.begin(schema)
            undo.pop_all()

    async def close(self) -> None:
        """Finish what was begun, and hand over what is held here."""
        if self._pool.closed:
            return
        with trio.CancelScope(shield=True):
            for each in list(self._held.values()):
                async with each.lock:
                    self._drop(each.state.id)
            await self._watch.end()
            self._pool.close()

    # -------------------------------------------------------------- sessions
    async def create(self, state: State) -> None:
        """Keep a new session."""

        def kept(key: int) -> None:
            self._hold(key, state)

        async def is_kept(db: TrioConnection, key: int) -> bool:
            return await is_created(db, state, self.holder, key)

        await self._pool.transact(partial(create, state=state, me=self.holder), kept, is_kept)

    def _hold(self, key: int, state: State) -> _Held:
        held = self._held[state.id] = _Held(key, state, StoredMailbox(state.id, self.send, state.hear))
        self._sessions[key] = state.id
        self._bound(held)
        return held

    def _bound(self, held: _Held) -> None:
        box, limits = held.box, held.state.limits
        box.capacity, box.max_hops = limits.max_unread, limits.max_hops  # type: ignore[assignment]  # all limits are set

    async def find(self, session: str) -> SessionSummary | None:
        """The session in one line, if there is one."""
        found: list[SessionSummary] = await self._pool.transact(partial(summaries, session=session))
        return next(iter(found), None)

    async def load(self, session: str) -> State | None:
        """Take a session over, with its history."""
        if session in self._held:
            return self._held[session].state

        def claimed(found: Claim | None) -> State | None:
            if found is None:
                return None
            held = self._hold(found.key, found.state)
            held.box.restore(found.unread, found.last, found.state.mail_cursor, found.state.control_cursor)
            self._watch.arrived(found.key)
            self._watch.behind(found.key)
            return found.state

        state: State | None = await self._pool.transact(partial(_take, session=session, me=self.holder), claimed)
        return state

    def release(self, state: State, seen: int = 0) -> None:
        """Let go of a session."""
        held = self._held.get(state.id)
        if held is not None and held.state is state:
            self._drop(state.id)
            self._watch.free(held.key, seen)

    def _drop(self, session: str) -> None:
        held = self._held.pop(session)
        self._sessions.pop(held.key, None)

    def mailbox(self, session: str) -> Mailbox:
        """The mailbox of a session that is in memory."""
        return self._held[session].box

    async def sessions(self) -> Sequence[SessionSummary]:
        """Every session, in the order they were created."""
        found: list[SessionSummary] = await self._pool.transact(summaries)
        return found

    async def unfinished(self, agents: Collection[str]) -> Sequence[str]:
        """None at once: those that nobody holds are taken a few at a time, and told to `watch`."""
        self._watch.agents = agents
        self._watch.look()
        await trio.lowlevel.checkpoint()
        return ()

    async def tend(self) -> None:
        """Nothing: the store has tasks of its own for it."""
        await trio.lowlevel.checkpoint()

    def watch(
        self, woken: Callable[[str], object], lost: Callable[[str], object], room: Callable[[], float] = lambda: inf
    ) -> None:
        """Call `woken` with a session that was taken up and is not in memory yet; `lost` with one that others took."""
        self._watch.woken, self._watch.room, self._lost = woken, room, lost

    async def look(self, session: str) -> tuple[State, Sequence[Envelope]] | None:
        """A copy of the session as it stands, and its unread mail."""
        found: tuple[State, Sequence[Envelope]] | None = await self._pool.transact(partial(look_at_all, session=session))
        return found

    async def checkup(self) -> Checkup:
        """How it stands."""
        found: Checkup = await self._pool.transact(partial(checkup, place=self.place))
        return found

    async def delete(self, session: str) -> None:
        """Delete it; a tombstone stays."""
        await self._pool.transact(partial(delete, session=session, me=self.holder))

    async def retain(self, before: float) -> int:
        """Forget old mail that nothing refers to."""
        gone: int = await self._pool.transact(partial(retain, before=before))
        return gone

    # -------------------------------------------------------------- commits and mail
    async def commit(self, state: State, commit_: Commit) -> None:
        """Keep a commit, then apply it."""
        held = self._held.get(state.id)
        if held is None or held.state is not state:
            raise LeaseLost(f"session {state.id} was let go of, or the store {self.place} is closed; nothing was kept")
        with trio.CancelScope(shield=True):
            async with held.lock:
                await self._settle(held)
                await self._commit(held, commit_)

    async def begin(self, state: State, commit_: Commit) -> None:
        """As `commit`."""
        await self.commit(state, commit_)

    async def _commit(self, held: _Held, commit_: Commit) -> None:
        state, box = held.state, held.box
        if max(commit_.mail_cursor or 0, commit_.control_cursor or 0) > box.last:
            raise ValueError(f"{state.id} has mail up to seq {box.last}; this commit's cursors lie behind that")
        change = changed(state, held.key, commit_, box.holds)

        def kept(accepted: list[Accepted]) -> None:
            self._deliver(accepted)
            self._apply(held, change, commit_)

        async def is_kept(db: TrioConnection, _accepted: list[Accepted]) -> bool:
            return await is_last(db, change)

        try:
            await self._pool.transact(partial(commit, change=change), kept, is_kept)
        except UnknownEnd:
            held.unsure = (change, commit_)
            raise
        except LeaseLost:
            self.lost(held.key)
            raise

    def _apply(self, held: _Held, change: Change, commit_: Commit) -> None:
        state, box = held.state, held.box
        state.apply(commit_)
        if change.cursors is not None:
            box.advance(state.mail_cursor, state.control_cursor)
            box.trim(min(state.mail_cursor, state.control_cursor))
        if commit_.limits is not None:
            self._bound(held)

    async def _settle(self, held: _Held) -> None:
        """Learn what became of a commit that nothing was heard of. `VersionConflict` if it was kept: the next was made without it."""
        if held.unsure is None:
            return
        change, commit_ = held.unsure
        there: bool = await self._pool.transact(partial(is_last, change=change))
        held.unsure = None
        if there:
            self._apply(held, change, commit_)
            to = [letter.draft.to for letter in change.letters]
            found: list[tuple[int]] = await self._pool.transact(partial(rows, query=_BOXES, values=(to,)))
            for (key,) in found:
                self._watch.tell(key)
            raise VersionConflict(f"the commit of {held.state.id} that the server did not answer was kept; this one was not")

    async def send(self, draft: Draft) -> Receipt:
        """Accept mail; durable when it returns."""
        letter = Letter.of(draft)

        async def work(db: TrioConnection) -> Accepted:
            return await accept(db, letter, await lock(db, (draft.to,)))

        async def is_there(db: TrioConnection, found: Accepted) -> bool:
            return found.envelope is not None and await is_kept(db, letter, found)

        def kept(found: Accepted) -> Receipt:
            self._deliver([found])
            return found.receipt

        receipt: Receipt = await self._pool.transact(work, kept, is_there)
        return receipt

    async def complete(self, token: str, outcome: Outcome) -> Receipt:
        """Answer a deferred call."""

        async def is_there(db: TrioConnection, done: tuple[Letter, list[Accepted]]) -> bool:
            letter, [accepted, *_] = done
            return accepted.envelope is not None and await is_kept(db, letter, accepted)

        def kept(done: tuple[Letter, list[Accepted]]) -> Receipt:
            self._deliver(done[1])
            return done[1][0].receipt

        receipt: Receipt = await self._pool.transact(partial(answer, token=token, outcome=outcome), kept, is_there)
        return receipt

    # -------------------------------------------------------------- mail that is kept
    def _deliver(self, accepted: Sequence[Accepted]) -> None:
        for each in accepted:
            if each.envelope is None:
                continue
            held = self._held.get(each.to)
            if held is None:
                self._watch.tell(each.box)
            else:
                self._take_in(held, (each.envelope,))

    def _take_in(self, held: _Held, mail: Sequence[Envelope]) -> None:
        """Deliver in the order of the seqs; what comes too early waits."""
        early, box = held.early, held.box
        early.update((envelope.seq, envelope) for envelope in mail if envelope.seq > box.last)
        while (envelope := early.pop(box.last + 1, None)) is not None:
            box.deliver(envelope)
        if early:
            self._watch.behind(held.key)

    def here(self) -> dict[int, int]:
        """The keys and epochs of the sessions in memory."""
        return {held.key: held.state.epoch for held in self._held.values()}

    def last(self, key: int) -> int | None:
        """Up to which seq the mail of a session is in memory; None if it is not here."""
        held = self._held.get(self._sessions.get(key, ""))
        return None if held is None else held.box.last

    def take_in(self, key: int, mail: Sequence[Envelope]) -> None:
        """Deliver what others sent to a session."""
        held = self._held.get(self._sessions.get(key, ""))
        if held is not None:
            self._take_in(held, mail)

    def lost(self, key: int) -> None:
        """Another process has this session: tell whoever runs it here."""
        session = self._sessions.get(key)
        if session is not None:
            self._lost(session)


async def _take(db: TrioConnection, session: str, me: str) -> Claim | None:
    taken = await claim(db, session, me)
    if taken is not None:
        past = await history(db, taken)
        taken.state.take_up(past.items, past.calls)
    return taken
