"""What an agent can be told to do differently: each switch, on and off."""

from typing import Any

import pytest
import trio
from scenes import Worker, scene, virtual_time

from actors import ConfigError, Limits, ModelError, ResultsItem
from actors.models import ScriptedModel, call, calls, fail, say, slow
from supervision import open_system

pytestmark = virtual_time


async def test_a_pause_leaves_calls_as_they_are() -> None:
    """What was begun goes on; its result is built at resume."""
    async with scene(call("work", seconds=5), say("ok")) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.pause()
        await trio.sleep(10)
        assert (here.diary.ended, here.asked, here.status()) == (["call_1"], 1, "paused")
        await here.session.resume()
        await here.idle()
        assert here.results(1) == ["worked"]


async def test_a_pause_can_cancel_what_runs() -> None:
    """With `pause_cancels_calls` nothing goes on, detached or not; each call has its result at resume."""
    turn = calls(call("background", seconds=60), call("work", seconds=60), call("work", seconds=60))
    async with scene(turn, say("ok"), say("seen"), pause_cancels_calls=True, limits=Limits(max_calls=1)) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.pause()
        await trio.sleep(10)
        assert sorted(here.diary.cancelled) == ["call_1", "call_2"]
        assert (sorted(here.diary.began), here.status()) == (["call_1", "call_2"], "paused")
        await here.session.resume()
        await here.idle()
        assert here.outcomes(1) == ["cancelled", "cancelled", "not_started"]
        assert trio.current_time() == 13


async def test_a_paused_session_reads_no_mail_until_it_is_resumed() -> None:
    """That is what a pause is."""
    async with scene(say("ok")) as here:
        await here.session.pause()
        await here.session.send("hello")
        await trio.sleep(10)
        assert (here.asked, here.status()) == (0, "paused")
        await here.session.resume()
        await here.idle()
        assert here.asked == 1


async def test_mail_can_end_a_pause() -> None:
    """With `resume_on_any_mail` a person need not say it twice."""
    async with scene(slow(5, call("work")), say("ok"), resume_on_any_mail=True) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.pause()
        await trio.sleep(10)
        assert (here.asked, here.status()) == (1, "paused")
        await here.session.send("now")
        await here.idle()
        assert (here.asked, here.words(1), here.results(1)) == (2, "now", ["worked"])


async def test_only_what_comes_after_the_pause_ends_it() -> None:
    """Else a pause behind unread mail would be none."""
    async with scene(slow(5, say("ok")), say("seen"), resume_on_any_mail=True) as here:
        await here.session.send("go")
        await trio.sleep(3)
        here.session.send_nowait("hello")
        await here.session.pause()
        await trio.sleep(10)
        assert (here.asked, here.status()) == (1, "paused")
        await here.session.send("and now")
        await here.idle()
        assert here.words(1).count("[mail") == 2


async def test_an_order_behind_the_mail_that_ends_a_pause_changes_nothing() -> None:
    """What counts is that the mail came after the pause."""
    async with scene(slow(5, call("work")), say("seen"), resume_on_any_mail=True) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.pause()
        await here.session.send("and now")
        await here.session.cancel_attached()
        await here.idle()
        assert (here.words(1), here.status()) == ("and now", "idle")


async def test_the_end_of_an_attached_call_ends_no_pause() -> None:
    """Nobody spoke: its mail shows nothing."""
    async with scene(call("work", seconds=5), say("ok"), resume_on_any_mail=True) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.pause()
        await trio.sleep(10)
        assert here.status() == "paused"
        await here.session.resume()
        await here.idle()


async def test_mail_can_stand_in_the_last_result() -> None:
    """With `mail_in_tool_result`, for models that take no user turn behind results."""
    async with scene(calls(call("work"), call("work", seconds=5)), say("ok"), mail_in_tool_result=True) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.send("also staging")
        await here.idle()
        last = here.request(1).transcript[-1]
        assert isinstance(last, ResultsItem)
        assert [result.text for result in last.results] == ["worked", "worked\n\nalso staging"]


async def test_mail_behind_a_detached_call_stands_in_the_last_result_and_its_outcome_comes_once() -> None:
    """What a result told need not be told again."""
    script = (calls(call("background", seconds=15), call("work", seconds=9)), call("work", seconds=9), say("ok"))
    async with scene(*script, mail_in_tool_result=True) as here:
        await here.session.ask("go")
        await here.idle()
        assert here.results(1)[1] == "worked"
        [told] = here.results(2)
        assert told.startswith("worked\n\n[mail ")
        assert told.endswith("call call_1 (background) completed in 15 s]\nworked")
        assert (here.asked, here.unread()) == (3, [])


OUTAGE = fail(ModelError(model="m", status=503, reason="overloaded", retryable=True))


@pytest.mark.parametrize("answer", [slow(60, say("late")), OUTAGE, slow(1, say(""))])
async def test_mail_to_results_that_got_no_answer_stands_in_the_last_of_them(answer: Any) -> None:
    """Whatever became of the request that told them: a user item behind them would be refused."""
    options: Any = {"mail_in_tool_result": True, "interrupt_completions": True}
    async with scene(call("work", seconds=1), answer, say("ok"), say("ok"), **options) as here:
        await here.session.send("go")
        await trio.sleep(1.05)
        await here.session.interrupt("also staging")
        await here.idle()
        last = here.request(2).transcript[-1]
        assert isinstance(last, ResultsItem)
        assert last.results[0].text.startswith("worked\n\n")
        assert last.results[0].text.endswith("also staging")


async def test_words_after_a_stopped_run_stand_in_the_last_result() -> None:
    """Its results are the last item."""
    async with scene(call("work", seconds=60), say("ok"), mail_in_tool_result=True) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.stop_run()
        await here.session.ask("staging")
        [told] = here.results(1)
        assert told.startswith("cancelled: the run was stopped\n\n[run stopped]\n\n[mail ")
        assert here.request(1).transcript[-1] is (await here.record()).items[-2]


@pytest.mark.parametrize("name", ["interrupt_completions", "pause_cancels_calls", "resume_on_any_mail", "mail_in_tool_result"])
async def test_a_switch_is_true_or_false(name: str) -> None:
    """A text that looks like no is no `False`."""
    async with open_system() as system:
        with pytest.raises(ConfigError, match=f"found {name}='no'; write True or False"):
            await system.open(Worker, model=ScriptedModel([]), **{name: "no"})
