"""What is kept of a session, and what one commit changes.

A session's state is changed by commits alone. A store persists a commit, all of it or nothing, and then applies it to the
state it handed out; nothing else assigns to that state, but that a store notes on delivery that a deferred call was answered:
from any process, without the owner. Items are appended or the last one amended, never rewritten; a
commit costs the same at turn 10 and at turn 10,000.
"""

from collections.abc import Mapping
from datetime import datetime
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Literal

import msgspec
from attrs import define, evolve, field, frozen

from actors._envelope import ContinuationResult, Envelope, FromSession, FromToolCall, Priority, Sender, ended_call
from actors._exit import Status
from actors._limits import SESSION_DEFAULTS, Limits
from actors._outcome import Outcome, OutcomeStatus
from actors.models._blocks import Usage
from actors.models._items import AssistantItem, Item, Placeholder, ResultsItem, UserItem

UNSPENT = Usage(requests=0)
EMPTY: Mapping[str, str] = MappingProxyType({})


@frozen
class CallRecord:
    """One row of the ledger: a call, what it was asked, how it ended.

    `status` is the ledger's (`issued`, `started`, `deferred`, or the outcome's); queued, running and detached are the toolbox's
    view. `run` is the run that made the call. `idempotency_key` is the same each time this call is attempted. `token` and `reason`
    are those of a call that was deferred; who has the token can answer it.
    """

    id: str
    tool: str
    arguments: Mapping[str, Any]
    status: Literal["issued", "started"] | OutcomeStatus = "issued"
    outcome: Outcome | None = None
    token: str | None = field(default=None, repr=False)
    idempotency_key: str = ""
    run: int = 0
    hops: int = 0
    reason: str = ""

    @property
    def final(self) -> bool:
        """Whether it has its outcome."""
        return self.outcome is not None

    @property
    def over(self) -> bool:
        """Whether nothing of it will run any more: it has its outcome, or waits for somebody's."""
        return self.final or self.deferred

    @property
    def deferred(self) -> bool:
        """Whether its outcome will come from somebody who has its token: nothing of it runs."""
        return self.status == "deferred"


def ended(row: CallRecord, outcome: Outcome) -> CallRecord:
    """The row with its outcome."""
    return evolve(row, status=outcome.status, outcome=outcome)


def deferred(row: CallRecord, reason: str, token: str) -> CallRecord:
    """The row of a call whose outcome will come from whoever has this token."""
    return evolve(row, status="deferred", reason=reason, token=token)


@frozen
class TimerRow:
    """A timer that is set: when it is due (UTC), and what it will say. `hops` are those of its mail."""

    id: str
    due: datetime
    label: str
    text: str
    hops: int = 0


@frozen
class WatchRow:
    """A watch of another session: what of it is told, and until when (UTC). Of tools only those that `tool`, a pattern, fits."""

    id: str
    session: str
    until: datetime
    events: tuple[str, ...]
    tool: str | None = None


@frozen
class SessionRecord:
    """A session as it is stored, at one moment."""

    id: str
    agent: str
    parent: str | None
    owner: str | None
    status: Status
    version: int
    mail_cursor: int
    control_cursor: int
    items: tuple[Item, ...]
    calls: tuple[CallRecord, ...]


class Draft(msgspec.Struct, frozen=True):  # one a message: a fifth of what an attrs record costs
    """Mail that a commit sends: it is accepted together with the rest of the commit, or not at all."""

    to: str
    body: Any
    sender: Sender
    id: str | None = None
    priority: Priority = Priority.NORMAL
    hops: int = 0
    trace: str | None = None


