"""Waiting at a mailbox: for mail, for room, and for the Ctrl-C that comes meanwhile."""

import signal
from collections.abc import Callable, Sequence
from functools import partial

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

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
    ToolCallFinished,
    UserMessage,
)

ANN = FromUser("ann")
BOT = FromActor("bot")
DONE = ToolCallFinished("call_1", "look", Outcome.completed("done"))
HELLO = UserMessage("hello")


def filled(count: int, capacity: int = 256) -> Mailbox:
    """A mailbox with so many numbers in it, from 1."""
    box = Mailbox(capacity=capacity)
    for number in range(1, count + 1):
        box.send_nowait(number, sender=BOT)
    return box


def bodies(envelopes: Sequence[Envelope]) -> list[object]:
    return [envelope.body for envelope in envelopes]


async def expect(box: Mailbox, match: Callable[[Envelope], bool] | None, wanted: Sequence[object]) -> None:
    assert bodies(await box.receive(0, match)) == wanted


# ------------------------------------------------------------------ for mail
async def test_a_wait_whose_condition_holds_returns_at_once() -> None:
    """Level-triggered: a reader that comes after the mail misses nothing."""
    box = filled(3)
    assert bodies(await box.receive(0)) == [1, 2, 3]
    assert bodies(await box.receive(1, lambda envelope: envelope.body != 2)) == [3]
    assert len(box.unread(0)) == 3


async def test_a_filtered_wait_is_not_woken_by_other_mail(autojump_clock: MockClock) -> None:
    """A wait for one reply costs nothing while a hundred other messages come."""
    box, looks = Mailbox(), 0

    def is_reply(envelope: Envelope) -> bool:
        nonlocal looks
        looks += 1
        return bool(envelope.body == "reply")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(expect, box, is_reply, ["reply"])
        await wait_all_tasks_blocked()
        for body in (1, 2, 3, "reply"):
            box.send_nowait(body, sender=BOT)
            woken = box.statistics().waiting == 0
            assert woken is (body == "reply")
    assert looks == 8  # each once when it came; all four again by the reader, for itself


async def test_a_cancelled_wait_took_nothing(autojump_clock: MockClock) -> None:
    """A timeout on a receive loses no message."""
    box = Mailbox()
    with trio.move_on_after(1):
        await box.receive(0)
    assert box.statistics().waiting == 0
    box.send_nowait(1, sender=BOT)
    assert bodies(await box.receive(0)) == [1]


async def test_a_cancelled_task_receives_nothing() -> None:
    """`receive` is a checkpoint also when there is mail."""
    box = filled(1)
    with trio.CancelScope() as scope:
        scope.cancel()
        await box.receive(0)
    assert scope.cancelled_caught


async def test_all_waiting_readers_see_one_message(autojump_clock: MockClock) -> None:
    """A log has any number of readers."""
    box = Mailbox()
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(expect, box, None, ["news"])
        await wait_all_tasks_blocked()
        box.send_nowait("news", sender=BOT)


