"""Folding mail into a turn, and who wakes whom: pure, so by tables."""

import pytest
from transcripts import mail

from actors import (
    AgentMessage,
    CallRecord,
    Control,
    Envelope,
    FromActor,
    FromSession,
    FromSystem,
    FromToolCall,
    FromUser,
    Outcome,
    Pause,
    Sender,
    ToolCallFinished,
    UserMessage,
    WakeKind,
)
from actors._envelope import INTERRUPT
from actors.agent._fold import BYTES, HEAD, MOST, Fold, fold, kind_of, wakes
from actors.agent._record import State

ALL: tuple[WakeKind, ...] = ("user", "tool", "parent", "child", "peer")


def state(**facts: object) -> State:
    """A session called `s`, whose parent is `boss` and whose child is `kid`."""
    return State("s", "Worker", parent="boss", **facts)  # type: ignore[arg-type]


def words(size: int = 1, *, urgent: bool = False) -> Envelope:
    """A person's words, of so many bytes."""
    return mail(UserMessage("x" * size), priority=INTERRUPT if urgent else mail(None).priority)


def end(call: str) -> Envelope:
    """The end of a call, as mail."""
    return mail(ToolCallFinished(call, "look", Outcome.completed("seen")), FromToolCall("s", call))


def folded(unread: list[Envelope], *placeholders: str) -> Fold:
    """The fold of this mail, for these placeholders."""
    return fold(state(), unread, placeholders)


# ------------------------------------------------------------------ what fits
@pytest.mark.parametrize(
    ("sizes", "taken", "waiting"),
    [
        ([], 0, 0),
        ([1] * MOST, MOST, 0),
        ([1] * (MOST + 1), MOST, 1),
        ([BYTES], 1, 0),
        ([BYTES, 1], 1, 1),
        ([BYTES - 1, 1, 1], 2, 1),
        ([BYTES + 1, 1], 1, 1),
        ([1, BYTES], 1, 1),
    ],
)
def test_a_fold_takes_what_fits_and_counts_what_waits(sizes: list[int], taken: int, waiting: int) -> None:
    """64 envelopes, 32 KiB, and at least one."""
    unread = [words(size) for size in sizes]
    found = folded(unread)
    assert (len(found.mail), found.waiting) == (taken, waiting)
    assert found.cursor == (unread[taken - 1].seq if taken else 0)


def test_the_bound_counts_bytes_and_cuts_on_a_character() -> None:
    """A character may take four of them."""
    huge = mail(UserMessage("\N{SNOWMAN}" * BYTES))
    found = folded([huge])
    assert found.cuts == ((huge.id, BYTES // 3),)


def test_a_fold_goes_through_the_last_interrupt_and_shows_heads_beyond_the_bound() -> None:
    """What is urgent is read now, and all that came before it."""
    unread = [words(BYTES), words(HEAD + 1), words(HEAD), words(1, urgent=True), words(1)]
    found = folded(unread)
    assert (len(found.mail), found.waiting) == (4, 1)
    assert found.cuts == ((unread[1].id, HEAD),)


def test_an_interrupt_behind_more_than_the_bound_takes_all_along() -> None:
    """Order is kept, nothing is skipped."""
    unread = [*(words() for _ in range(3 * MOST)), words(urgent=True)]
    assert folded(unread).mail == tuple(unread)


# ------------------------------------------------------------------ what is shown
def test_the_end_of_a_call_is_shown_if_its_result_was_a_placeholder() -> None:
    """Otherwise it is consumed in silence, and takes no room."""
    unread = [end("told"), words(), end("late"), end("told too")]
    found = folded(unread, "late")
    assert found.mail == (unread[1], unread[2])
    assert found.cursor == unread[-1].seq


def test_silent_mail_is_neither_counted_nor_announced() -> None:
    """It is not there, for the model."""
    unread = [*(words() for _ in range(MOST + 1)), end("told")]
    assert folded(unread).waiting == 1


def test_an_outcome_that_was_fetched_is_marked_as_read() -> None:
    """Its payload stands in the history already."""
    late = end("late")
    assert fold(state(fetched={"late"}), [late], ("late",)).already_read == (late.id,)


def test_applied_orders_behind_the_mail_are_passed_with_it() -> None:
    """They have nothing to tell; kept, they would never be freed."""
    unread = [words()]
    assert fold(state(control_cursor=unread[0].seq + 9), unread, ()).cursor == unread[0].seq + 9


def test_a_person_spoke_if_a_persons_mail_was_taken() -> None:
    """It restarts the count of rounds."""
    assert folded([words()]).person
    assert not folded([end("late")], "late").person


# ------------------------------------------------------------------ who wakes
@pytest.mark.parametrize(
    ("sender", "kind"),
    [
        (FromUser(), "user"),
        (FromUser("ann"), "user"),
        (FromActor("clock"), "tool"),
        (FromSystem("thread"), "tool"),
        (FromToolCall("s", "call_1"), "tool"),
        (FromSession("boss"), "parent"),
        (FromToolCall("boss", "call_1"), "parent"),
        (FromSession("kid"), "child"),
        (FromToolCall("kid", "call_1"), "child"),
        (FromSession("s/looks-like-a-child"), "peer"),
        (FromSession("stranger"), "peer"),
        (FromSession("s"), "peer"),
    ],
)
def test_the_kind_of_a_sender_follows_from_recorded_lineage(sender: Sender, kind: WakeKind) -> None:
    """Never from the text of its address."""
    assert kind_of(sender, state(), lambda address: address == "kid") == kind


@pytest.mark.parametrize(
    ("envelope", "facts", "woken"),
    [
        (words(), {}, True),
        (mail(AgentMessage("hi"), FromActor("clock")), {}, True),
        (mail(Control(Pause())), {}, False),
        (end("late"), {"placeholders": {"late"}}, True),
        (end("told"), {"placeholders": {"late"}}, False),
        (end("late"), {"placeholders": {"late"}, "stopped_run": 1}, False),
        (words(), {"floor": 10**9}, False),
        (words(), {"mail_cursor": 10**9}, False),
    ],
)
def test_what_wakes_a_session(envelope: Envelope, facts: dict[str, object], *, woken: bool) -> None:
    """Nothing that was read, that a stop silenced, or that a result told already."""
    session = state(calls={"late": CallRecord("late", "look", {}, run=1)}, **facts)
    assert wakes(envelope, session, ALL, lambda _address: False) is woken