class Commit(msgspec.Struct, frozen=True, kw_only=True):  # several a round, and wide: a tenth of what an attrs record costs
    """One change of a session. Absent fields change nothing.

    A commit of the loop (`loop`) compares and raises the version; one of a call does not, for it may come at any time.
    """

    append: tuple[Item, ...] = ()
    amend: UserItem | None = None  # goes into the unanswered item at the end
    calls: tuple[CallRecord, ...] = ()  # rows, new or changed
    mail: tuple[Draft, ...] = ()
    mail_cursor: int | None = None
    control_cursor: int | None = None
    handled_cursor: int | None = None
    status: Status | None = None
    paused_at: int | None = None
    run: int | None = None
    turn: int | None = None
    rounds: int | None = None
    hops: int | None = None
    floor: int | None = None
    stop: Envelope | None = None  # a StopRun that took effect
    fetched: tuple[str, ...] = ()  # calls whose outcome the status tool has shown
    failure: str | None = None
    spent: Usage | None = None
    refused: Mapping[str, str] = EMPTY  # what a provider refused to read, each with the note that is shown in its place
    timers: tuple[TimerRow, ...] = ()
    timers_gone: tuple[str, ...] = ()
    watches: tuple[WatchRow, ...] = ()
    watches_gone: tuple[str, ...] = ()
    limits: Limits | None = None
    options: str | None = None
    loop: bool = True


NOTHING = Commit()
_CURSORS = ("mail_cursor", "control_cursor", "handled_cursor", "floor")  # they never move back
PLAIN = ("status", "paused_at", "run", "turn", "rounds", "hops", "failure", "spent", "limits", "options")
_cursors_of, _plain_of = attrgetter(*_CURSORS), attrgetter(*PLAIN)
_seldom_of = attrgetter("fetched", "refused", "timers", "watches", "timers_gone", "watches_gone")
_NO_SELDOM = _seldom_of(NOTHING)


