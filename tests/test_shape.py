"""Answers of a given shape: what the model is told, what is read, and the one repair."""

from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import pytest
from attrs import frozen
from pydantic import BaseModel
from scenes import scene, virtual_time
from test_inbox import Host

from actors import AskTimeout, ConfigError, Media, RunFailed, UserMessage
from actors.agent._shape import MisshapenError, Shape
from actors.models import call, say, slow

pytestmark = virtual_time


@frozen
class Finding:
    """What was found in a log."""

    log: Literal["prod", "staging"]
    errors: int
    lines: list[str]


@dataclass
class Plain:
    """A finding of another kind."""

    errors: int


class Typed(TypedDict):
    """A finding as a dict."""

    errors: int


class Model(BaseModel):
    """A finding of pydantic's."""

    errors: int


FOUND = Finding("staging", 2, ["a", "b"])
JSON = '{"log": "staging", "errors": 2, "lines": ["a", "b"]}'


# ------------------------------------------------------------------ through a session
async def test_an_answer_comes_as_a_value_of_the_type() -> None:
    """A program gets what it can use, also after tools."""
    async with scene(call("work"), say(JSON)) as here:
        assert await here.session.ask("what is wrong?", schema=Finding) == FOUND
        assert here.words(0).startswith("what is wrong?\n\nAnswer with JSON only")
        assert '"enum":["prod","staging"]' in here.words(0)


@pytest.mark.parametrize(("tp", "value"), [(Plain, Plain(2)), (Typed, {"errors": 2}), (Model, Model(errors=2))])
async def test_any_kind_of_record_will_do(tp: Any, value: Any) -> None:
    """Whatever a tool takes."""
    async with scene(say('{"errors": 2}')) as here:
        found = await here.session.ask("go", schema=tp)
        assert (found, type(found)) == (value, type(value))


async def test_a_bad_answer_is_asked_for_once_more_with_what_is_wrong() -> None:
    """Models slip; the second try mostly fits."""
    async with scene(say('{"log": "staging", "errors": "two", "lines": [], "more": 1}'), say(JSON)) as here:
        assert await here.session.ask("go", schema=Finding) == FOUND
        assert here.words(1) == (
            'That answer does not fit the JSON Schema: `errors`: expected int, got str "two"; unknown `more`. '
            "Answer again, with the whole JSON and nothing else."
        )


async def test_a_second_bad_answer_is_the_end_of_it() -> None:
    """The asker hears what was wrong; the session goes on."""
    async with scene(say("I cannot say"), say("[]"), say("hello")) as here:
        with pytest.raises(
            RunFailed, match="its answer does not fit Finding, also when asked again: expected object, got list"
        ):
            await here.session.ask("go", schema=Finding)
        assert await here.session.ask("hi") == "hello"


async def test_media_go_along_with_the_question() -> None:
    """Only words are added."""
    picture = Media("image/png", b"x")
    async with scene(say(JSON)) as here:
        await here.session.ask(UserMessage("look", (picture,)), schema=Finding)
        [item] = here.request(0).transcript
        assert item.media == (picture,)  # type: ignore[union-attr]


async def test_the_whole_of_it_has_one_deadline() -> None:
    """The repair included."""
    async with scene(slow(3, say("no")), slow(3, say(JSON))) as here:
        with pytest.raises(AskTimeout):
            await here.session.ask("go", schema=Finding, timeout=5)


async def test_a_hosts_inbox_is_left_alone_meanwhile() -> None:
    """Its words would change what is answered."""
    host = Host(["by the way"])
    async with scene(call("work"), say(JSON), say("ok"), say("seen"), inbox=host) as here:
        assert await here.session.ask("go", schema=Finding) == FOUND
        assert host.strings == ["by the way"]
        await here.session.ask("and now")
        await here.idle()
        assert (host.strings, here.words(3)) == ([], "by the way")


async def test_a_type_that_a_model_cannot_be_told_of_is_refused_before_anything_is_sent() -> None:
    """The text says what to write."""
    async with scene() as here:
        with pytest.raises(ConfigError, match=r"ask\(schema=bytes\)"):
            await here.session.ask("go", schema=bytes)
        assert here.box.last == 0


# ------------------------------------------------------------------ reading
@pytest.mark.parametrize(
    "words",
    [
        JSON,
        f"```json\n{JSON}\n```",
        f"```\n{JSON}\n```",
        f"Here it is:\n```JSON\n{JSON}\n```\nAnything else?",
        f"Sure! {JSON} That is all.",
    ],
)
def test_what_stands_around_the_json_does_no_harm(words: str) -> None:
    """Models like to chat."""
    assert Shape(Finding).read(words) == FOUND


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "it is no JSON"),
        ("{", "it is no JSON"),
        ("no", "it is no JSON"),
        ("null", "expected object, got null"),
        ('{"log": "prod"}', "missing `errors`; missing `lines`"),
        ('{"log": "test", "errors": true, "lines": [1]}', '`log`: expected "prod" or "staging", got str "test"'),
    ],
)
def test_what_does_not_fit_is_told(words: str, told: str) -> None:
    """All of it, with its place."""
    with pytest.raises(MisshapenError) as caught:
        Shape(Finding).read(words)
    assert str(caught.value).startswith(told)


def test_the_schema_of_a_record_stands_at_the_top_of_it() -> None:
    """A reference to the only definition helps nobody."""
    assert Shape(Finding).schema["properties"]["errors"] == {"type": "integer"}
    assert "$defs" not in Shape(Finding).schema
