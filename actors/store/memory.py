"""The store of a process that keeps nothing: sessions live as long as it does."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from math import inf

import trio

from actors._envelope import Envelope, Receipt
from actors._errors import LeaseLost, RecipientStopped, SendRefused, StoreError, UnknownRecipient, UnknownToken
from actors._exit import Status, Stopped
from actors._mailbox import ALWAYS_ACCEPTED, Mailbox
from actors._outcome import Outcome
from actors.agent._news import News, news_of
from actors.agent._record import Commit, Draft, State, WatchRow

from ._answer import Deferred, judged
from ._api import Checkup, SessionSummary, tombstone


class MemoryStore:
    """Sessions in memory. A commit runs without a checkpoint, so it is atomic among the tasks of the run."""

    durable: bool = False

    def __init__(self) -> None:
        self._states: dict[str, State] = {}
        self._boxes: dict[str, Mailbox] = {}
        self._deleted: set[str] = set()
        self._tokens: dict[str, tuple[str, str]] = {}  # the session and the call that each stands for
        self._answers: dict[str, int] = {}  # the seqs of the answers that were given
        self._watches: dict[str, dict[tuple[str, str], WatchRow]] = {}  # of each watched session, by watcher and id

    async def open(self) -> None:
        """There is nothing to open."""

    async def close(self) -> None:
        """There is nothing to close."""

    async def create(self, state: State) -> None:
        """Keep a new session."""
        if state.id in self._states or state.id in self._deleted:
            raise StoreError(f"session {state.id} is there already; open it instead of creating it")
        self._states[state.id] = state
        self._bound(state)

    async def find(self, session: str) -> SessionSummary | None:
        """The session in one line, if there is one."""
        if session in self._deleted:
            return tombstone(session)
        state = self._states.get(session)
        return None if state is None else self._summary(state)

    async def look(self, session: str) -> tuple[State, Sequence[Envelope]] | None:
        """The session, and its unread mail."""
        state = self._states.get(session)
        if state is None:
            return None
        return state, self.mailbox(session).unread(min(state.mail_cursor, state.control_cursor))

    async def checkup(self) -> Checkup:
        """How it stands."""
        statuses = Counter(state.status.value for state in self._states.values())
        unread = [each for box in self._boxes.values() for each in box.unread(box.cursor)]
        return Checkup(
            where="memory", schema=0, bytes=0, sessions=statuses, mail=sum(box.last for box in self._boxes.values()), unread=len(unread),
            oldest_unread=min((each.sent for each in unread), default=None),
            open_calls=sum(len(state.live) + len(state.deferred) for state in self._states.values()),
            timers=sum(len(state.timers) for state in self._states.values()), held=len(self._states), expired=0, damage=(),
        )  # fmt: skip

    async def load(self, session: str) -> State | None:
        """The session's state, if there is one."""
        return self._states.get(session)

    def release(self, state: State, seen: int = 0) -> None:
        """Nothing: it is kept where it is."""

    async def delete(self, session: str) -> None:
        """Forget it, but for its id."""
        if self._states.pop(session, None) is not None:
            self._boxes.pop(session, None)
            self._deleted.add(session)
            self._unwatch(session)

    async def retain(self, before: float) -> int:  # noqa: ARG002
        """Nothing: mail is freed as it is read."""
        return 0

    async def commit(self, state: State, commit: Commit) -> None:
        """Apply the commit; what can be refused first, then what cannot."""
        if self._states.get(state.id) is not state:
            raise LeaseLost(f"session {state.id} is not in the store any more; nothing was kept")
        box = self.mailbox(state.id)
        if max(commit.mail_cursor or 0, commit.control_cursor or 0) > box.last:
            raise ValueError(f"{state.id} has mail up to seq {box.last}; this commit's cursors lie behind that")
        self._check(commit.mail)
        for draft in sorted(commit.mail, key=lambda each: isinstance(each.body, ALWAYS_ACCEPTED)):
            self._accept(draft)
        news = news_of(state, commit) if state.id in self._watches or state.parent is not None else None
        state.apply(commit)
        self._tokens.update((row.token, (state.id, row.id)) for row in commit.calls if row.deferred and row.token is not None)
        if news is not None:
            self._tell(state.id, news)
        if commit.watches or commit.watches_gone or commit.status is Status.STOPPED:
            self._watch(state.id, commit)
        if commit.mail_cursor is not None or commit.control_cursor is not None:
            box.advance(state.mail_cursor, state.control_cursor)
            box.trim(min(state.mail_cursor, state.control_cursor))
        if commit.limits is not None:
            self._bound(state)

    async def begin(self, state: State, commit: Commit) -> None:
        """As `commit`: it takes no time here."""
        await self.commit(state, commit)

    async def send(self, draft: Draft) -> Receipt:
        """Accept mail."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self._check((draft,))
        receipt = self._accept(draft)
        await trio.lowlevel.cancel_shielded_checkpoint()
        return receipt

    async def complete(self, token: str, outcome: Outcome) -> Receipt:
        """Answer a deferred call."""
        await trio.lowlevel.checkpoint_if_cancelled()
        found = self._deferred(token)
        receipt = judged(token, outcome, found)
        if receipt is None:
            self._states[found.session].answered(found.call, outcome)
            receipt = self._accept(found.mail(token, outcome))
            self._answers[token] = receipt.seq
            self._tell(found.session, found.news(outcome))
        await trio.lowlevel.cancel_shielded_checkpoint()
        return receipt

    def _deferred(self, token: str) -> Deferred:
        if token not in self._tokens:
            raise UnknownToken(token=token)
        session, call = self._tokens[token]
        if session in self._deleted:
            return Deferred(session, call, gone=True)
        row = self._states[session].calls[call]
        return Deferred(session, call, row.tool, row.hops, row.outcome, self._answers.get(token))

    def _tell(self, session: str, news: News) -> None:
        """Accept what a commit tells; nobody has to wait for those that cannot hear it."""
        now, drafts = datetime.now(UTC), [] if news.end is None else [news.end]
        for (watcher, _), watch in self._watches.get(session, {}).items():
            drafts += news.told(watcher, watch, now)
        for draft in drafts:
            try:
                self._check((draft,))
                self._accept(draft)
            except SendRefused as refusal:
                news.unheard(draft, refusal)

    def _watch(self, session: str, commit: Commit) -> None:
        for watch in commit.watches:
            found = self._states.get(watch.session)
            if found is not None and found.status is not Status.STOPPED:
                self._watches.setdefault(watch.session, {})[session, watch.id] = watch
        for gone in commit.watches_gone:
            self._forget({(session, gone)})
        if commit.status is Status.STOPPED:
            self._unwatch(session)

    def _unwatch(self, session: str) -> None:
        """It has ended: nobody watches it, and it watches nobody."""
        self._watches.pop(session, None)
        self._forget({each for watches in self._watches.values() for each in watches if each[0] == session})

    def _forget(self, gone: set[tuple[str, str]]) -> None:
        for watched, watches in list(self._watches.items()):
            for each in gone.intersection(watches):
                del watches[each]
            if not watches:
                del self._watches[watched]

    def _check(self, drafts: tuple[Draft, ...]) -> None:
        for draft in drafts:
            if draft.to in self._deleted:
                raise RecipientStopped(address=draft.to, exit=Stopped())
            if draft.to not in self._states:
                raise UnknownRecipient(address=draft.to, near=tuple(get_close_matches(draft.to, self._states)))
            if self._states[draft.to].status is Status.STOPPED:
                raise RecipientStopped(address=draft.to, exit=Stopped())

    def _accept(self, draft: Draft) -> Receipt:
        return self.mailbox(draft.to).accept(
            draft.body, draft.sender, id=draft.id, priority=draft.priority, hops=draft.hops, trace=draft.trace
        )

    def _bound(self, state: State) -> None:
        box, limits = self.mailbox(state.id), state.limits
        box.capacity, box.max_hops = limits.max_unread, limits.max_hops  # type: ignore[assignment]  # all limits are set

    def mailbox(self, session: str) -> Mailbox:
        """The session's mailbox."""
        if session not in self._boxes:
            self._boxes[session] = Mailbox(session)
        return self._boxes[session]

    async def sessions(self) -> Sequence[SessionSummary]:
        """Every session, in the order they were created."""
        return [self._summary(state) for state in self._states.values()]

    def _summary(self, state: State) -> SessionSummary:
        unread = self.mailbox(state.id).unread_count()
        last = self.mailbox(state.id).last
        return SessionSummary(
            state.id, state.agent, state.parent, state.owner, state.status, unread, state.version, last, state.options
        )

    async def unfinished(self, agents: Collection[str]) -> Sequence[str]:  # noqa: ARG002
        """None that nobody runs: it begins empty."""
        return ()

    async def tend(self) -> None:
        """Nothing: there are no other processes."""

    def watch(
        self, woken: Callable[[str], object], lost: Callable[[str], object], room: Callable[[], float] = lambda: inf
    ) -> None:
        """Nothing: every session is in memory."""
