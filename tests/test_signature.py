"""What a model sends becomes a function's arguments, strictly, or a text that tells it every problem."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NotRequired, TypedDict
from uuid import UUID

import attrs
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors._errors import BadArguments, ConfigError, ToolError
from actors.tools._signature import Signature, read_signature


class Color(enum.Enum):
    RED = "red"


class Size(enum.StrEnum):
    BIG = "big"


@dataclass
class Line:
    level: int
    text: str = "-"


@attrs.frozen
class Box:
    _width: float
    lines: tuple[Line, ...] = ()


@attrs.frozen
class Even:
    number: int = attrs.field()

    @number.validator
    def _check(self, _attribute: object, value: int) -> None:
        if value % 2:
            raise ValueError(f"{value} is odd")


class Query(TypedDict):
    text: str
    limit: NotRequired[int]


class Ticket(pydantic.BaseModel):
    title: str
    due: datetime | None = None


def taking(tp: Any) -> Signature:
    """The signature of a function of one required argument `x` of this type."""

    def fn(x: Any) -> None:
        """Do nothing."""

    fn.__annotations__["x"] = tp
    return read_signature(fn, "fn", "tool fn", {})


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("tp", "sent", "got"),
    [
        (str, "a", "a"),
        (int, 3, 3),
        (float, 3, 3.0),
        (bool, False, False),
        (None, None, None),
        (Color, "red", Color.RED),
        (Size, "big", Size.BIG),
        (Literal["a", 1], 1, 1),
        (list[str], ["a"], ["a"]),
        (tuple[int, str], [1, "a"], (1, "a")),
        (tuple[int, ...], [1, 2], (1, 2)),
        (dict[str, float], {"a": 1}, {"a": 1.0}),
        (datetime, "2026-01-31T12:00:00Z", NOON),
        (UUID, "00000000-0000-0000-0000-000000000001", UUID(int=1)),
        (Line, {"level": 1}, Line(1)),
        (Box, {"width": 1, "lines": [{"level": 1, "text": "a"}]}, Box(1.0, (Line(1, "a"),))),
        (Query, {"text": "a"}, {"text": "a"}),
        (Ticket, {"title": "a", "due": "2026-01-31T12:00:00Z"}, Ticket(title="a", due=NOON)),
        (int | float, 3, 3),
        (float | int, 3, 3),
        (str | datetime, "2026-01-31T12:00:00Z", NOON),
        (datetime | str, "noon", "noon"),
        (str | UUID | None, None, None),
        (Line | Box, {"width": 1.5}, Box(1.5)),
        (list[int] | list[str], ["a"], ["a"]),
        (Annotated[int, "how many"], 3, 3),
    ],
    ids=str,
)
def test_what_fits_becomes_what_the_annotation_says(tp: Any, sent: Any, got: Any) -> None:
    """A tool never parses."""
    made = taking(tp).parse({"x": sent})["x"]
    assert made == got
    assert type(made) is type(got)


@pytest.mark.parametrize(
    ("tp", "sent", "told"),
    [
        (bool, "false", '`x`: expected bool, got str "false"'),
        (bool, 1, "`x`: expected bool, got int 1"),
        (int, "3", '`x`: expected int, got str "3"'),
        (int, True, "`x`: expected int, got bool true"),
        (int, 3.0, "`x`: expected int, got float 3.0"),
        (float, "3", '`x`: expected float, got str "3"'),
        (float, False, "`x`: expected float, got bool false"),
        (str, 3, "`x`: expected str, got int 3"),
        (str, None, "`x`: expected str, got null"),
        (list[str], "abc", '`x`: expected list, got str "abc"'),
        (tuple[int, str], [1], "`x`: expected list of 2, got list [1]"),
        (dict[str, int], [["a", 1]], '`x`: expected object, got list [["a",1]]'),
        (dict[str, int], {"a b": "1"}, '`x["a b"]`: expected int, got str "1"'),
        (Literal["a", 1], True, '`x`: expected "a" or 1, got bool true'),
        (Color, "RED", '`x`: expected "red", got str "RED"'),
        (datetime, "tomorrow", '`x`: expected a date and time such as 2026-01-31T09:30:00Z, got str "tomorrow"'),
        (UUID, "1", '`x`: expected a UUID such as 6f1ed002-ab59-4b0c-8d4c-1f5f4f6f2a11, got str "1"'),
        (int | None, "a", '`x`: expected int or null, got str "a"'),
        (Line, [], "`x`: expected object, got list []"),
        (list[Line], [{"level": 1}, {"level": "x"}], '`x[1].level`: expected int, got str "x"'),
        (Line, {"level": 1, "colour": 1}, "unknown `x.colour`"),
        (Box, {"lines": [{}]}, "missing `x.width`; missing `x.lines[0].level`"),
        (Query, {"text": "a", "more": 1}, "unknown `x.more`"),
        (Query, {"limit": "1"}, 'missing `x.text`; `x.limit`: expected int, got str "1"'),
        (Ticket, {"title": 1, "more": 1}, "`x.title`: Input should be a valid string, got int 1; unknown `x.more`"),
        (Even, {"number": 3}, "`x`: 3 is odd"),
        (list[int], list("abcdefghijklmnopqrstuvwxyz"), "; `x[25]`: expected int"),
        (str, {"key": "v" * 100}, '`x`: expected str, got object {"key":"' + "v" * 49 + "..."),
    ],
    ids=str,
)
def test_what_does_not_fit_is_told_with_its_path_and_what_came(tp: Any, sent: Any, told: str) -> None:
    """Nothing is coerced: a model that errs learns where, and does better."""
    with pytest.raises(BadArguments) as caught:
        taking(tp).parse({"x": sent})
    assert told in str(caught.value)


def test_a_value_that_fits_no_member_of_a_union_is_told_about_each() -> None:
    """Either might have been meant."""
    with pytest.raises(BadArguments) as caught:
        taking(Line | Box).parse({"x": {"level": "1"}})
    told = str(caught.value)
    assert "`x`: expected Line or Box, got object" in told
    assert 'no Line: `level`: expected int, got str "1"' in told
    assert "no Box: missing `width`; unknown `level`" in told


def test_every_problem_of_a_call_is_told_at_once() -> None:
    """One more round is one more request."""

    def fn(name: str, count: int, deep: bool = False) -> None:
        """Do nothing."""

    with pytest.raises(BadArguments) as caught:
        read_signature(fn, "fn", "tool fn", {}).parse({"count": "3", "foo": 1})
    assert str(caught.value) == (
        'bad arguments for fn: missing `name`; `count`: expected int, got str "3"; '
        "unknown argument `foo` (it takes `name`, `count`, `deep`)"
    )
    assert isinstance(caught.value, ToolError)


def test_what_is_left_out_is_the_functions_default() -> None:
    """The function's own, also one that has no JSON."""

    def fn(a: int, b: int = 2, *, c: str | None = None) -> None:
        """Do nothing."""

    assert read_signature(fn, "fn", "tool fn", {}).parse({"a": 1, "c": "x"}) == {"a": 1, "c": "x"}


