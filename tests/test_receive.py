"""What an actor handles next, and what a `receive` in a handler takes."""

import time
from typing import Any

import pytest
import trio
import trio.lowlevel
from cast import Boom, Sleep, Worker
from trio.testing import MockClock

from actors import Actor, ActorCrashed, ActorRef, AskTimeout, Limits, Reject, handle
from actors._receive import ActorMailbox
from supervision import System, open_system


async def busy(system: System, seen: list[Any]) -> ActorRef:
    """A worker that handles its first message for a second."""
    ref = await system.spawn(Worker, seen, name="worker")
    ref.send_nowait(Sleep(1))
    await trio.sleep(0.5)
    return ref


# ------------------------------------------------------------------ order
async def test_mail_of_one_sender_is_handled_in_order(autojump_clock: MockClock) -> None:
    """First in, first out, across batches."""
    seen: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Worker, seen)
        for number in range(200):
            ref.send_nowait(number)
        await system.wait_idle()
        assert seen == list(range(200))


async def test_an_interrupt_is_handled_before_older_normal_mail(autojump_clock: MockClock) -> None:
    """What is urgent does not stand in the line; what runs is not disturbed."""
    seen: list[Any] = []
    async with open_system() as system:
        ref = await busy(system, seen)
        for number in (1, 2):
            ref.send_nowait(number)
        for text in ("stop", "now"):
            await ref.interrupt(text)
        await system.wait_idle()
        assert seen == ["sleep 1", "stop", "now", 1, 2]


async def test_after_sixteen_interrupts_one_normal_message_runs(autojump_clock: MockClock) -> None:
    """A flood of urgent mail starves nobody."""
    seen: list[Any] = []
    async with open_system() as system:
        ref = await busy(system, seen)
        for number in (1, 2):
            ref.send_nowait(number)
        for _ in range(40):
            ref.send_nowait("!", interrupt=True)
        await system.wait_idle()
        assert seen == ["sleep 1", *["!"] * 16, 1, *["!"] * 16, 2, *["!"] * 8]


async def test_a_normal_message_behind_a_flood_has_its_turn_too(autojump_clock: MockClock) -> None:
    """Also one that came after all of them."""
    seen: list[Any] = []
    async with open_system() as system:
        ref = await busy(system, seen)
        for _ in range(40):
            ref.send_nowait("!", interrupt=True)
        ref.send_nowait(1)
        await system.wait_idle()
        assert seen.index(1) == 17


async def test_interrupts_handled_ahead_take_no_room(autojump_clock: MockClock) -> None:
    """They are handled; the bound counts what is not."""
    async with open_system() as system:
        ref = await busy(system, [])
        for number in range(254):
            ref.send_nowait(number)
        for _ in range(3):
            ref.send_nowait("!", interrupt=True)
        assert {node.address: node.unread for node in system.tree()} == {"worker": 258}
        await system.wait_idle()
        assert {node.address: node.unread for node in system.tree()} == {"worker": 0}


async def test_ten_thousand_messages_leave_nothing_behind(autojump_clock: MockClock) -> None:
    """An actor's mailbox is as small after a flood as before."""
    seen: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Worker, seen, name="worker")
        for number in range(10_000):
            await ref.send(number, interrupt=number % 7 == 0, wait=1)
        await system.wait_idle()
        box: ActorMailbox = system._root.router.places["worker"].mailbox
        assert (len(seen), len(box._log), box._ahead, box.disturbed) == (10_000, 0, set(), False)
        assert [each for each in seen if each % 7] == [each for each in range(10_000) if each % 7]


