"""A transcript as one request sees it."""

from typing import Any

import pytest

from actors.models._api import Request
from actors.models._past import Past

CUTS = (slice(None), slice(1), slice(-2, None), slice(2, 1), slice(None, None, -1), slice(1, 9, 2))


def past_of(items: list[str]) -> Any:
    return Past(items)  # type: ignore[arg-type]  # words stand for items


def test_it_is_used_as_a_tuple() -> None:
    """What people write for a tuple of items works: places from the end, cuts, sums, walks."""
    items = ["a", "b", "c", "d"]
    past, summary = past_of(items), ("z",)
    assert [past[cut] for cut in CUTS] == [tuple(items)[cut] for cut in CUTS]
    assert (past[0], past[-1], len(past), "c" in past, past.index("d")) == ("a", "d", 4, True, 3)
    assert [*past] == [*reversed(past)][::-1] == items
    assert (past + summary, summary + past, list(summary) + past) == ((*items, "z"), ("z", *items), ("z", *items))
    with pytest.raises(IndexError):
        past[4]


def test_it_is_of_one_moment() -> None:
    """Who keeps a request finds in it what was asked, although the session went on, or amended what was not answered."""
    items = ["a", "b"]
    past = past_of(items)
    items[-1] = "b, amended"
    items.append("c")
    assert (len(past), [*past], past[-1], past[:], past.whole()) == (2, ["a", "b"], "b", ("a", "b"), ("a", "b"))


def test_a_request_is_equal_to_one_of_a_tuple() -> None:
    """How its transcript is held is no difference."""
    items: Any = ["a", "b"]
    held, plain = Request("", past_of(items)), Request("", tuple(items))
    assert held == plain
    assert held.transcript == plain.transcript == tuple(items)
    assert held.transcript is held.transcript


def test_nothing_was_said_yet() -> None:
    """The shortest transcript there is."""
    assert (len(past_of([])), [*past_of([])], past_of([])[:1]) == (0, [], ())
