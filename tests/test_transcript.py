"""What may follow what in a transcript, and that checking it stays cheap."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts import answers, asks, says, user

from actors._errors import ModelError, TranscriptInvalid
from actors._outcome import Media
from actors.models._blocks import Thinking
from actors.models._items import AssistantItem, Item, UserItem
from actors.models._transcript import Validator

VALID: dict[str, list[Item]] = {
    "a question": [user("hi")],
    "a call and its result": [user("hi"), asks("a"), answers("a")],
    "calls in order": [user("hi"), asks("a", "b"), answers("a", "b")],
    "mail behind results": [user("hi"), asks("a"), answers("a"), user("and?")],
    "an answer right behind results": [user("hi"), asks("a"), answers("a"), asks("b"), answers("b")],
    "a second question": [user("hi"), says("hello"), user("again")],
    "words beside calls": [user("hi"), asks("a", text="one moment"), answers("a")],
    "a picture without words": [user("", Media("image/png", b"x"))],
    "the longest id": [user("hi"), asks("x" * 64), answers("x" * 64)],
}
INVALID: dict[str, tuple[list[Item], int, str]] = {
    "an answer first": ([says("hi"), user("hi")], 0, "the first item is a user item"),
    "results first": ([answers("a")], 0, "the first item is a user item"),
    "two user items": ([user("hi"), user("hi")], 1, "followed by the model's answer"),
    "results for nothing": ([user("hi"), answers("a")], 1, "followed by the model's answer"),
    "mail before results": ([user("hi"), asks("a"), user("hi"), answers("a")], 2, "followed at once by their results"),
    "an answer before results": ([user("hi"), asks("a"), says("hm")], 2, "followed at once by their results"),
    "results twice": ([user("hi"), asks("a"), answers("a"), answers("a")], 3, "results stand only once"),
    "results behind words": ([user("hi"), says("hm"), answers("a")], 2, "followed by a user item"),
    "two answers": ([user("hi"), says("hm"), says("hm")], 2, "followed by a user item"),
    "a result missing": ([user("hi"), asks("a", "b"), answers("a")], 2, "one result, in call order"),
    "a result too many": ([user("hi"), asks("a"), answers("a", "b")], 2, "one result, in call order"),
    "results out of order": ([user("hi"), asks("a", "b"), answers("b", "a")], 2, "one result, in call order"),
    "one call answered twice": ([user("hi"), asks("a", "b"), answers("a", "a")], 2, "one result, in call order"),
    "no results": ([user("hi"), asks("a"), answers()], 2, "one result, in call order"),
    "an id used before": ([user("hi"), asks("a"), answers("a"), asks("a"), answers("a")], 3, "'a' was used before"),
    "an id twice in one answer": ([user("hi"), asks("a", "a")], 1, "'a' was used before"),
    "a missing id": ([user("hi"), asks("")], 1, "1 to 64 of"),
    "an id with a blank": ([user("hi"), asks("a b")], 1, "1 to 64 of"),
    "an id with a line end": ([user("hi"), asks("a\n")], 1, "1 to 64 of"),
    "an id too long": ([user("hi"), asks("x" * 65)], 1, "1 to 64 of"),
    "an empty answer": ([user("hi"), AssistantItem([], "m")], 1, "words or calls"),
    "a blank answer": ([user("hi"), says(" \n")], 1, "words or calls"),
    "an answer of thinking alone": ([user("hi"), AssistantItem([Thinking("hm")], "m")], 1, "words or calls"),
    "an empty user item": ([UserItem()], 0, "text or media"),
}


class Counting(list[Item]):
    """A transcript that counts how often somebody looks at an item."""

    looks = 0

    def __getitem__(self, index: Any) -> Any:
        self.looks += 1
        return super().__getitem__(index)


def _history(*items: Item) -> list[Item]:
    return list(items)


@pytest.mark.parametrize("transcript", VALID.values(), ids=VALID)
def test_a_history_that_providers_take_passes(transcript: list[Item]) -> None:
    """The rules must not refuse what is right."""
    Validator().check_request(transcript)


@pytest.mark.parametrize(("transcript", "index", "rule"), INVALID.values(), ids=INVALID)
def test_a_broken_history_is_refused_with_item_and_rule(transcript: list[Item], index: int, rule: str) -> None:
    """A provider's 400 names neither; we do, before anything is sent."""
    with pytest.raises(TranscriptInvalid) as caught:
        Validator().check(transcript)
    assert (caught.value.index, isinstance(caught.value, ModelError)) == (index, True)
    assert rule in str(caught.value)
    assert f"item {index} of the transcript is a" in str(caught.value)