# ------------------------------------------------------------------ receive in a handler
class Dialog(Actor):
    """On "go", takes messages by a rule; what it got, and the other mail that it handled, in `got`."""

    def __init__(self, got: list[Any], match: Any = int, timeout: float | None = None, count: int = 1) -> None:
        self.got, self.match, self.timeout, self.count = got, match, timeout, count

    @handle
    async def go(self, message: str) -> str:
        """Take."""
        for _ in range(self.count):
            envelope = await self.receive(self.match, self.timeout)
            self.got.append(None if envelope is None else ("took", envelope.body))
        if message == "crash":
            raise Boom
        if message == "reject":
            raise Reject(message)
        return message

    @handle
    def note(self, message: int | bytes) -> None:
        """Note."""
        self.got.append(message)

    @handle
    async def pause(self, message: Sleep) -> None:
        """Be busy."""
        await trio.sleep(message.seconds)


async def test_a_receive_takes_the_oldest_that_fits_and_leaves_the_rest(autojump_clock: MockClock) -> None:
    """What it took is not handled again; what it passed over is handled after, in order."""
    got: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Dialog, got, lambda envelope: envelope.body == 2)
        for message in ("go", 1, 2, 3, 2):
            ref.send_nowait(message)
        await system.wait_idle()
        assert got == [("took", 2), 1, 3, 2]


async def test_a_receive_waits_for_what_fits(autojump_clock: MockClock) -> None:
    """Other mail meanwhile does not end it."""
    got: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Dialog, got)
        for message in ("go", b"other", 7):
            ref.send_nowait(message)
            await trio.sleep(1)
        await system.wait_idle()
        assert got == [("took", 7), b"other"]


async def test_a_receive_without_time_takes_what_is_there(autojump_clock: MockClock) -> None:
    """A poll finds what there is, and only then nothing."""
    got: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Dialog, got, int, 0, 3)
        for message in ("go", 1, 2):
            ref.send_nowait(message)
        await system.wait_idle()
        assert got == [("took", 1), ("took", 2), None]


@pytest.mark.parametrize(("patience", "passed"), [(3, 3), (0, 0), (-1, 0)])
async def test_a_receive_that_finds_nothing_in_time_returns_none(
    autojump_clock: MockClock, patience: float, passed: float
) -> None:
    """The handler goes on; it decides what a silence means."""
    async with open_system() as system:
        ref = await system.spawn(Dialog, [], int, patience)
        assert await ref.ask("go") == "go"
        assert trio.current_time() == passed


async def test_a_receive_that_timed_out_took_nothing(autojump_clock: MockClock) -> None:
    """What comes too late for it is handled as any mail."""
    got: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Dialog, got, int, 1)
        ref.send_nowait("go")
        await trio.sleep(2)
        ref.send_nowait(7)
        await system.wait_idle()
        assert got == [None, 7]


async def test_a_receive_takes_interrupts_first(autojump_clock: MockClock) -> None:
    """It is a receive point like any other."""
    got: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Dialog, got, int, None, 2)
        ref.send_nowait("go")
        await trio.sleep(1)
        ref.send_nowait(b"passed over")
        ref.send_nowait(1)
        ref.send_nowait(2, interrupt=True)
        await system.wait_idle()
        assert got[-1] == b"passed over"
        assert {*got[:2]} == {("took", 1), ("took", 2)}


async def test_what_a_receive_takes_of_a_full_box_makes_room(autojump_clock: MockClock) -> None:
    """A handler that reads on lets its senders in."""
    got: list[Any] = []
    async with open_system(limits=Limits(max_unread=4)) as system:
        ref = await system.spawn(Dialog, got, int, 9, 20)
        ref.send_nowait("go")
        for number in range(20):
            await ref.send(number, wait=1)
        await system.wait_idle()
        assert got == [("took", number) for number in range(20)]


async def test_a_handler_may_receive_ten_thousand_messages(autojump_clock: MockClock) -> None:
    """Each costs what the first did, although none is behind the cursor before the handler ends."""
    got: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Dialog, got, int, 9, 10_000, shutdown=99)
        ref.send_nowait("go")
        began = time.process_time()
        for number in range(10_000):
            await ref.send(number, wait=1)
        await system.wait_idle()
        assert len(got) == 10_000
        assert time.process_time() - began < 10