async def test_a_predicate_that_raises_wakes_its_reader_who_sees_it(autojump_clock: MockClock) -> None:
    """The sender never pays for a reader's bug, nor do the other readers."""
    box = Mailbox()

    async def buggy() -> None:
        with pytest.raises(ZeroDivisionError):
            await box.receive(0, lambda _envelope: bool(1 // 0))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(buggy)
        nursery.start_soon(expect, box, None, [1])
        await wait_all_tasks_blocked()
        assert box.send_nowait(1, sender=BOT).seq == 1


async def test_a_predicate_may_send_to_the_mailbox_it_waits_on(autojump_clock: MockClock) -> None:
    """Whatever a predicate does, a reader is woken once."""
    box = Mailbox()

    def echo(envelope: Envelope) -> bool:
        if len(box.unread(0)) == 1:
            box.send_nowait("pong", sender=BOT)
        return True

    async with trio.open_nursery() as nursery:
        nursery.start_soon(expect, box, echo, ["ping", "pong"])
        nursery.start_soon(expect, box, lambda envelope: envelope.body == "pong", ["pong"])
        await wait_all_tasks_blocked()
        box.send_nowait("ping", sender=BOT)


# ------------------------------------------------------------------ for room
async def fill(box: Mailbox, name: str, seconds: float = 9, **how: object) -> None:
    """Send `name` as soon as there is room."""
    await box.accept_when_room(seconds, name, BOT, **how)


async def test_room_is_given_in_the_order_of_arrival(autojump_clock: MockClock) -> None:
    """A sender that waits longest goes first, and nobody who comes later slips in."""
    box = filled(1, capacity=1)
    async with trio.open_nursery() as nursery:
        for name in ("first", "second", "third"):
            nursery.start_soon(fill, box, name)
            await wait_all_tasks_blocked()
        for seq in (1, 2, 3):
            box.advance(seq)
            with pytest.raises(MailboxFull):
                box.send_nowait("late", sender=BOT)
    assert bodies(box.unread(1)) == ["first", "second", "third"]


async def test_whoever_waits_too_long_for_room_is_refused_and_nothing_is_kept(autojump_clock: MockClock) -> None:
    """A wait for room has an end; a refusal after it is as clean as one at once."""
    box = filled(1, capacity=1)
    began = trio.current_time()
    with pytest.raises(MailboxFull):
        await box.accept_when_room(5, 2, BOT)
    assert trio.current_time() - began == 5
    box.advance(1)
    assert (list(box.unread(1)), box.statistics().refused) == ([], 1)


async def test_whoever_got_room_in_the_end_was_not_refused(autojump_clock: MockClock) -> None:
    """The count of refusals tells a host that mail was turned away, not that it was slow."""
    box = filled(1, capacity=1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fill, box, "patient")
        await wait_all_tasks_blocked()
        box.advance(1)
    assert box.statistics().refused == 0


async def test_a_cancelled_wait_for_room_kept_nothing(autojump_clock: MockClock) -> None:
    """Its place in the line is free, too."""
    box = filled(1, capacity=1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fill, box, "gone")
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fill, box, "stays")
        await wait_all_tasks_blocked()
        box.advance(1)
    assert bodies(box.unread(1)) == ["stays"]


async def test_no_wait_for_room_means_now(autojump_clock: MockClock) -> None:
    """`wait=0` refuses at once where there is none and accepts where there is."""
    box = filled(1, capacity=2)
    await box.accept_when_room(0, 2, BOT)
    with pytest.raises(MailboxFull):
        await box.accept_when_room(0, 3, BOT)
    assert trio.current_time() == 0


@pytest.mark.parametrize("body", [DONE, Control(Pause()), HELLO], ids=["call", "control", "resend"])
async def test_what_needs_no_room_waits_for_none(autojump_clock: MockClock, body: object) -> None:
    """A line of waiting senders holds up neither a finished call, nor control, nor a resend."""
    box = Mailbox(capacity=1)
    box.send_nowait(HELLO, sender=BOT, id="1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fill, box, "waits")
        await wait_all_tasks_blocked()
        receipt = await box.accept_when_room(0, body, BOT, id="1" if body is HELLO else None)
        assert receipt.duplicate is (body is HELLO)
        nursery.cancel_scope.cancel()


async def test_a_persons_interrupt_overtakes_those_who_wait_for_room(autojump_clock: MockClock) -> None:
    """It has places of its own."""
    box = filled(1, capacity=1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fill, box, "waits")
        await wait_all_tasks_blocked()
        await box.accept_when_room(9, "stop", ANN, priority=Priority.INTERRUPT)
        assert bodies(box.unread(1)) == ["stop"]
        nursery.cancel_scope.cancel()


async def test_a_bad_send_that_waited_fails_alone(autojump_clock: MockClock) -> None:
    """Whoever makes room sees nothing of what is wrong with another's message."""
    box = filled(1, capacity=1)

    async def conflict() -> None:
        with pytest.raises(IdConflict):
            await box.accept_when_room(9, UserMessage("other"), BOT, id="1")

    async with trio.open_nursery() as nursery:
        for waits in (partial(box.accept_when_room, 9, HELLO, BOT, id="1"), conflict, partial(fill, box, "good")):
            nursery.start_soon(waits)
            await wait_all_tasks_blocked()
        box.advance(1)
        box.advance(2)
    assert bodies(box.unread(1)) == [HELLO, "good"]


async def test_trimming_unread_mail_makes_room_too(autojump_clock: MockClock) -> None:
    """Room is room, however it came."""
    box = filled(1, capacity=1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fill, box, "next")
        await wait_all_tasks_blocked()
        box.trim(1)
    assert bodies(box.unread(0)) == ["next"]


async def test_closing_refuses_whoever_waits_for_room_now(autojump_clock: MockClock) -> None:
    """A sender does not wait out its time for an actor that has ended."""
    box = filled(1, capacity=1)

    async def refused() -> None:
        with pytest.raises(LookupError):
            await box.accept_when_room(9, 2, BOT)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(refused)
        await wait_all_tasks_blocked()
        box.close(LookupError)
    assert trio.current_time() == 0


# ------------------------------------------------------------------ Ctrl-C
def test_a_ctrl_c_in_a_readers_predicate_reaches_the_main_task_and_tears_nothing() -> None:
    """The predicate runs in the middle of a send; the mail is kept, all readers are woken, the receipt is given."""
    box = Mailbox()
    seen: list[object] = []

    async def read(match: Callable[[Envelope], bool]) -> None:
        seen.append(bodies(await box.receive(0, match)))

    def interrupted(_envelope: Envelope) -> bool:
        if not seen:
            seen.append("ctrl-c")
            signal.raise_signal(signal.SIGINT)
        return True

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read, interrupted)
            nursery.start_soon(read, lambda _envelope: True)
            await wait_all_tasks_blocked()
            seen.append(box.send_nowait(1, sender=BOT).seq)
            with trio.CancelScope(shield=True):
                await wait_all_tasks_blocked()

    with pytest.raises(BaseExceptionGroup) as caught:
        trio.run(main)
    assert caught.group_contains(KeyboardInterrupt)
    assert sorted(map(str, seen)) == ["1", "[1]", "[1]", "ctrl-c"]


async def test_mail_of_the_instant_in_which_a_wait_is_cancelled_is_kept_and_its_sender_told() -> None:
    """A wait whose time is over is over at once, also before its task has run: nobody wakes it twice."""
    box = Mailbox()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(box.receive, 0)
            await wait_all_tasks_blocked()
            scope.cancel()
            assert box.send_nowait("hello", sender=BOT).seq == 1
    assert bodies(box.unread(0)) == ["hello"]