@pytest.mark.parametrize(
    "transcript", [[], [user("hi"), says("hello")], [user("hi"), asks("a")]], ids=["empty", "says", "asks"]
)
def test_a_request_ends_in_a_user_item_or_results(transcript: list[Item]) -> None:
    """There must be something to answer."""
    with pytest.raises(TranscriptInvalid):
        Validator().check_request(transcript)


@pytest.mark.parametrize(("transcript", "index", "rule"), INVALID.values(), ids=INVALID)
def test_checking_as_it_grows_finds_what_one_check_finds(transcript: list[Item], index: int, rule: str) -> None:
    """Remembering where one stopped must not make one blind."""
    validator = Validator()
    for length in range(index + 1):
        validator.check(transcript[:length])
    with pytest.raises(TranscriptInvalid) as caught:
        validator.check(transcript[: index + 1])
    assert caught.value.index == index


def test_a_check_looks_only_at_what_is_new() -> None:
    """Round 1,000 costs what round 10 did."""
    transcript = Counting([user("hi")])
    validator, looks = Validator(), []
    for number in range(1000):
        transcript += [asks(f"c{number}"), answers(f"c{number}")]
        transcript.looks = 0
        validator.check_request(transcript)
        looks.append(transcript.looks)
    assert looks[10] == looks[-1] <= 12


def test_an_amended_user_item_is_checked_again() -> None:
    """It is another object at the same place, and what follows it is new."""
    validator, first, amended = Validator(), user("hi"), user("hi, and more")
    history: list[Item] = [first, asks("a"), answers("a")]
    validator.check_request([*history, user("and")])
    validator.check_request([*history, amended])
    validator.check([*history, amended, asks("b")])
    with pytest.raises(TranscriptInvalid, match="'a' was used before"):
        validator.check([*history, amended, asks("a")])


def test_an_amended_item_may_be_wrong_too() -> None:
    """Not looking again would send it."""
    validator, history = Validator(), _history(user("hi"), says("hello"))
    validator.check_request([*history, user("and")])
    with pytest.raises(TranscriptInvalid, match="text or media"):
        validator.check_request([*history, UserItem()])


def test_another_history_is_checked_from_its_beginning() -> None:
    """Ids of the one are not ids of the other."""
    validator = Validator()
    validator.check_request([user("hi"), asks("a"), answers("a")])
    validator.check_request([user("ho"), asks("a"), answers("a")])
    with pytest.raises(TranscriptInvalid):
        validator.check_request([user("ho"), answers("a"), user("no")])


def test_after_a_refusal_a_mended_history_passes() -> None:
    """A refused answer may be taken back, and its ids with it."""
    validator, history = Validator(), _history(user("hi"))
    with pytest.raises(TranscriptInvalid):
        validator.check([*history, asks("a", "a")])
    validator.check([*history, asks("a", "b")])


_items = st.sampled_from([user("hi"), says("hm"), asks("a"), asks("b", "c"), answers("a"), answers("b", "c"), user(" ")])


@settings(deadline=None)  # a busy machine is no finding
@given(st.lists(_items, max_size=8), st.lists(st.integers(0, 8), max_size=6))
def test_no_way_of_growing_changes_the_verdict(items: list[Item], stops: list[int]) -> None:
    """Random histories, checked at random places on the way, against one check of the whole."""
    validator = Validator()
    for stop in sorted(stops):
        _verdict(validator, items[:stop])
    assert _verdict(validator, items) == _verdict(Validator(), items)


def _verdict(validator: Validator, items: list[Item]) -> tuple[int, str] | None:
    try:
        validator.check(items)
    except TranscriptInvalid as error:
        return error.index, error.rule
    return None
