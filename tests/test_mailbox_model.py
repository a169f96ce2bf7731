"""The mailbox under any order of everything, against a model of it that is short enough to be believed."""

from math import inf
from typing import Any

import pytest
import trio
from attrs import define, evolve, field, frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from actors import (
    Control,
    Envelope,
    FromActor,
    FromUser,
    IdConflict,
    Mailbox,
    MailboxFull,
    Outcome,
    Pause,
    Priority,
    Resume,
    SendRefused,
    ToolCallFinished,
    UserMessage,
    _mailbox,
)

DONE = ToolCallFinished("call_1", "look", Outcome.completed("done"))
CAPACITY, OWN, WINDOW = 3, 2, 3  # small, so that their ends are reached


@frozen
class Send:
    """One message on its way. `waits`: for room, if there is none."""

    body: Any
    sender: Any
    id: str | None
    priority: Priority
    waits: bool = False


# ------------------------------------------------------------------ the model
@define
class Model:
    """What a mailbox is: a log that keeps everything, two cursors, the ids it knows, a line of senders."""

    log: list[Send] = field(factory=list)  # seq is the place in it, from 1
    mail: int = 0
    control: int = 0
    base: int = 0  # trimmed up to here
    ids: dict[tuple[Any, str], tuple[int, Any]] = field(factory=dict)
    own: list[int] = field(factory=list)
    line: list[Send] = field(factory=list)

    def counted(self) -> list[int]:
        """The seqs that the bound counts."""
        there = range(self.base + 1, len(self.log) + 1)
        return [seq for seq in there if seq > (self.control if isinstance(self.log[seq - 1].body, Control) else self.mail)]

    def send(self, new: Send) -> tuple[int, bool] | type[SendRefused]:
        """The seq, and whether it was there before; or the refusal."""
        if new.id is not None and (new.sender, new.id) in self.ids:
            seq, kept = self.ids[new.sender, new.id]
            return (seq, True) if kept == new.body else IdConflict
        if len(self.counted()) >= CAPACITY:
            equal = [
                seq for seq in self.counted() if (self.log[seq - 1].body, self.log[seq - 1].sender) == (new.body, new.sender)
            ]
            if isinstance(new.body, Control) and equal:
                return equal[0], True
            if not isinstance(new.body, Control | ToolCallFinished) and not self.own_place(new):
                return MailboxFull
        self.log.append(new)
        if new.id is not None:
            self.ids[new.sender, new.id] = len(self.log), new.body
            self.ids = dict(list(self.ids.items())[-WINDOW:])
        return len(self.log), False

    def own_place(self, new: Send) -> bool:
        """Whether a person's interrupt has one of its own places."""
        self.own = [seq for seq in self.own if seq > self.mail]
        if new.priority is not Priority.INTERRUPT or not isinstance(new.sender, FromUser) or len(self.own) >= OWN:
            return False
        self.own.append(len(self.log) + 1)
        return True

    def let_in(self) -> list[tuple[Send, Any]]:
        """What became of those who waited for the room that there is now."""
        ends = []
        while self.line and len(self.counted()) < CAPACITY:
            first = self.line.pop(0)
            ends.append((first, self.send(first)))
        return ends