def test_defaults_are_shown_where_a_model_could_send_them() -> None:
    """`None` for an `int` is Python's business: a model that sends it is refused."""

    def fn(a: Color = Color.RED, b: int = None, c: list[int] = [], d: Line = Line(1)) -> None:  # type: ignore[assignment]  # noqa: B006, B008, RUF013
        """Do nothing."""

    shown = read_signature(fn, "fn", "tool fn", {}).schema["properties"]
    assert {name: each.get("default", "none") for name, each in shown.items()} == {
        "a": "red",
        "b": "none",
        "c": [],
        "d": {"level": 1, "text": "-"},
    }


def unannotated(a) -> None:  # type: ignore[no-untyped-def]
    """Do nothing."""


def starred(*a: int) -> None:
    """Do nothing."""


def double_starred(**a: int) -> None:
    """Do nothing."""


def positional(a: int, /) -> None:
    """Do nothing."""


def unresolved(a: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821
    """Do nothing."""


@pytest.mark.parametrize(
    ("fn", "told"),
    [
        (unannotated, "parameter `a` has no annotation; write its type, `a: str` say"),
        (starred, "parameter `a` is variadic positional; a model names its arguments: write `a: <type>`"),
        (double_starred, "parameter `a` is variadic keyword; a model names its arguments"),
        (positional, "parameter `a` is positional-only; a model names its arguments"),
        (unresolved, "parameter `a` is annotated 'Nowhere', which cannot be resolved (name 'Nowhere' is not defined)"),
    ],
)
def test_a_parameter_that_no_model_can_fill_is_named(fn: Callable[..., Any], told: str) -> None:
    """The author finds out when the class is made, not when a model calls."""
    with pytest.raises(ConfigError) as caught:
        read_signature(fn, "fn", "tool fn", {})
    assert str(caught.value).startswith(f"tool fn: {told}")


def test_with_a_schema_of_ones_own_what_is_not_annotated_takes_what_comes() -> None:
    """A tool that is made at run time, from a file say, has a schema and no annotations."""

    def fn(path: int, **rest: Any) -> None:
        """Do nothing."""

    signature = read_signature(fn, "fn", "tool fn", {}, schema={"type": "object"})
    assert signature.schema == {"type": "object"}
    assert signature.parse({"path": 1, "more": [1]}) == {"path": 1, "more": [1]}
    with pytest.raises(BadArguments, match="expected int"):
        signature.parse({"path": "1", "more": [1]})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(sent=st.dictionaries(st.sampled_from(["a", "b", "c"]), JSON))
def test_whatever_a_model_sends_is_taken_exactly_or_refused_in_words(sent: dict[str, Any]) -> None:
    """No input of a model's raises anything else, and nothing is taken that the annotations do not say."""

    def fn(a: Box | list[Query] | str, b: dict[str, int | None] | None = None) -> None:
        """Do nothing."""

    try:
        made = read_signature(fn, "fn", "tool fn", {}).parse(sent)
    except BadArguments as error:
        assert str(error).startswith("bad arguments for fn: ")  # noqa: PT017
    else:
        assert made.keys() == sent.keys()
