"""What a store of sessions is. One conformance suite tests all of them (`tests/test_store.py`)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from math import inf
from typing import Protocol

from attrs import field, frozen

from actors._envelope import Envelope, Receipt
from actors._exit import Status
from actors._mailbox import Mailbox
from actors._outcome import Outcome
from actors.agent._record import Commit, Draft, State


@frozen
class SessionSummary:
    """A session in one line: who it is, where it stands, how many messages it has not read.

    `version` and `last` (the seq of its newest mail) show whether anything has changed; `options` are those it was opened with, as JSON.
    """

    id: str
    agent: str
    parent: str | None
    owner: str | None
    status: Status
    unread: int
    version: int = field(default=0, eq=False)
    last: int = field(default=0, eq=False)
    options: str = field(default="", eq=False, repr=False)


DELETED = ""  # the agent of a session that was deleted


def tombstone(session: str) -> SessionSummary:
    """What is left of a session that was deleted."""
    return SessionSummary(session, DELETED, None, None, Status.STOPPED, 0)


@frozen
class Checkup:
    """How a store stands: what is in it, what waits, what is wrong.

    `oldest_unread` is when the oldest message was accepted that nobody has read, in seconds since the epoch. `expired` are sessions
    whose owner let its lease run out, `held` those that have an owner now.
    """

    where: str
    schema: int
    bytes: int
    sessions: Mapping[str, int]  # by status
    mail: int
    unread: int
    oldest_unread: float | None
    open_calls: int
    timers: int
    held: int
    expired: int
    damage: Sequence[str]


class Store(Protocol):
    """Keeps sessions: their items, calls, cursors and mail.

    A commit is atomic: after a crash it is there whole, its mail included, or not at all. What a store hands out (`create`,
    `load`) is the one `State` of that session in this process; `commit` persists first and then applies to it.
    """

    @property
    def durable(self) -> bool:
        """Whether what it keeps outlives the process. If so, mail to its sessions cannot be accepted without waiting."""
        ...

    async def open(self) -> None:
        """Be ready: a system opens its store as it begins. Raises `StoreError`."""
        ...

    async def close(self) -> None:
        """Finish what was begun. What is kept in memory alone stays."""
        ...

    async def create(self, state: State) -> None:
        """Keep a new session. Raises `StoreError` if its id is there already, or was and is deleted."""
        ...

    async def find(self, session: str) -> SessionSummary | None:
        """A session in one line, or None if there is none of that id. Takes no hold of it."""
        ...

    async def look(self, session: str) -> tuple[State, Sequence[Envelope]] | None:
        """A copy of a session as it stands, and its unread mail, or None; takes no hold of it."""
        ...

    async def checkup(self) -> Checkup:
        """How it stands, for a person who asks."""
        ...

    async def load(self, session: str) -> State | None:
        """Take a session over: its state, or None if there is none of that id. Whoever had it before commits nothing more."""
        ...

    def release(self, state: State, seen: int = 0) -> None:
        """Let go of a session at once; mail for it that comes from now on is told to `watch`.

        `seen`: up to which of its mail it had nothing to do when it left; nobody need take it up for that again.
        """
        ...

    async def delete(self, session: str) -> None:
        """Delete a session that is not in memory. A tombstone stays: late mail is refused, nothing revives it, no new one takes its id.

        Nothing if there is none of that id. Raises `LeaseLost` if another process runs it.
        """
        ...

    async def retain(self, before: float) -> int:
        """Forget mail that was read, that no transcript refers to and that was accepted before this time; how much that was."""
        ...

    async def commit(self, state: State, commit: Commit) -> None:
        """Keep a commit, with the mail it sends, and apply it to `state`. Once begun it is not cancelled half-way.

        A cursor never moves back, and mail up to the lower one is freed. At most one message of a commit may be of a kind that
        can be refused (an agent's words); what tells of an end is always accepted.

        Raises:
            ValueError: A cursor lies behind the newest mail; nothing was kept.
            VersionConflict: Another commit of the loop came first; nothing was kept.
            LeaseLost: Another owner has taken the session over; nothing was kept.
            SendRefused: Mail of the commit was refused; nothing was kept.
            StoreError: The store could not; nothing was kept.
        """
        ...

    async def begin(self, state: State, commit: Commit) -> None:
        """As `commit`, but it may return, with `state` changed, before the commit is kept.

        It is kept before or together with what is committed for this session next, or neither is; whoever dies in between has
        done neither. So nothing that leaves a trace may follow from it before that: a model may be asked, no call may start.
        What `commit` raises, the next `commit` may raise for it.
        """
        ...

    async def send(self, draft: Draft) -> Receipt:
        """Accept mail for a session, whether or not it is in memory; durable when it returns.

        Cancelled, it may have been accepted: send again under its id. Raises `SendRefused` and `StoreError`: nothing was kept.
        """
        ...

    async def complete(self, token: str, outcome: Outcome) -> Receipt:
        """Answer the call that was deferred with this token, whoever runs its session: its outcome and the mail that tells it, at once.

        The same outcome again is its first receipt, marked as a duplicate. Cancelled, it may have been kept: complete it again.

        Raises:
            UnknownToken: No deferred call has this token.
            AlreadyCompleted: Its call was cancelled, or its session has ended.
            IdConflict: It was answered before, with another outcome.
            StoreError: The store could not. Nothing was kept, whatever is raised.
        """
        ...

    def mailbox(self, session: str) -> Mailbox:
        """The one mailbox, in this process, of a session that was created or loaded."""
        ...

    async def sessions(self) -> Sequence[SessionSummary]:
        """Every session it keeps, in the order in which they were created."""
        ...

    async def unfinished(self, agents: Collection[str]) -> Sequence[str]:
        """The sessions of these agents that may have something to do: a run, mail that may wake them, a call without an end."""
        ...

    async def tend(self) -> None:
        """Hold on to the sessions that were taken, and take in what other processes did to them. Called several times a second."""
        ...

    def watch(
        self, woken: Callable[[str], object], lost: Callable[[str], object], room: Callable[[], float] = lambda: inf
    ) -> None:
        """Say what happens, in trio's thread.

        `woken` is called with each session that is not in memory and was sent mail that may wake it; `lost` with each that is in
        memory and that another owner has taken. `room` says how many more may come into memory now: a store that takes sessions up
        for this process takes no more.
        """
        ...