@define(eq=False)
class State:
    """A session's state in memory: what its next request and its next decision need."""

    id: str
    agent: str
    parent: str | None = None
    owner: str | None = None
    status: Status = Status.READY
    version: int = 0
    epoch: int = 0  # which ownership of the session this is
    limits: Limits = SESSION_DEFAULTS
    mail_cursor: int = 0
    control_cursor: int = 0
    handled_cursor: int = 0  # of the messages that the agent's own handlers take
    items: list[Item] = field(factory=list)
    calls: dict[str, CallRecord] = field(factory=dict)
    live: dict[str, CallRecord] = field(
        factory=dict
    )  # those that are to end by themselves: what a round looks at does not grow
    deferred: dict[str, CallRecord] = field(factory=dict)  # those that wait for an answer
    run: int = 0  # runs begun; the one in progress, if one is
    turn: int = 0  # requests made
    rounds: int = 0  # requests since a person last spoke
    hops: int = 0  # that this run's mail carries
    paused_at: int = 0  # the seq of the last pause that took effect
    stopped: Envelope | None = None  # a StopRun to be told before the next words
    floor: int = 0  # mail up to this seq wakes nothing: a StopRun came after it
    stopped_run: int = 0  # and so do the ends of the calls of runs up to this one
    placeholders: set[str] = field(factory=set)  # calls whose outcome comes as mail
    fetched: set[str] = field(factory=set)
    failure: str = ""
    spent: Usage = UNSPENT  # by the run in progress, or the last one
    timers: dict[str, TimerRow] = field(factory=dict)
    watches: dict[str, WatchRow] = field(factory=dict)
    heard: bool = False  # it has read mail of its parent, which is to be told how the run ends
    refused: dict[str, str] = field(factory=dict)
    options: str = ""  # that it was opened with, as far as they have JSON (`_kept.py`)
    seal: str = field(default="", repr=False)  # a secret of its own, of which the tokens of its calls are made

    def apply(self, commit: Commit) -> None:
        """Take a commit over. Only a store calls it, once the commit is kept."""
        if self.parent is not None:
            self.heard = self._hears(commit)
        self._grow(commit)
        for row in commit.calls:
            self.calls[row.id] = row
            self._place(row)
        if _seldom_of(commit) != _NO_SELDOM:
            self._note(commit)
        for name, value in zip(PLAIN, _plain_of(commit), strict=True):
            if value is not None:
                setattr(self, name, value)
        for name, value in zip(_CURSORS, _cursors_of(commit), strict=True):
            if value is not None and value > getattr(self, name):
                setattr(self, name, value)
        if commit.stop is not None:
            self.stopped, self.floor, self.stopped_run = commit.stop, commit.stop.seq, self.run
        self.version += commit.loop

    def _note(self, commit: Commit) -> None:
        """Take over what most commits do without."""
        self.fetched.update(commit.fetched)
        self.refused.update(commit.refused)
        self.timers.update((timer.id, timer) for timer in commit.timers)
        self.watches.update((watch.id, watch) for watch in commit.watches)
        for gone in (*commit.timers_gone, *commit.watches_gone):
            self.timers.pop(gone, None)
            self.watches.pop(gone, None)

    def take_up(self, items: list[Item], calls: dict[str, CallRecord]) -> None:
        """Have this behind it. Only a store calls it, for a session that it has just read."""
        self.items, self.calls = items, calls
        for row in calls.values():
            self._place(row)

    def hear(self, envelope: Envelope) -> None:
        """Have what this mail tells of a deferred call. Only a store calls it, as it delivers what is kept."""
        if isinstance(envelope.body, ContinuationResult):
            self.answered(ended_call(envelope) or "", envelope.body.outcome)

    def answered(self, call: str, outcome: Outcome) -> None:
        """Have the outcome of a deferred call; nothing if it has one. Only a store calls it, once it is kept."""
        if call in self.deferred:
            self.apply(Commit(calls=(ended(self.deferred[call], outcome),), loop=False))

    def _place(self, row: CallRecord) -> None:
        place = None if row.final else self.deferred if row.deferred else self.live
        for rows in (self.live, self.deferred):
            if rows is place:
                rows[row.id] = row
            else:
                rows.pop(row.id, None)

    def _grow(self, commit: Commit) -> None:
        if commit.amend is not None:
            last = self.items[-1]
            assert not isinstance(last, AssistantItem)
            self.items[-1] = last.amended(commit.amend)
            self._told(commit.amend)
        for item in commit.append:
            self.items.append(item)
            if isinstance(item, ResultsItem):
                self.placeholders.update(result.call for result in item.results if isinstance(result.outcome, Placeholder))
                if item.results[-1].mail is not None:
                    self._told(item.results[-1].mail)
            elif isinstance(item, UserItem):
                self._told(item)

    def _hears(self, commit: Commit) -> bool:
        """Whether its parent is to be told how this run ends, once the commit is kept."""
        told = [*(item.mail for item in (*commit.append, commit.amend) if isinstance(item, UserItem))]
        told += [
            each.mail.mail for item in commit.append if isinstance(item, ResultsItem) for each in item.results if each.mail
        ]
        if any(_from(envelope.sender) == self.parent for mail in told for envelope in mail):
            return True
        return self.heard and not self.ended_by(commit)

    def ended_by(self, commit: Commit) -> bool:
        """Whether this commit ends its run, other than by a failure, which may be tried again."""
        at_work = self.status in {Status.RUNNING, Status.WAITING}
        return commit.stop is not None or (at_work and commit.status in {Status.IDLE, Status.STOPPED})

    def _told(self, item: UserItem) -> None:
        """What this item told need not be remembered any more."""
        for envelope in item.mail:
            if envelope is self.stopped:
                self.stopped = None
            elif (call := ended_call(envelope)) is not None:
                self.placeholders.discard(call)
                self.fetched.discard(call)

    def record(self, last: int | None = None) -> SessionRecord:
        """A frozen copy; with `last`, of the last items only."""
        items = self.items if last is None else self.items[max(0, len(self.items) - last) :]
        return SessionRecord(
            self.id, self.agent, self.parent, self.owner, self.status, self.version, self.mail_cursor, self.control_cursor,
            tuple(items), tuple(self.calls.values()),
        )  # fmt: skip

    @property
    def unanswered(self) -> bool:
        """Whether the last item is a user item that no completion has answered."""
        return bool(self.items) and isinstance(self.items[-1], UserItem)

    @property
    def last_answer(self) -> str | None:
        """The words of the newest final answer."""
        answers = (item for item in reversed(self.items) if isinstance(item, AssistantItem) and not item.calls)
        return next((item.text for item in answers), None)


def _from(sender: Sender) -> str | None:
    return sender.session if isinstance(sender, (FromSession, FromToolCall)) else None
