"""What an answer is made of."""

from typing import Any

import pytest

from actors.models._blocks import Completion, Text, ToolCall, Usage, json_object


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{}", {}),
        ('{"a": [1, null]}', {"a": [1, None]}),
        ("", {}),
        (" \n", {}),
        ("null", None),
        ("[1]", None),
        ('"a"', None),
        ('{"a": 1', None),
        ('{"a": 1} {"b": 2}', None),
        ('{"a": NaN}', None),
        ("noon", None),
    ],
)
def test_arguments_are_an_object_or_nothing(text: str, wanted: dict[str, Any] | None) -> None:
    """Servers send an empty text for no arguments; everything else that is no object is the model's mistake."""
    assert json_object(text) == wanted


def test_unparsable_arguments_are_kept_as_they_came() -> None:
    """The model reads what it wrote, and what was wrong with it."""
    assert ToolCall.from_text("f", "{a", "x") == ToolCall("", "f", {}, "x", unparsable="{a")


def test_blocks_may_come_as_any_sequence_and_stay_a_tuple() -> None:
    """A frozen record with a list in it is not frozen."""
    assert Completion([Text("a")], Usage()).blocks == (Text("a"),)
