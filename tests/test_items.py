"""The items of a transcript."""

import pytest
from attrs.exceptions import FrozenInstanceError
from transcripts import answers, asks, mail, says, user

from actors._envelope import FromSystem, ToolCallFinished, UserMessage
from actors._outcome import Media, Outcome
from actors.models._blocks import Text, Thinking, ToolCall
from actors.models._items import AssistantItem, Item, Placeholder, Result, ResultsItem, UserItem

PNG, PDF = Media("image/png", b"x"), Media("application/pdf", b"y")


def test_an_amended_user_item_holds_both_and_leaves_the_first_alone() -> None:
    """Two user items never stand in a row, and what was committed is not rewritten."""
    first, more = UserItem([mail(UserMessage("one"), key=1)]), UserItem([mail(UserMessage("two"), key=2)], waiting=3)
    both = first.amended(more)
    assert both.text == "[mail m-1 from user]\none\n\n[mail m-2 from user]\ntwo\n\n[3 more messages waiting]"
    assert first.text == "one"


def test_mail_takes_back_that_the_rounds_are_used_up() -> None:
    """Unless it is told once more: a person's words make them count anew."""
    told, words = UserItem(nudge="wrap_up"), mail(UserMessage("go on"), key=1)
    assert told.amended(UserItem([words])).text == "go on"
    assert told.amended(UserItem([words], nudge="wrap_up")).text.startswith("You have used all rounds")


def test_a_nudge_stays_when_mail_amends_it() -> None:
    """The words of the turn's own come first, the mail behind."""
    text = UserItem(nudge="continuation").amended(UserItem([mail(UserMessage("one"), key=1)])).text
    assert text.startswith("Your last turn was empty.")
    assert text.endswith("[mail m-1 from user]\none")


def test_media_come_in_the_order_of_the_mail_and_not_twice() -> None:
    """What was fetched before was shown before."""
    finished = ToolCallFinished("c", "t", Outcome.completed(PDF))
    envelopes = [mail(UserMessage("see", [PNG])), mail(finished, FromSystem("runtime"), key=9)]
    assert UserItem(envelopes).media == (PNG, PDF)
    assert UserItem(envelopes, already_read=("m-9",)).media == (PNG,)


def test_an_assistant_item_has_words_and_calls_apart() -> None:
    """Thinking is neither."""
    call = ToolCall("a", "look", {})
    item = AssistantItem([Thinking("hm"), Text("one "), call, Text("two")], "openai:m")
    assert (item.text, item.calls) == ("one two", (call,))


def test_a_result_is_read_as_its_outcome_or_as_a_placeholder() -> None:
    """One result per call, finished or not."""
    item = ResultsItem([Result("a", "t", Outcome.completed([1])), Result("b", "t", Placeholder("running", "interrupted"))])
    assert item.results[0].text == "[1]"
    assert item.results[1].text.startswith('{"status":"running","tool_call_id":"b"')


def test_the_media_of_a_result_are_its_outcomes() -> None:
    """A placeholder has none."""
    assert Result("a", "t", Outcome.completed(["see", PNG])).media == (PNG,)
    assert Result("a", "t", Placeholder("deferred", "asked")).media == ()


@pytest.mark.parametrize("item", [user("hi"), says("hi"), asks("a"), answers("a")], ids=["user", "says", "asks", "answers"])
def test_items_are_frozen(item: Item) -> None:
    """Appended, never rewritten."""
    with pytest.raises(FrozenInstanceError):
        item.results = ()  # type: ignore[misc, union-attr]
