"""What a tool returns becomes JSON, or an error that names what does not."""

import enum
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from socket import socket
from typing import Any
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest

from actors._errors import CodecError
from actors._outcome import Media
from actors.tools._value import to_value


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclass
class Point:
    x: int
    color: Color = Color.RED


@attrs.define
class Box:
    points: tuple[Point, ...]
    picture: Media | None = None


class Model(pydantic.BaseModel):
    when: datetime
    parts: set[int]


class Struct(msgspec.Struct):
    inner: Point


PICTURE = Media("image/png", b"...")
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
LOOP: list[Any] = []
LOOP += [LOOP, LOOP]


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (None, None),
        ("text", "text"),
        (True, True),
        (1.5, 1.5),
        (Level.HIGH, 3),
        (Color.RED, "red"),
        (NOON, "2026-01-31T12:00:00Z"),
        (date(2026, 1, 31), "2026-01-31"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.50"), "1.50"),
        ((1, "a"), [1, "a"]),
        ({3, 1, 2}, [1, 2, 3]),
        ({1: "one", Color.RED: 2}, {"1": "one", "red": 2}),
        (Point(1), {"x": 1, "color": "red"}),
        (Box((Point(1),), PICTURE), {"points": [{"x": 1, "color": "red"}], "picture": PICTURE}),
        (Model(when=NOON, parts={2}), {"when": "2026-01-31T12:00:00Z", "parts": [2]}),
        (Struct(Point(2)), {"inner": {"x": 2, "color": "red"}}),
        ([PICTURE, "a picture"], [PICTURE, "a picture"]),
    ],
    ids=repr,
)
def test_a_result_becomes_json_with_media_in_it(result: Any, value: Any) -> None:
    """A tool returns what it has; nobody writes `asdict` for a model's sake."""
    made = to_value(result)
    assert made == value
    assert type(made) is type(value)


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (socket, "builtins.type is no JSON"),
        (object(), "builtins.object is no JSON"),
        ({"a": [1, socket.__new__(socket)]}, "`a[1]`: socket.socket is no JSON"),
        (b"...", "builtins.bytes is no JSON; return Media(mime, data), or text"),
        ((each for each in "ab"), "builtins.generator is no JSON; return a list"),
        (float("nan"), "nan has no JSON"),
        ({"a": 2**64}, "`a`: an integer beyond 64 bits"),
        ({1: "a", "1": "b"}, "the key '1'"),
        ({(1, 2): "a"}, "the key (1, 2) is no str"),
        (LOOP, "contains itself"),
    ],
    ids=lambda each: each if isinstance(each, str) else type(each).__name__,
)
def test_what_has_no_json_is_named_with_its_place(result: Any, told: str) -> None:
    """The author reads which type it was, and where."""
    with pytest.raises(CodecError) as caught:
        to_value(result)
    assert str(caught.value).startswith("the result has no JSON: ")
    assert told in str(caught.value)