# ------------------------------------------------------------------ both at once
@define(eq=False)
class Both:
    """Does each step to the mailbox and to the model, and compares what came of it."""

    nursery: trio.Nursery
    box: Mailbox = field(factory=lambda: Mailbox(capacity=CAPACITY))
    model: Model = field(factory=Model)
    ends: list[tuple[Send, Any]] = field(factory=list)  # what became of every send
    wanted: list[tuple[Send, Any]] = field(factory=list)
    scopes: list[trio.CancelScope] = field(factory=list)  # of the senders in the line
    heard: dict[int, list[int]] = field(factory=dict)  # reader -> the seqs it received
    readers: list[tuple[int, int, bool]] = field(factory=list)  # who waits: number, cursor, only control?

    async def step(self, kind: str, *facts: Any) -> None:
        """Do it, let everybody run, compare."""
        await getattr(self, kind)(*facts)
        await wait_all_tasks_blocked()
        self.scopes = [scope for scope in self.scopes if not scope.cancel_called]
        assert sorted(self.ends, key=repr) == sorted(self.wanted, key=repr)  # trio wakes those let in together in any order
        assert (self.box.statistics().accepted, self.box.statistics().unread) == (
            len(self.model.log),
            len(self.model.counted()),
        )
        for reader in tuple(self.readers):
            number, cursor, control = reader
            found = self.matches(cursor, control=control)
            assert self.heard.get(number, []) == found
            if found:
                self.readers.remove(reader)
        assert self.box.statistics().waiting == len(self.readers)

    def matches(self, cursor: int, *, control: bool) -> list[int]:
        """What the model says a reader finds."""
        there = range(max(cursor, self.model.base) + 1, len(self.model.log) + 1)
        return [seq for seq in there if not control or isinstance(self.model.log[seq - 1].body, Control)]

    async def send(self, new: Send) -> None:
        """Send now, or wait for room."""
        end = self.model.send(new)
        if new.waits and end is MailboxFull:
            self.model.line.append(new)
            self.scopes.append(trio.CancelScope())
            self.nursery.start_soon(self.wait_for_room, new, self.scopes[-1])
        else:
            self.wanted.append((new, end))
            await self.accept(new, 0)

    async def wait_for_room(self, new: Send, scope: trio.CancelScope) -> None:
        """Stand in the line until there is room, or the scope is cancelled."""
        with scope:
            await self.accept(new, inf)
            scope.cancel()

    async def accept(self, new: Send, seconds: float) -> None:
        """Send, and note what came of it."""
        try:
            receipt = await self.box.accept_when_room(seconds, new.body, new.sender, id=new.id, priority=new.priority)
            self.ends.append((new, (receipt.seq, receipt.duplicate)))
        except SendRefused as refusal:
            self.ends.append((new, type(refusal)))

    async def leave(self, place: int) -> None:
        """A sender in the line is cancelled."""
        if self.scopes:
            self.model.line.pop(place % len(self.scopes))
            self.scopes[place % len(self.scopes)].cancel()

    async def advance(self, mail: int, control: int) -> None:
        """Consume so many more, or, with a negative number, try to take something back."""
        last, was = len(self.model.log), self.model
        mail, control = min(was.mail + mail, last), min(was.control + control, last)
        self.box.advance(mail, control)
        self.model = evolve(was, mail=max(was.mail, mail), control=max(was.control, control))
        self.wanted += self.model.let_in()

    async def trim(self, more: int) -> None:
        """Free so many more."""
        cursor = self.model.base + more
        self.box.trim(cursor)
        self.model.base = max(self.model.base, min(cursor, len(self.model.log)))
        self.wanted += self.model.let_in()

    async def read(self, cursor: int) -> None:
        """What is there."""
        assert [envelope.seq for envelope in self.box.unread(cursor)] == self.matches(cursor, control=False)

    async def listen(self, cursor: int, control: bool) -> None:
        """Wait for mail, or for control only."""
        number = len(self.heard)
        self.heard[number] = []
        self.readers.append((number, cursor, control))
        self.nursery.start_soon(self.receive, number, cursor, control)

    async def receive(self, number: int, cursor: int, control: bool) -> None:
        """One reader."""
        match = is_control if control else None
        self.heard[number] = [envelope.seq for envelope in await self.box.receive(cursor, match)]


def is_control(envelope: Envelope) -> bool:
    return isinstance(envelope.body, Control)


# ------------------------------------------------------------------ any order
SEQ = st.integers(0, 12)
FEW = st.integers(-1, 2)
SENDS = st.builds(
    Send,
    st.sampled_from([UserMessage("a"), UserMessage("b"), Control(Pause()), Control(Resume()), DONE]),
    st.sampled_from([FromUser("ann"), FromActor("bot")]),
    st.sampled_from([None, "1", "2", "3"]),
    st.sampled_from(Priority),
    st.booleans(),
)
STEPS = st.one_of(
    st.tuples(st.just("send"), SENDS),
    st.tuples(st.just("send"), SENDS),
    st.tuples(st.just("send"), SENDS),
    st.tuples(st.just("advance"), FEW, FEW),
    st.tuples(st.just("trim"), FEW),
    st.tuples(st.just("read"), SEQ),
    st.tuples(st.just("listen"), SEQ, st.booleans()),
    st.tuples(st.just("leave"), SEQ),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(STEPS, min_size=20, max_size=60))
def test_whatever_happens_to_a_mailbox_happens_to_its_model(steps: list[tuple[Any, ...]]) -> None:
    """Nothing lost, nothing doubled, nobody overtaken, nobody forgotten: in any order of everything."""

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            both = Both(nursery)
            for step in steps:
                await both.step(*step)
            nursery.cancel_scope.cancel()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_mailbox, "PERSONS_INTERRUPTS", OWN)
        patch.setattr(_mailbox, "WINDOW", WINDOW // CAPACITY)
        trio.run(main)