async def test_a_predicate_that_raises_crashes_the_handler_that_wrote_it(autojump_clock: MockClock) -> None:
    """Not the sender, and not a wait for ever."""
    async with open_system() as system:
        ref = await system.spawn(Dialog, [], lambda envelope: 1 // 0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_crashes, ref)
            await trio.sleep(1)
            assert ref.send_nowait(1).seq == 2


async def _crashes(ref: ActorRef) -> None:
    with pytest.raises(ActorCrashed, match="ZeroDivisionError"):
        await ref.ask("go")


async def test_an_ask_that_was_taken_is_answered_by_reply(autojump_clock: MockClock) -> None:
    """Taking a question is taking it over."""

    class Clerk(Actor):
        @handle
        async def next(self, message: str) -> None:
            envelope = await self.receive(int)
            assert envelope is not None
            self.reply(envelope.body + 1, to=envelope)

    async with open_system() as system:
        ref = await system.spawn(Clerk)
        ref.send_nowait("next")
        assert await ref.ask(41) == 42


async def test_an_ask_whose_asker_is_gone_is_not_taken(autojump_clock: MockClock) -> None:
    """Nobody waits for that answer any more."""
    got: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Dialog, got)
        ref.send_nowait(Sleep(2))
        with pytest.raises(AskTimeout):
            await ref.ask(1, timeout=1)
        for message in ("go", 2):
            ref.send_nowait(message)
        await system.wait_idle()
        assert got == [("took", 2)]


async def test_what_was_taken_is_lost_with_a_crash_and_told(autojump_clock: MockClock) -> None:
    """It was being handled, so it is not handled again; nothing ends in silence."""
    got: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Dialog, got)
        for message in ("crash", 1, 2):
            ref.send_nowait(message)
        await system.wait_idle()
        assert got == [("took", 1), 2]
        assert [letter.envelope.body for letter in (system.dead_letters[0], system.dead_letters[1])] == ["crash", 1]


async def test_the_asker_of_what_was_taken_hears_of_the_crash(autojump_clock: MockClock) -> None:
    """As the asker of the message in progress does."""
    async with open_system() as system:
        ref = await system.spawn(Dialog, [])
        ref.send_nowait("crash")
        with pytest.raises(ActorCrashed, match="Boom"):
            await ref.ask(1)


async def test_with_more_deliveries_what_was_taken_comes_again_too(autojump_clock: MockClock) -> None:
    """The dialog begins anew, with all of its messages and in their order."""
    got: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Dialog, got, lambda envelope: envelope.body in {2, 3}, None, 2, max_deliveries=2)
        for message in ("crash", 1, 2, 3):
            ref.send_nowait(message)
        await system.wait_idle()
        assert got == [("took", 2), ("took", 3)] * 2 + [1]
        assert system.dead_letters.total == 3


async def test_a_rejected_message_and_what_it_took_are_done(autojump_clock: MockClock) -> None:
    """`Reject` is an answer; the actor goes on behind what it has read."""
    got: list[Any] = []
    async with open_system() as system:
        ref = await system.spawn(Dialog, got)
        for message in ("reject", 1, 2):
            ref.send_nowait(message)
        await system.wait_idle()
        assert got == [("took", 1), 2]


async def test_a_task_beside_the_loop_may_receive_and_nothing_is_handled_twice(autojump_clock: MockClock) -> None:
    """Loop and task read one mailbox; each message goes to one of them."""
    got: list[Any] = []

    class Two(Dialog):
        async def on_start(self) -> None:
            nursery.start_soon(self.read)

        async def read(self) -> None:
            while True:
                envelope = await self.receive(int)
                assert envelope is not None
                got.append(envelope.body)

    async with trio.open_nursery() as nursery, open_system() as system:
        ref = await system.spawn(Two, got)
        for number in range(100):
            ref.send_nowait(number)
            if number % 3 == 0:
                await trio.lowlevel.checkpoint()
        await system.wait_idle()
        nursery.cancel_scope.cancel()
    assert sorted(got) == list(range(100))
