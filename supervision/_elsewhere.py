"""A session that another process runs, or that nobody runs now, followed through the store.

The store has what was committed: items, calls, cursors, status. Whoever follows looks whether anything has changed, first soon and
then less often, and reads the session only if it has. What is new is told as events of the lifecycle, in the order of the
transcript, numbered by each reader for itself; what passed between two looks comes at once. What only the owner knows is missing:
the pieces of an answer, the progress of a call and that it detached, usage, nudges.
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import trio
from attrs import define, field

from actors._envelope import Control, Envelope, FromSession, FromToolCall, FromUser, Resume
from actors._errors import RunFailed
from actors._exit import Status, Stopped
from actors.agent._record import State
from actors.events import (
    Answer,
    AnyEvent,
    Ended,
    MailDelivered,
    RunStarted,
    RunStopped,
    StatusChanged,
    ToolFinished,
    ToolStarted,
)
from actors.models._items import AssistantItem, Item, ResultsItem, UserItem
from actors.store._api import Store

from ._stream import Followed

SOON, RARE = 0.05, 1.0  # seconds between two looks, at first and at last
AT_WORK = {Status.RUNNING, Status.WAITING}
OVER = {Status.IDLE, Status.FAILED, Status.STOPPED}
Told = tuple[Callable[..., AnyEvent], dict[str, Any]]


@define(eq=False)
class Far:
    """One who follows a session."""

    store: Store
    session: str
    _mark: object = field(factory=object)

    async def next(self) -> tuple[State, Sequence[Envelope]] | None:
        """The session and its unread mail: at once, and then whenever it has changed. None if it is not there any more."""
        wait = SOON
        while True:
            found = await self.store.find(self.session)
            mark = None if found is None else (found.status, found.version, found.last)
            if mark != self._mark:
                self._mark = mark
                return await self.store.look(self.session)
            await trio.sleep(wait)
            wait = min(RARE, 1.5 * wait)

    async def _there(self) -> tuple[State, Sequence[Envelope]]:
        found = await self.next()
        if found is None:
            raise RunFailed(status=Status.STOPPED, reason="the session was deleted")
        return found

    # -------------------------------------------------------------- answers
    async def answer(self, seq: int) -> str:
        """The first final answer that was given after reading the mail at `seq`. Raises `RunFailed` if its run has none."""
        while True:
            state, _ = await self._there()
            answers = answers_to(state.items, seq)
            if answers:
                return answers[0]
            if state.status is Status.STOPPED or (is_read(state, seq) and state.status in OVER):
                raise without(state)

    async def answer_of_the_run(self) -> str:
        """The answer of the run in progress or about to begin, when it ends; else the last one. Raises `RunFailed` if there is none."""
        while True:
            state, unread = await self._there()
            if not await self._busy(state, unread):
                last = state.items[-1] if state.items else None
                if isinstance(last, AssistantItem) and not last.calls:
                    return last.text
                raise without(state)

    async def over(self) -> None:
        """Its end for good."""
        found = await self.next()
        while found is not None and found[0].status is not Status.STOPPED:
            found = await self.next()

    async def _busy(self, state: State, unread: Sequence[Envelope]) -> bool:
        if state.status in AT_WORK:
            return True
        if state.status is Status.PAUSED:
            last = state.items[-1] if state.items else None
            return last is not None and not (isinstance(last, AssistantItem) and not last.calls)
        if state.status is Status.STOPPED:
            return False
        if state.status is Status.FAILED:
            return any(isinstance(each.sender, FromUser) or _resumes(each) for each in unread)
        after = max(state.mail_cursor, state.floor)
        for each in unread:
            if each.seq > after and not isinstance(each.body, Control) and await self._wakes(state, each):
                return True
        return False

    async def _wakes(self, state: State, envelope: Envelope) -> bool:
        limits: Any = state.limits
        return envelope.hops <= limits.max_hops and await self._kind(state, envelope) in limits.wake_on

    async def _kind(self, state: State, envelope: Envelope) -> str:
        match envelope.sender:
            case FromUser():
                return "user"
            case FromSession(session=session) | FromToolCall(session=session) if session != state.id:
                if session == state.parent:
                    return "parent"
                found = await self.store.find(session)
                return "child" if found is not None and found.parent == state.id else "peer"
        return "tool"

    # -------------------------------------------------------------- events
    async def events(self, before: State) -> AsyncGenerator[AnyEvent]:
        """What happens after `before`, until the session ends."""
        count = 0
        after: State | None = before
        while after is not None and after.status is not Status.STOPPED:
            found = await self.next()
            after = None if found is None else found[0]
            for event in told(before, after, count):
                count += 1
                yield event
            before = after or before


def _resumes(envelope: Envelope) -> bool:
    return isinstance(envelope.body, Control) and isinstance(envelope.body.action, Resume)


def is_read(state: State, seq: int) -> bool:
    """Whether that mail was read, or came before a stop."""
    return max(state.mail_cursor, state.floor) >= seq


def answers_to(items: Sequence[Item], seq: int) -> list[str]:
    """The final answers that were given after reading the mail at `seq`."""
    later = items[_place(items, seq) :]
    return [item.text for item in later if isinstance(item, AssistantItem) and not item.calls]


def _place(items: Sequence[Item], seq: int) -> int:
    """Where the mail at `seq` stands; the end, if it is not there yet."""
    places = (place for place, item in enumerate(items) if any(each.seq == seq for each in _mail(item)))
    return next(places, len(items))


def _mail(item: Item) -> Sequence[Envelope]:
    if isinstance(item, ResultsItem):
        beside = item.results[-1].mail
        return () if beside is None else beside.mail
    return item.mail if isinstance(item, UserItem) else ()


def mail_in(items: Sequence[Item]) -> list[Envelope]:
    """All mail that a transcript tells."""
    return [each for item in items for each in _mail(item)]


def without(state: State) -> RunFailed:
    """Why there is no answer."""
    if state.status is Status.FAILED and state.failure:
        return RunFailed(status=state.status, reason=state.failure)
    never = "it never ran; send it something"
    return RunFailed(status=state.status, reason="the run ended without an answer" if state.items else never)


# ------------------------------------------------------------------ events
def told(before: State, after: State | None, count: int) -> Iterator[AnyEvent]:
    """What happened between two looks; `count` events were told before."""
    now = datetime.now(UTC)
    run = before.run if after is None else after.run
    for number, (kind, facts) in enumerate(_changes(before, after), count + 1):
        yield kind(seq=number, at=now, session=before.id, run=run, **facts)


def _changes(before: State, after: State | None) -> Iterator[Told]:
    if after is not None:
        if after.run > before.run:
            yield RunStarted, {}
        yield from _of_items(before, after)
        if after.status is not before.status:
            yield StatusChanged, {"status": after.status}
        if after.status in OVER and (before.status not in OVER or after.run > before.run):
            yield RunStopped, {"reason": _reason(after)}
    if after is None or after.status is Status.STOPPED:
        yield Ended, {"address": before.id, "exit": Stopped("stop")}


def _of_items(before: State, after: State) -> Iterator[Told]:
    ends = {id: row for id, row in after.calls.items() if row.final and not _final(before, id)}
    known = len(before.items)
    for place, item in enumerate(after.items[max(0, known - 1) :], max(0, known - 1)):
        seen = _mail(before.items[place]) if place < known else ()
        if new := tuple(_mail(item)[len(seen) :]):
            yield MailDelivered, {"mail": new, "round": after.rounds}
        if place < known:
            continue
        if isinstance(item, AssistantItem):
            for call in item.calls:
                yield ToolStarted, {"call": call.id, "tool": call.tool, "arguments": call.arguments}
            if not item.calls:
                yield Answer, {"text": item.text}
        for result in getattr(item, "results", ()):
            yield from _end(ends.pop(result.call, None))
    for row in ends.values():
        yield from _end(row)


def _final(state: State, call: str) -> bool:
    return call in state.calls and state.calls[call].final


def _end(row: Any) -> Iterator[Told]:
    if row is not None:
        yield ToolFinished, {"call": row.id, "tool": row.tool, "outcome": row.outcome}


def _reason(state: State) -> str:
    if state.status is Status.FAILED:
        return "failed"
    last = state.items[-1] if state.items else None
    return "answered" if isinstance(last, AssistantItem) and not last.calls else "stopped"


class FarStream(Followed):
    """As `RunStream`, of a session that another process runs. Iterate it; it ends with the run that read the message."""

    def __init__(self, far: Far, before: State, seq: int, *, duplicate: bool) -> None:
        self._far = Far(far.store, far.session)
        self._seq = seq
        self._long_ago = duplicate and is_read(before, seq)  # which answers were of that run, nobody knows any more
        self.events = self._followed(_as_it_was(before, seq) if duplicate else before)

    async def _followed(self, before: State) -> AsyncGenerator[AnyEvent]:
        count = 0
        while self._over is None:
            found = await self._far.next()
            after = None if found is None else found[0]
            self._note(after)
            for event in told(before, after, count):
                count += 1
                yield event
            before = after or before

    def _note(self, state: State | None) -> None:
        if state is None:
            self._over = RunFailed(status=Status.STOPPED, reason="the session was deleted")
            return
        if is_read(state, self._seq) and self._run is None:
            self._run = state.run
        answers = answers_to(state.items, self._seq)
        if answers:
            self._answer = answers[-1 if state.run == self._run and not self._long_ago else 0]
        done = self._run is not None and (state.run > self._run or state.status in OVER)
        if done or state.status is Status.STOPPED:
            self._over = without(state)


def _as_it_was(state: State, seq: int) -> State:
    """Before it read the mail at `seq`."""
    items = state.items[: _place(state.items, seq)]
    asked = {call.id for item in items if isinstance(item, AssistantItem) for call in item.calls}
    then = State(state.id, state.agent, state.parent, state.owner, status=Status.IDLE, run=max(0, state.run - 1))
    then.take_up(items, {id: row for id, row in state.calls.items() if id in asked})
    return then
