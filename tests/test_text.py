"""Half a character, wherever it comes from: refused where somebody can send it again, else made readable."""

from pathlib import Path
from typing import Any

import pytest
import trio
from scenes import Diary, scene, virtual_time

from actors import AgentMessage, CodecError, ConfigError, Media, UserMessage
from actors._text import encodes, readable, readable_within
from actors.models import Said, Text, Thinking, ToolCall, say
from supervision import open_system

pytestmark = virtual_time
HALF = "a\ud83d"


@pytest.mark.parametrize(
    ("text", "told"),
    [("", ""), ("plain", "plain"), ("é😀", "é😀"), ("\udcff", "\\udcff"), (HALF, "a\\ud83d"), ("\ud83d\ude00!", "😀!")],
)
def test_what_has_no_utf_8_is_an_escape_and_two_halves_are_one_character(text: str, told: str) -> None:
    """A token may end within a character, whose other half is in the next."""
    assert readable(text) == told
    assert encodes(told)


def test_readable_json_is_the_same_object() -> None:
    """It is looked at in every round."""
    value = {"é": ["x", {"y": 1}]}
    assert readable_within(value) is value
    assert readable_within({HALF: [HALF, 1]}) == {"a\\ud83d": ["a\\ud83d", 1]}


@pytest.mark.parametrize("body", [HALF, UserMessage(HALF), AgentMessage(HALF)])
async def test_a_message_without_utf_8_is_refused_in_memory_as_in_a_store(body: Any) -> None:
    """Kept, it would crash the session's loop for ever."""
    async with scene(say("here")) as here:
        with pytest.raises(CodecError, match="a lone surrogate, which is no text in UTF-8"):
            await here.session.send(body)
        assert await here.session.ask("go") == "here"


@pytest.mark.parametrize("body", [UserMessage(5), AgentMessage(None), UserMessage("look", ("a.png",))])  # type: ignore[arg-type]
async def test_a_message_of_other_types_is_refused(body: Any) -> None:
    """With what it has to be made of."""
    async with scene() as here:
        with pytest.raises(TypeError, match="a str for its text and Media beside it; found"):
            await here.session.send(body)


@pytest.mark.parametrize("how", [{"text": HALF}, {"text": "x", "label": HALF}])
async def test_a_timer_without_utf_8_is_refused(how: Any) -> None:
    """When it fires nobody is there to hear of it."""
    async with scene() as here:
        with pytest.raises(CodecError, match="a timer was refused"):
            await here.session.send_after(1, **how)


async def test_what_a_host_says_without_utf_8_is_told_with_an_escape() -> None:
    """Its inbox gives a string once."""
    diary = Diary(host=[HALF])
    async with scene(say("one"), say("two"), deps=diary, inbox=diary) as here:
        assert await here.session.ask("go") == "one"
        assert await here.session.wait_answer() == "two"
        assert here.words(1) == "a\\ud83d"


@pytest.mark.parametrize(
    "blocks",
    [
        (Text(HALF),),
        (Thinking(HALF), Text("x", opaque={"k": HALF})),
        (ToolCall("", HALF, {HALF: HALF}, HALF),),
        (ToolCall("", "work", {"text": HALF}),),
    ],
)
@pytest.mark.real_time
async def test_an_answer_without_utf_8_is_kept_with_an_escape(blocks: Any, tmp_path: Path) -> None:
    """The same answer would crash every life of the loop."""
    with trio.fail_after(20):
        async with scene(Said(blocks), say("here"), store=f"sqlite:///{tmp_path / 'agents.db'}") as here:
            await here.session.ask("go")
            assert here.system.statistics().crashes == 0
            assert "a\\\\ud83d" in await here.session.export()


@pytest.mark.parametrize("fields", [("image/png", "text"), ("image/png", b"", 7), (None, b"")])
def test_a_media_of_other_types_is_refused_where_it_is_made(fields: Any) -> None:
    """Later nobody knows who made it."""
    with pytest.raises(TypeError, match="write Media\\(mime, data, name\\)"):
        Media(*fields)
    with pytest.raises(CodecError, match="a lone surrogate"):
        Media("image/png", b"", HALF)


@pytest.mark.parametrize("owner", [HALF, 7])
async def test_an_owner_that_cannot_be_told_is_refused(owner: Any) -> None:
    """Each mail of theirs is shown with it."""
    async with open_system() as system:
        with pytest.raises(ConfigError, match="a portal: found owner="):
            system.portal(owner)
