"""What a provider refused to read is a note from then on, so that one bad message does not brick a session."""

import pytest
import trio
from scenes import Scene, Worker, scene, virtual_time

from actors import Media, ModelError, RunFailed, UserItem, UserMessage
from actors.agent._refused import shown
from actors.models import call, calls, fail, say

pytestmark = virtual_time

TOO_LONG = fail(ModelError(status=400, reason="prompt is too long:\n 9 > 8"))
NOTE = "[not shown: the provider refused it: prompt is too long: 9 > 8]"


async def refused(here: Scene, *words: str | UserMessage) -> None:
    """Say this, and hear that it was refused."""
    with pytest.raises(RunFailed, match="prompt is too long"):
        await here.session.ask(*words)


async def test_refused_words_are_a_note_in_every_later_request() -> None:
    """Else the same refusal would meet whatever is said next."""
    async with scene(TOO_LONG, say("ok"), say("fine")) as here:
        await refused(here, "x" * 100)
        assert await here.session.ask("shorter then") == "ok"
        [item] = here.request(1).transcript
        assert isinstance(item, UserItem)
        assert [line for line in item.text.splitlines() if line and not line.startswith("[mail")] == [NOTE, "shorter then"]
        await here.session.ask("and")
        assert here.request(2).transcript[0] is item


async def test_what_was_said_stays_in_the_transcript() -> None:
    """Only what is sent changes."""
    async with scene(TOO_LONG, say("ok")) as here:
        await refused(here, "the words")
        await here.session.ask("again")
        [item, _] = (await here.record()).items
        assert [each.body.text for each in item.mail] == ["the words", "again"]  # type: ignore[union-attr]


async def test_media_go_with_the_words() -> None:
    """They mostly are what could not be read."""
    async with scene(TOO_LONG, say("ok")) as here:
        await refused(here, UserMessage("look", (Media("image/png", b"x"),)))
        await here.session.ask("never mind")
        [item] = here.request(1).transcript
        assert item.media == ()  # type: ignore[union-attr]


async def test_results_are_hidden_before_words_are() -> None:
    """A tool's output is what mostly is too long; a person's words are kept if they can be."""
    async with scene(calls(call("work"), call("broken", text="why")), TOO_LONG, say("ok"), inbox=None) as here:
        await refused(here, "go")
        assert await here.session.ask("go on") == "ok"
        assert here.results(2) == [NOTE, f"failed: {NOTE}"]
        assert here.words(2) == "go on"


async def test_if_that_was_not_it_the_words_are_hidden_too() -> None:
    """One after the other, until it is read."""
    async with scene(call("work"), TOO_LONG, TOO_LONG, say("ok")) as here:
        await refused(here, "go")
        await refused(here, "a very long text")
        assert await here.session.ask("short") == "ok"
        assert (here.results(3), here.words(3).count(NOTE), here.words(3).endswith("short")) == ([NOTE], 1, True)
        assert here.request(3).transcript[0].text == "go"  # type: ignore[union-attr]


async def test_resume_tries_the_round_again_without_it() -> None:
    """Nobody has to say anything."""
    async with scene(TOO_LONG, say("ok")) as here:
        await refused(here, "x")
        await here.session.resume()
        assert await here.session.wait_answer() == "ok"
        assert here.words(1) == NOTE


@pytest.mark.parametrize("status", [401, 402, 403, 404, None])
async def test_a_wrong_key_hides_nothing(status: int | None) -> None:
    """It is no matter of what was said."""
    async with scene(fail(ModelError(status=status, reason="no")), say("ok")) as here:
        with pytest.raises(RunFailed):
            await here.session.ask("hello")
        await here.session.resume()
        await here.idle()
        assert here.words(1) == "hello"


async def test_mail_that_stands_in_a_result_is_hidden_alone() -> None:
    """The result beside it was hidden first."""
    options = {"agent": Worker, "mail_in_tool_result": True}
    async with scene(call("work", seconds=5), TOO_LONG, TOO_LONG, say("ok"), **options) as here:  # type: ignore[arg-type]
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.send("long words")
        with pytest.raises(RunFailed):
            await here.session.wait_answer()
        assert here.results(1) == ["worked\n\nlong words"]
        for _ in range(2):
            await here.session.resume()
            await here.idle()
        assert (here.results(2), here.results(3)) == ([f"{NOTE}\n\nlong words"], [f"{NOTE}\n\n{NOTE}"])


def test_an_item_of_which_nothing_was_refused_is_itself() -> None:
    """Prefixes stay what they were."""
    item = UserItem(())
    assert shown(item, {"#1": NOTE}) is item
