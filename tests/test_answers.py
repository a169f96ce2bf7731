"""Asking a session, waiting for its answer, and following a run: who hears what, and that nobody waits for ever."""

import pytest
import trio
from scenes import Scene, scene, virtual_time

from actors import AskTimeout, Limits, MailboxFull, ModelError, RecipientStopped, RunFailed, Status, StopRun
from actors._identity import current
from actors.models import call, fail, say, slow

pytestmark = virtual_time


# ------------------------------------------------------------------ ask
async def test_an_ask_gets_the_text_of_the_first_answer_that_read_it() -> None:
    """Calls on the way are no answer."""
    async with scene(call("work", seconds=2), say("done")) as here:
        assert await here.session.ask("go") == "done"


async def test_asks_folded_together_share_the_answer() -> None:
    """The model answered both at once."""
    answers: list[str] = []

    async def ask(here: Scene, text: str) -> None:
        answers.append(await here.session.ask(text))

    async with scene(slow(1, say("both"))) as here, trio.open_nursery() as nursery:
        nursery.start_soon(ask, here, "one")
        nursery.start_soon(ask, here, "two")
        await trio.sleep(2)
        assert (answers, here.asked) == (["both", "both"], 1)


async def test_an_ask_that_comes_during_a_completion_gets_the_next_answer() -> None:
    """The answer in progress cannot have read it."""
    async with scene(slow(5, say("first")), slow(5, say("second"))) as here:
        await here.session.send("go")
        await trio.sleep(1)
        assert await here.session.ask("and this?") == "second"


async def test_an_ask_waits_through_a_pause() -> None:
    """A pause is no end."""
    async with scene(say("ok")) as here:
        await here.session.pause()
        with pytest.raises(AskTimeout, match="s did not answer within 3 s"):
            await here.session.ask("go", timeout=3)
        await here.session.resume()
        assert await here.session.wait_answer() == "ok"
        assert here.words(0) == "go"


async def test_an_ask_that_times_out_leaves_its_message() -> None:
    """It was accepted, and is answered all the same."""
    async with scene(slow(5, say("late"))) as here:
        with pytest.raises(TimeoutError):
            await here.session.ask("go", timeout=1)
        assert await here.session.wait_answer() == "late"


async def test_an_ask_whose_run_fails_hears_why() -> None:
    """The reason is the provider's, the status says that a person is needed."""
    async with scene(fail(ModelError(reason="bad key"))) as here:
        with pytest.raises(RunFailed, match="bad key") as told:
            await here.session.ask("go")
        assert (told.value.status, "bad key" in told.value.reason) == (Status.FAILED, True)


async def test_an_ask_whose_run_is_stopped_hears_it() -> None:
    """Whoever stopped it, the asker must not wait on."""
    async with scene(slow(5, say("never")), say("next")) as here, trio.open_nursery() as nursery:
        nursery.start_soon(_stop_after, here, 1)
        with pytest.raises(RunFailed, match="the run ended: stopped"):
            await here.session.ask("go")
        assert await here.session.ask("and now?") == "next"


async def _stop_after(here: Scene, seconds: float) -> None:
    await trio.sleep(seconds)
    await here.session.stop_run()


async def test_an_ask_that_a_stop_left_unread_hears_it_too() -> None:
    """Its message wakes nobody any more; it is read with the next that does."""
    async with scene(slow(5, say("never")), say("next")) as here, trio.open_nursery() as nursery:
        await here.session.send("go")
        nursery.start_soon(_stop_after, here, 1)
        await trio.sleep(0.5)
        with pytest.raises(RunFailed, match="stopped"):
            await here.session.ask("unread")
        assert await here.session.ask("and now?") == "next"
        assert "unread" in here.words(1)


async def test_an_ask_of_a_session_that_is_stopped_hears_it() -> None:
    """There will be no answer, ever."""
    async with scene(slow(5, say("never"))) as here, trio.open_nursery() as nursery:
        nursery.start_soon(_end_after, here, 1)
        with pytest.raises(RunFailed) as told:
            await here.session.ask("go")
        assert told.value.status is Status.STOPPED
        with pytest.raises(RecipientStopped):
            await here.session.ask("again")


async def _end_after(here: Scene, seconds: float) -> None:
    await trio.sleep(seconds)
    await here.session.stop()


async def test_an_ask_that_is_refused_waits_for_nothing() -> None:
    """A full mailbox is told at once."""
    async with scene(limits=Limits(max_unread=1)) as here:
        await here.session.pause()
        await here.settled()
        await here.session.send("one")
        with pytest.raises(MailboxFull):
            await here.session.ask("two")


async def test_an_asker_that_gives_up_leaves_nothing_behind() -> None:
    """Cancelled, it is forgotten; the answer hits nobody."""
    async with scene(slow(5, say("late"))) as here:
        with trio.move_on_after(1):
            await here.session.ask("go")
        answers = here.session._session().session.answers
        assert (answers._asks, answers._runs) == ([], [])
        await here.idle()


# ------------------------------------------------------------------ wait_answer
async def test_wait_answer_waits_for_the_end_of_the_run_in_progress() -> None:
    """The last answer of the run is the one that counts."""
    async with scene(call("background", seconds=5), say("first"), say("last")) as here:
        await here.session.send("go")
        assert await here.session.wait_answer() == "last"


async def test_wait_answer_of_a_run_about_to_start_waits_for_it() -> None:
    """What was sent a moment ago counts."""
    async with scene(say("one"), say("two")) as here:
        await here.session.ask("go")
        here.session.send_nowait("more")
        assert await here.session.wait_answer() == "two"


async def test_wait_answer_at_rest_is_the_last_answer_at_once() -> None:
    """Looking does not cost anything."""
    async with scene(say("one")) as here:
        await here.session.ask("go")
        await here.idle()
        assert await here.session.wait_answer() == "one"


async def test_wait_answer_of_a_session_that_never_ran_says_so() -> None:
    """There is nothing to wait for."""
    async with scene() as here:
        with pytest.raises(RunFailed, match="it never ran; send it something") as told:
            await here.session.wait_answer()
        assert told.value.status is Status.READY


async def test_wait_answer_after_a_run_without_answer_says_how_it_ended() -> None:
    """The last one before it is not its answer."""
    async with scene(say("one"), slow(5, say("never"))) as here:
        await here.session.ask("go")
        await here.session.send("more")
        await trio.sleep(1)
        await here.session.stop_run()
        await here.idle()
        with pytest.raises(RunFailed, match="stopped"):
            await here.session.wait_answer()


async def test_wait_answer_of_a_run_stopped_before_it_began_does_not_hang() -> None:
    """It never begins, so it never ends."""
    async with scene() as here:
        here.session.send_nowait("go")
        here.session._session().order(current.get(), StopRun())
        with pytest.raises(RunFailed, match="stopped"):
            await here.session.wait_answer()


async def test_wait_answer_times_out() -> None:
    """As every wait can."""
    async with scene(slow(5, say("late"))) as here:
        await here.session.send("go")
        with pytest.raises(AskTimeout):
            await here.session.wait_answer(timeout=1)
