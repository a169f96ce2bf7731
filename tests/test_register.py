"""Message classes of users in JSON."""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest

from actors._codec import BODIES, digest, from_json, register, structure_body, to_json, unstructure_body
from actors._envelope import NORMAL, Envelope, FromUser
from actors._errors import CodecError, ConfigError
from actors._outcome import Media


class Color(enum.StrEnum):
    RED = "red"


@attrs.frozen
class Circle:
    radius: float


@attrs.frozen
class Square:
    radius: float


@register
@attrs.frozen
class Draw:
    shapes: tuple[Circle | Square, ...]
    _color: Color = Color.RED
    last: Circle | Square | None = None


@register
@dataclass
class Everything:
    when: datetime
    day: date
    wait: timedelta
    price: Decimal
    id: UUID
    raw: bytes
    names: frozenset[str]
    counts: dict[str, list[int]]
    anything: Any = None
    children: "list[Everything]" = field(default_factory=list)
    picture: Media | None = None


@register
class Ticket(pydantic.BaseModel):
    title: str
    due: datetime | None = None
    parts: list[int] = []


class Point(msgspec.Struct, frozen=True):
    x: int
    why: str = msgspec.field(default="-", name="because")


@register
class Move(msgspec.Struct):
    to: Point
    then: "list[Point] | None" = None


@register
@attrs.define(eq=False)
class Identity:
    number: int


R = TypeVar("R")


class Ask(Generic[R]):
    pass


@register
@attrs.frozen
class Add(Ask[int]):
    amount: int


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
EVERYTHING = Everything(
    NOON,
    date(2026, 1, 31),
    timedelta(seconds=1.5),
    Decimal("1.50"),
    UUID(int=1),
    b"\x00\xff",
    frozenset("abc"),
    {"a": [1]},
    {"$media": [Media("a/b", b"")]},
)
BODIES_OF_USERS = [
    Draw((Circle(1), Square(1)), Color.RED, Square(2.5)),
    EVERYTHING,
    Everything(**{**{each: getattr(EVERYTHING, each) for each in EVERYTHING.__dataclass_fields__}, "children": [EVERYTHING]}),
    Ticket(title="a", due=NOON, parts=[1]),
    Move(Point(1, "so"), [Point(2)]),
    Add(3),
]


def enveloped(body: object) -> Envelope:
    return Envelope("web-1", 1, FromUser(), NORMAL, 0, 0.0, None, body)


@pytest.mark.parametrize("body", BODIES_OF_USERS, ids=lambda body: type(body).__name__)
def test_a_registered_class_comes_back_equal(body: object) -> None:
    """What a user's actor gets after a restart is what was sent."""
    again = from_json(to_json(enveloped(body))).body
    assert again == body
    assert type(again) is type(body)
    assert digest(again) == digest(body)


def test_the_tag_is_the_classs_name_and_records_in_a_union_are_told_apart() -> None:
    """A circle does not come back as a square."""
    assert unstructure_body(Draw((Circle(1), Square(1)))) == {
        "type": "Draw",
        "shapes": [{"type": "Circle", "radius": 1}, {"type": "Square", "radius": 1}],
        "color": "red",
        "last": None,
    }


def test_a_class_without_equality_comes_back_with_the_same_fields() -> None:
    """It is compared by what it writes."""
    again = structure_body(unstructure_body(Identity(3)))
    assert isinstance(again, Identity)
    assert again.number == 3


@pytest.mark.parametrize(
    ("body", "change", "told"),
    [
        (Add(3), {"amount": "3"}, '`amount`: expected int, got str "3"'),
        (Add(3), {"more": 3}, "unknown `more`"),
        (
            Draw(()),
            {"shapes": [{"type": "Oval", "radius": 1}]},
            '`shapes[0].type`: expected "Circle" or "Square", got str "Oval"',
        ),
        (Draw(()), {"shapes": [{"radius": 1}]}, "missing `shapes[0].type`"),
        (Draw(()), {"last": {"type": "Circle", "radius": 1, "more": 1}}, "unknown `last.more`"),
        (Ticket(title="a"), {"more": 1}, "unknown `more`"),
        (Ticket(title="a"), {"parts": ["1"]}, '`parts[0]`: Input should be a valid integer, got str "1"'),
        (Move(Point(1)), {"to": {"x": 1, "why": "so"}}, "unknown `to.why`"),
        (Move(Point(1)), {"to": {"x": True}}, "`to.x`: expected int, got bool true"),
    ],
)
def test_a_users_class_is_read_as_strictly_as_ours(body: object, change: dict[str, Any], told: str) -> None:
    """Whichever library it is written with."""
    with pytest.raises(CodecError) as caught:
        structure_body({**unstructure_body(body), **change})
    assert told in str(caught.value)


@dataclass
class Loose:
    number: int
    rest: "datetime | str" = ""


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (Loose("3"), '`body.number`: expected int, got str "3"'),  # type: ignore[arg-type]
        (Loose(3, "2026-01-31T12:00:00Z"), "would come back as"),
        (Draw([Circle(1)]), "would come back as"),  # type: ignore[arg-type]
    ],
)
def test_what_would_come_back_changed_is_not_written(body: object, told: str) -> None:
    """A field that holds what its annotation does not say is the sender's to mend."""
    register(Loose)
    with pytest.raises(CodecError) as caught:
        to_json(enveloped(body))
    assert told in str(caught.value)


def test_a_class_that_nobody_registered_is_named() -> None:
    """Also a subclass of one that somebody did: its own fields would be lost."""

    @attrs.frozen
    class More(Add):
        extra: int = 0

    with pytest.raises(CodecError, match=r"More has no JSON; register it with actors.register\(More\)"):
        to_json(enveloped(More(3)))
    assert digest(More(3)) is None


def test_registering_again_changes_nothing_and_a_tag_can_be_chosen() -> None:
    """Modules may be imported twice; stored mail keeps its tag."""

    @attrs.frozen
    class Note:
        text: str

    assert register(Note, tag="note.v1") is Note
    assert register(Note, tag="note.v1") is Note
    assert unstructure_body(Note("a")) == {"type": "note.v1", "text": "a"}


def test_a_class_made_anew_takes_the_old_ones_place() -> None:
    """A reloaded module, or a function that defines its messages each time it is called, is no conflict."""

    def make() -> type[Any]:
        @attrs.frozen
        class Anew:
            text: str

        return register(Anew)

    _, new = make(), make()
    assert structure_body(unstructure_body(new("a"))) == new("a")


class Pair(NamedTuple):
    left: int


@attrs.frozen
class Typed:
    type: str


@attrs.frozen
class Other:
    number: int


class Tagged(msgspec.Struct, tag=True):
    number: int


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: register(Other, tag="Add"), "the tag 'Add' of test_register.Other is taken by test_register.Add"),
        (lambda: register(Other, tag="control"), "is taken by actors._envelope.Control"),
        (lambda: register(Add, tag="add"), "test_register.Add is registered as 'Add' already, and cannot also be 'add'"),
        (lambda: register(int), "int has no fields that the codec knows; write an attrs class, a dataclass"),
        (lambda: register(Pair), "Pair has no fields"),
        (lambda: register(Typed), "Typed has a field `type`, which is where its JSON says which class it is; rename the field"),
        (lambda: register(Tagged), "Tagged has a field `type`"),
    ],
)
def test_what_cannot_be_registered_is_refused(make: Callable[[], object], told: str) -> None:
    """Two classes with one tag would read each other's mail."""
    before = dict(BODIES)
    with pytest.raises(ConfigError) as caught:
        make()
    assert told in str(caught.value)
    assert before == BODIES
