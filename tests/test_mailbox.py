"""The mailbox on its own: what it accepts, how often, in which order. Waiting: `test_waiting.py`; any order of all: `test_mailbox_model.py`."""

import gc
import tracemalloc

import pytest
import trio
from trio.testing import MockClock

from actors import (
    CancelCalls,
    Control,
    FromActor,
    FromUser,
    IdConflict,
    Mailbox,
    MailboxFull,
    Outcome,
    Pause,
    Priority,
    Resume,
    ToolCallFinished,
    TooManyHops,
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


def bodies(envelopes: object) -> list[object]:
    return [envelope.body for envelope in envelopes]  # type: ignore[attr-defined]


# ------------------------------------------------------------------ accepting
def test_a_resend_returns_the_first_receipt_and_keeps_nothing() -> None:
    """A sender that lost the reply sends again; the message must not count twice."""
    box = Mailbox()
    first = box.send_nowait(HELLO, sender=ANN, id="web-1")
    again = box.send_nowait(UserMessage("hello"), sender=ANN, id="web-1")
    assert (first.duplicate, again.duplicate) == (False, True)
    assert (again.id, again.seq) == (first.id, first.seq) == ("web-1", 1)
    assert len(box.unread(0)) == 1
    assert box.statistics().duplicates == 1


def test_without_an_id_the_same_words_are_two_messages() -> None:
    """Saying a thing twice is a person's right."""
    box = Mailbox()
    first, second = (box.send_nowait(HELLO, sender=ANN) for _ in range(2))
    assert first.id != second.id
    assert bodies(box.unread(0)) == [HELLO, HELLO]


def test_seqs_count_from_one_without_gaps() -> None:
    """A cursor is a number; a gap would be a message that nobody can name."""
    box = filled(3)
    assert [envelope.seq for envelope in box.unread(0)] == [1, 2, 3]
    assert [len(box.unread(cursor)) for cursor in (0, 2, 3)] == [3, 1, 0]


def test_a_refused_send_leaves_no_gap() -> None:
    """The next accepted one takes the seq that the refused one did not get."""
    box = filled(1, capacity=1)
    with pytest.raises(MailboxFull):
        box.send_nowait(2, sender=BOT)
    box.advance(1)
    assert box.send_nowait(3, sender=BOT).seq == 2


def test_reading_twice_gives_the_same() -> None:
    """Reading is no consuming: a reader that crashed reads again."""
    box = filled(3)
    assert box.unread(0) == box.unread(0)
    assert len(box.unread(0)) == 3


def test_one_id_from_two_senders_is_two_messages() -> None:
    """An id is its sender's own; two hosts may both count from 1."""
    box = Mailbox()
    box.send_nowait(HELLO, sender=ANN, id="1")
    assert not box.send_nowait(HELLO, sender=BOT, id="1").duplicate
    assert not box.send_nowait(HELLO, sender=FromUser("bob"), id="1").duplicate
    assert len(box.unread(0)) == 3


def test_one_id_for_two_bodies_is_a_conflict() -> None:
    """The second would be lost in silence if it passed for a resend."""
    box = Mailbox()
    box.send_nowait(HELLO, sender=ANN, id="1")
    with pytest.raises(IdConflict, match=r"id '1' .* another body"):
        box.send_nowait(UserMessage("goodbye"), sender=ANN, id="1")
    assert bodies(box.unread(0)) == [HELLO]


def test_a_plain_body_is_known_by_identity() -> None:
    """Any object may be a message, also one that compares equal to others."""
    box, body = Mailbox(), [1]
    box.send_nowait(body, sender=BOT, id="1")
    assert box.send_nowait(body, sender=BOT, id="1").duplicate
    with pytest.raises(IdConflict):
        box.send_nowait([1], sender=BOT, id="1")


@pytest.mark.parametrize("id", ["", "a b", "ä", "x" * 65, "1\n", "m-7"])
def test_an_id_that_cannot_be_one_is_refused(id: str) -> None:
    """Ids stand in headers and keys; those like `m-7` are the runtime's own."""
    box = Mailbox()
    with pytest.raises(ValueError, match="cannot be a message's id"):
        box.send_nowait(HELLO, sender=ANN, id=id)
    assert not box.unread(0)


def test_minted_ids_are_short_and_unique_beyond_one_mailbox() -> None:
    """An answer names a message by its id alone."""
    receipts = [Mailbox().send_nowait(HELLO, sender=ANN) for _ in range(100)]
    assert len({receipt.id for receipt in receipts}) == 100
    assert max(len(receipt.id) for receipt in receipts) <= 12


def test_sixteen_hops_are_accepted_and_seventeen_are_not() -> None:
    """Two agents that answer each other stop by themselves."""
    box = Mailbox()
    box.send_nowait(HELLO, sender=BOT, hops=16)
    with pytest.raises(TooManyHops, match="hop 17 of at most 16"):
        box.send_nowait(HELLO, sender=BOT, hops=17)
    assert (len(box.unread(0)), box.statistics().refused) == (1, 1)


def test_a_duplicate_is_known_before_any_rule_is_asked() -> None:
    """A resend is no new message, whatever became of the sender meanwhile."""
    box = Mailbox()
    box.send_nowait(HELLO, sender=ANN, id="1")
    assert box.accept(HELLO, ANN, id="1", hops=99, permit=lambda _priority: pytest.fail("asked")).duplicate


def test_permission_comes_before_hops_and_hops_before_room() -> None:
    """The order decides which refusal a sender reads: the one that it can do something about."""
    box = filled(1, capacity=1)
    with pytest.raises(TooManyHops):
        box.accept(2, BOT, hops=17)
    with pytest.raises(ZeroDivisionError):
        box.accept(2, BOT, hops=17, permit=lambda _priority: 1 // 0)  # type: ignore[arg-type,return-value]


def test_a_refused_interrupt_is_delivered_as_the_receipt_says() -> None:
    """A model learns from the receipt that it was demoted."""
    receipt = Mailbox().accept(HELLO, BOT, priority=Priority.INTERRUPT, permit=lambda _priority: Priority.NORMAL)
    assert receipt.priority is Priority.NORMAL


def test_a_mailbox_without_room_is_a_mistake() -> None:
    """It would refuse everything."""
    with pytest.raises(ValueError, match="at least 1"):
        Mailbox(capacity=0)


# ------------------------------------------------------------------ the bound
def test_the_257th_is_refused_and_nothing_of_it_is_kept() -> None:
    """A flood ends at the sender, with a reason that it can read."""
    box = filled(256)
    with pytest.raises(MailboxFull, match="256 unread messages of at most 256"):
        box.send_nowait(257, sender=BOT, id="late")
    assert (len(box.unread(0)), box.statistics().refused) == (256, 1)
    box.advance(1)
    assert not box.send_nowait(257, sender=BOT, id="late").duplicate


def test_control_and_finished_calls_are_accepted_past_the_bound_and_count() -> None:
    """A flooded session can still be paused, and its calls still end."""
    box = filled(256)
    box.send_nowait(Control(Pause()), sender=ANN)
    box.send_nowait(DONE, sender=BOT)
    assert (len(box.unread(0)), box.statistics().unread) == (258, 258)


def test_past_the_bound_equal_control_is_one_and_other_control_is_more() -> None:
    """A button pressed a thousand times costs one place."""
    box = filled(256)
    first = box.send_nowait(Control(CancelCalls(["call_1"])), sender=ANN)
    again = box.send_nowait(Control(CancelCalls(["call_1"])), sender=ANN)
    other = box.send_nowait(Control(CancelCalls(["call_2"])), sender=ANN)
    assert (again.seq, again.duplicate, other.seq) == (first.seq, True, 258)


def test_within_the_bound_equal_control_is_not_merged() -> None:
    """Pause, Resume, Pause must end in a pause."""
    box = Mailbox()
    for action in (Pause(), Resume(), Pause()):
        assert not box.send_nowait(Control(action), sender=ANN).duplicate
    assert len(box.unread(0)) == 3


def test_a_persons_interrupts_have_sixteen_places_of_their_own() -> None:
    """Whoever floods a session, a person can still say stop; finished calls do not take these places."""
    box = filled(256)
    for _ in range(20):
        box.send_nowait(DONE, sender=BOT)
    for number in range(16):
        box.send_nowait(number, sender=ANN, priority=Priority.INTERRUPT)
    with pytest.raises(MailboxFull):
        box.send_nowait(16, sender=ANN, priority=Priority.INTERRUPT)
    with pytest.raises(MailboxFull):
        box.send_nowait(0, sender=BOT, priority=Priority.INTERRUPT)


def test_the_places_of_interrupts_are_free_again_once_they_are_read() -> None:
    """They are places, not a ration for life."""
    box = filled(1, capacity=1)
    for _ in range(3):
        for number in range(16):
            box.send_nowait(number, sender=ANN, priority=Priority.INTERRUPT)
        box.advance(box.last)
        box.send_nowait("full again", sender=BOT)
    assert box.statistics().unread == 1


def test_control_is_unread_until_its_own_cursor_passes() -> None:
    """A pause that was not applied survives the reading of the mail around it."""
    box = Mailbox()
    box.send_nowait(Control(Pause()), sender=ANN)
    box.send_nowait(HELLO, sender=ANN)
    box.advance(2)
    assert box.statistics().unread == 1
    box.advance(2, control=1)
    assert box.statistics().unread == 0


def test_a_resend_succeeds_while_full_and_after_trim() -> None:
    """What was accepted stays accepted, whatever happened to the box since."""
    box = Mailbox(capacity=2)
    box.send_nowait(HELLO, sender=ANN, id="1")
    box.send_nowait(HELLO, sender=ANN)
    assert box.send_nowait(HELLO, sender=ANN, id="1").duplicate
    box.advance(2)
    box.trim(2)
    assert box.send_nowait(HELLO, sender=ANN, id="1").seq == 1


def test_the_window_of_ids_holds_four_times_the_capacity_and_no_more() -> None:
    """Idempotency is bounded in memory, and long enough for everything that can be unread."""
    box = Mailbox(capacity=2)
    for number in range(9):
        box.send_nowait(HELLO, sender=ANN, id=f"web-{number}")
        box.advance(number + 1)
    assert box.send_nowait(HELLO, sender=ANN, id="web-1").duplicate
    assert not box.send_nowait(HELLO, sender=ANN, id="web-0").duplicate


def test_the_window_and_the_bound_follow_a_change_of_the_capacity() -> None:
    """The tree sets it after the mailbox was made."""
    box = Mailbox(capacity=2)
    box.post(HELLO, ANN)
    box.capacity = 4
    for number in range(3):
        box.send_nowait(HELLO, sender=ANN, id=f"web-{number}")
    box.advance(4)
    for number in range(3, 16):
        box.send_nowait(HELLO, sender=ANN, id=f"web-{number}")
        box.advance(number + 2)
    assert box.send_nowait(HELLO, sender=ANN, id="web-0").duplicate
    box.capacity = 1
    box.post(HELLO, ANN)
    with pytest.raises(MailboxFull):
        box.post(HELLO, ANN)


# ------------------------------------------------------------------ cursors
def test_a_cursor_never_moves_back_nor_past_the_end() -> None:
    """A commit that was tried again must not un-read, and nobody reads what was not sent."""
    box = filled(3)
    box.advance(2)
    box.advance(1)
    assert box.statistics().unread == 1
    for past in ({"cursor": 4}, {"cursor": 3, "control": 4}):
        with pytest.raises(ValueError, match="ends at seq 3"):
            box.advance(**past)
    assert box.statistics().unread == 1


def test_below_what_was_trimmed_what_is_left_is_returned() -> None:
    """A reader that comes late gets what there is."""
    box = filled(3)
    box.trim(2)
    assert bodies(box.unread(0)) == [3]
    box.trim(99)
    assert list(box.unread(0)) == []
    assert box.send_nowait(4, sender=BOT).seq == 4


def test_what_was_trimmed_unread_takes_no_room() -> None:
    """Whoever frees mail that he has not read means it."""
    box = filled(2, capacity=2)
    box.trim(1)
    assert box.statistics().unread == 1
    assert box.send_nowait(3, sender=BOT).seq == 3


async def test_ten_thousand_messages_pass_through_256_places_in_flat_memory(autojump_clock: MockClock) -> None:
    """A mailbox is a window on a stream, not a store of it."""
    box, read = Mailbox(), 0

    async def reader() -> None:
        nonlocal read
        while read < 10_000:
            read = (await box.receive(read))[-1].seq
            box.advance(read)
            box.trim(read)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(reader)
        for number in range(10_000):
            await box.accept_when_room(1, number, BOT)
    assert (read, box.statistics().accepted, box.statistics().refused, len(box._log)) == (10_000, 10_000, 0, 0)


def test_a_mailbox_that_is_read_keeps_its_size() -> None:
    """A million messages later an actor must weigh what it weighed."""
    box = Mailbox(capacity=16)
    tracemalloc.start()
    for number in range(1, 20_001):
        box.send_nowait(HELLO, sender=ANN, id=f"web-{number}")
        box.advance(number)
        box.trim(number)
        if number == 1000:
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 5_000
