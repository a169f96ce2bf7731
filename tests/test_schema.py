"""What a model is shown of a type, and what is refused when the tool is made."""

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from socket import socket
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest

from actors._errors import ConfigError
from actors.tools._schema import Describer


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Half(enum.Enum):
    HALF = 0.5
    NOTHING = ()


@dataclass
class Line:
    """One line of a log."""

    level: int
    text: Annotated[str, "what it says"] = "-"
    tags: list[str] = field(default_factory=list)


@attrs.frozen
class Node:
    _name: str
    children: list["Node"] = attrs.field(factory=list)


class Options(TypedDict, total=False):
    deep: bool


class Query(TypedDict):
    text: str
    limit: NotRequired[int]


class Ticket(pydantic.BaseModel):
    """A ticket."""

    title: str
    lines: list[Line] = []
    due: datetime | None = None


class Tree(pydantic.BaseModel):
    children: list["Tree"] = []


class Pair(NamedTuple):
    left: int
    right: int


class Struct(msgspec.Struct):
    left: int


@dataclass
class Holder:
    inner: "list[Deep]"


@dataclass
class Deep:
    handle: socket


@attrs.define
class Bare:
    what = attrs.field()  # type: ignore[var-annotated]


@dataclass
class Lost:
    where: "Nowhere"  # type: ignore[name-defined]  # noqa: F821


UserId = NewType("UserId", str)
STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def shown(tp: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    describer = Describer("tool t")
    return describer.schema(tp, "x"), describer.defs


@pytest.mark.parametrize(
    ("tp", "schema"),
    [
        (str, STRING),
        (int, INTEGER),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (UserId, STRING),
        (datetime, {"type": "string", "format": "date-time"}),
        (UUID, {"type": "string", "format": "uuid"}),
        (list[int], {"type": "array", "items": INTEGER}),
        (tuple[int, ...], {"type": "array", "items": INTEGER}),
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [INTEGER, STRING], "items": False, "minItems": 2, "maxItems": 2},
        ),
        (dict[str, list[int]], {"type": "object", "additionalProperties": {"type": "array", "items": INTEGER}}),
        (Literal["b", "a"], {"type": "string", "enum": ["b", "a"]}),
        (Literal[1, "a"], {"type": ["integer", "string"], "enum": [1, "a"]}),
        (Literal[Color.RED], {"type": "string", "enum": ["red"]}),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (int | None, {"anyOf": [INTEGER, {"type": "null"}]}),
        (datetime | str, {"anyOf": [{"type": "string", "format": "date-time"}, STRING]}),
        (Annotated[int, "how many"], {"description": "how many", "type": "integer"}),
        (
            Annotated[list[Annotated[int, "one"]], object()],
            {"type": "array", "items": {"description": "one", "type": "integer"}},
        ),
        (Annotated[str, pydantic.Field(description="whose")], {"description": "whose", "type": "string"}),
    ],
)
def test_a_type_is_shown_as_plain_json_schema(tp: Any, schema: dict[str, Any]) -> None:
    """A model reads what the annotation says, in the order in which it says it, and no titles."""
    assert shown(tp) == (schema, {})


@pytest.mark.parametrize(
    ("cls", "properties", "required"),
    [
        (
            Line,
            {
                "level": INTEGER,
                "text": {"description": "what it says", "type": "string", "default": "-"},
                "tags": {"type": "array", "items": STRING},
            },
            ["level"],
        ),
        (Node, {"name": STRING, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}, ["name"]),
        (Query, {"text": STRING, "limit": INTEGER}, ["text"]),
        (Options, {"deep": {"type": "boolean"}}, []),
    ],
)
def test_a_record_is_a_closed_object_among_the_definitions(cls: type, properties: dict[str, Any], required: list[str]) -> None:
    """What validation refuses, an unknown field, the schema excludes as well; a class may contain itself."""
    schema, defs = shown(cls)
    assert schema == {"$ref": f"#/$defs/{cls.__name__}"}
    made = defs[cls.__name__]
    assert (made["properties"], made["required"], made["additionalProperties"]) == (properties, required, False)


def test_a_class_is_described_by_its_docstring_and_not_by_a_decorator() -> None:
    """`Node(_name, children)`, which `dataclass` writes, tells a model nothing."""
    assert shown(Line)[1]["Line"]["description"] == "One line of a log."
    assert "description" not in shown(Node)[1]["Node"]


def test_a_pydantic_model_shows_its_own_schema_closed_and_without_titles() -> None:
    """Its definitions stand beside ours."""
    schema, defs = shown(list[Ticket])
    assert schema == {"type": "array", "items": {"$ref": "#/$defs/Ticket"}}
    assert set(defs) == {"Ticket", "Line"}
    assert not any("title" in each for made in defs.values() for each in [made, *made["properties"].values()])
    assert [made["additionalProperties"] for made in defs.values()] == [False, False]
    assert set(defs["Ticket"]["properties"]) == {"title", "lines", "due"}


def test_a_pydantic_model_that_contains_itself_is_one_definition() -> None:
    """Pydantic shows such a model as a reference."""
    schema, defs = shown(Tree)
    assert schema == {"$ref": "#/$defs/Tree"}
    assert list(defs) == ["Tree"]


def test_two_classes_of_one_name_are_two_definitions() -> None:
    """Neither may stand in the other's place."""

    def local() -> type:
        @dataclass
        class Line:
            other: bool

        return Line

    schema, defs = shown(Line | local())
    assert schema == {"anyOf": [{"$ref": "#/$defs/Line"}, {"$ref": "#/$defs/Line_2"}]}
    assert set(defs["Line_2"]["properties"]) == {"other"}


@pytest.mark.parametrize(
    ("tp", "told"),
    [
        (Any, "`x` is annotated Any, which a model cannot be told; say which types it may be"),
        (object, "say which types it may be"),
        (list, "say of what: list[str], say"),
        (dict, "say of what: dict[str, str], say"),
        (dict[str, Any], "`x.*` is annotated Any"),
        (dict[int, str], "`x` is annotated dict[int, str]"),
        (set[int], "`x` is annotated set[int], which a model cannot be told; write list[...]"),
        (bytes, "write str and decode it"),
        (date, "write datetime"),
        (Sequence[str], "write list[...]"),
        (Mapping[str, str], "write dict[str, ...]"),
        (Iterator[str], "`x` is annotated collections.abc.Iterator[str]"),
        (Callable[[], None], "which a model cannot be told"),
        (socket, "`x` is annotated socket"),
        (Pair, "`x` is annotated Pair"),
        (Struct, "`x` is annotated Struct"),
        (Half, "`x` is annotated Half"),
        (list[int | socket], "`x[]` is annotated socket"),
        (Holder, "`x.inner[].handle` is annotated socket"),
        (Bare, "`x.what` of Bare has no annotation; annotate the field"),
        (Lost, "the fields of Lost cannot be read (name 'Nowhere' is not defined)"),
    ],
    ids=str,
)
def test_what_a_model_cannot_be_told_is_refused_with_its_path(tp: Any, told: str) -> None:
    """The author reads which parameter, what stands there, and what to write in its place."""
    with pytest.raises(ConfigError) as caught:
        shown(tp)
    assert str(caught.value).startswith("tool t: ")
    assert told in str(caught.value)
