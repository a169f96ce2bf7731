"""Calls as the model sees them: attached, detached, queued; results in call order, outcomes told once."""

import json

import pytest
import trio
from scenes import Worker, scene, virtual_time

from actors import Limits, ToolCallFinished
from actors.models import call, calls, say

pytestmark = virtual_time

ONE_AT_A_TIME = Limits(max_calls=1)


def placeholder(call: str, tool: str, detached: str) -> str:
    """What a model reads in place of the outcome of a call that goes on."""
    advice = "Its result will arrive as mail. Do not poll: use wait, or go on with other work."
    told = {"status": "running", "tool_call_id": call, "tool": tool, "detached": detached, "message": advice}
    return json.dumps(told, separators=(",", ":"))


async def test_a_call_that_is_waited_for_has_its_outcome_as_its_result() -> None:
    """The plain case: nothing detaches, nothing comes as mail."""
    async with scene(call("work", seconds=3), say("done")) as here:
        assert await here.session.ask("go") == "done"
        assert here.results(1) == ["worked"]
        assert here.asked == 2


async def test_a_call_with_attach_0_has_a_placeholder_at_once() -> None:
    """A model that starts a long job does not wait for it."""
    async with scene(call("background", seconds=30), say("started"), say("seen")) as here:
        began = trio.current_time()
        assert await here.session.ask("go") == "started"
        assert trio.current_time() == began
        assert here.results(1) == [placeholder("call_1", "background", "still running after 0s")]


async def test_a_call_that_ends_in_time_has_its_real_result() -> None:
    """Ten seconds of patience, three of work."""
    async with scene(call("patient", seconds=3), say("done")) as here:
        await here.session.ask("go")
        assert here.results(1) == ["worked"]


async def test_a_call_that_takes_too_long_detaches_after_its_time() -> None:
    """Ten seconds of patience, thirty of work: the model goes on after ten."""
    async with scene(call("patient", seconds=30), say("going on"), say("seen")) as here:
        assert await here.session.ask("go") == "going on"
        assert trio.current_time() == 10
        assert here.results(1) == [placeholder("call_1", "patient", "still running after 10s")]


async def test_the_outcome_of_a_detached_call_is_mail_once_and_its_placeholder_stays() -> None:
    """History is never rewritten: what was said of a running call remains true of that moment."""
    async with scene(call("patient", seconds=30), say("going on"), say("seen"), say("again")) as here:
        await here.session.ask("go")
        await here.idle()
        assert here.words(2).endswith(": call call_1 (patient) completed in 30 s]\nworked")
        await here.session.ask("and now?")
        assert here.results(3) == [placeholder("call_1", "patient", "still running after 10s")]
        assert sum("worked" in getattr(item, "text", "") for item in here.request(3).transcript) == 1


async def test_results_stand_in_call_order_when_a_later_one_ends_first() -> None:
    """Providers match results to calls by place or by id; ours match by both."""
    both = calls(call("patient", seconds=30, text="slow"), call("work", seconds=1, text="fast"))
    async with scene(both, say("ok"), say("seen")) as here:
        await here.session.ask("go")
        assert here.results(1) == [placeholder("call_1", "patient", "still running after 10s"), "fast"]
        await here.idle()
        assert here.words(2).endswith("slow")


async def test_one_slot_runs_one_call_at_a_time_in_call_order() -> None:
    """`max_calls` bounds what one turn may do at once."""
    three = calls(*(call("work", seconds=2) for _ in range(3)))
    async with scene(three, say("ok"), limits=ONE_AT_A_TIME) as here:
        await here.session.ask("go")
        assert (here.diary.peak, here.diary.began) == (1, ["call_1", "call_2", "call_3"])
        assert trio.current_time() == 6


async def test_a_call_with_attach_0_takes_no_slot() -> None:
    """It is never attached, so it holds up nobody and nobody holds it up."""
    turn = calls(call("work", seconds=5), call("background", seconds=1, text="free"), call("work", seconds=5))
    async with scene(turn, say("ok"), say("more"), limits=ONE_AT_A_TIME) as here:
        await here.session.send("go")
        await trio.sleep(2)
        assert set(here.diary.began) == {"call_1", "call_2"}
        assert here.diary.ended == ["call_2"]


async def test_four_detached_calls_do_not_hold_up_a_fifth_that_attaches() -> None:
    """Detaching frees the slot."""
    jobs = calls(*(call("background", seconds=3600) for _ in range(4)))
    async with scene(jobs, call("work", seconds=1), say("ok")) as here:
        assert await here.session.ask("go") == "ok"
        assert trio.current_time() == 1
        assert here.results(2) == ["worked"]


async def test_a_call_that_never_got_a_slot_detaches_as_queued_and_starts() -> None:
    """Its patience counts from the moment the model asked for it."""
    turn = calls(call("work", seconds=60), call("patient", seconds=5))
    async with scene(turn, say("ok"), say("seen"), limits=ONE_AT_A_TIME) as here:
        await here.session.send("go")
        await trio.sleep(9)
        assert here.diary.began == ["call_1"]
        await trio.sleep(2)
        assert here.diary.began == ["call_1", "call_2"]
        await here.idle()
        assert here.results(1) == ["worked", "worked"]


async def test_a_queued_call_that_outlasts_its_patience_says_that_it_was_queued() -> None:
    """The model should know that the job had not even begun."""
    turn = calls(call("patient", seconds=60), call("patient", seconds=60))
    async with scene(turn, say("ok"), say("one"), say("two"), limits=ONE_AT_A_TIME) as here:
        await here.session.ask("go")
        first, second = here.results(1)
        assert first == placeholder("call_1", "patient", "still running after 10s")
        assert second == placeholder("call_2", "patient", "still queued after 10s")


async def test_a_detached_call_that_ends_before_its_siblings_has_its_outcome_as_result() -> None:
    """What is known when the results are made is told there, and its mail is consumed in silence."""
    turn = calls(call("patient", seconds=15), call("work", seconds=20))
    async with scene(turn, say("ok"), say("never")) as here:
        assert await here.session.ask("go") == "ok"
        assert here.results(1) == ["worked", "worked"]
        await here.idle()
        assert here.asked == 2


@pytest.mark.parametrize("tool", ["work", "background"])
async def test_an_outcome_is_told_in_one_place_only(tool: str) -> None:
    """An attached one in its result, a detached one in mail; never both."""
    async with scene(call(tool, seconds=1, text="payload"), *[say("ok")] * 3) as here:
        await here.session.ask("go")
        await here.idle()
        texts = [getattr(item, "text", "") for item in (await here.record()).items]
        results = [result.text for item in (await here.record()).items for result in getattr(item, "results", ())]
        assert sum("payload" in text for text in [*texts, *results]) == 1


async def test_the_mail_of_an_attached_call_shows_nothing_and_is_consumed() -> None:
    """It is mail like any other, so that one wait covers all; but its result told it."""
    async with scene(call("work", seconds=1), say("ok")) as here:
        await here.session.ask("go")
        sent = [event.envelope.body for event in here.events("mail_accepted")]
        assert [type(body) for body in sent][1:] == [ToolCallFinished]
        assert here.unread() == []


async def test_a_placeholder_names_wait_only_if_the_agent_has_it() -> None:
    """A model that is told of a tool it lacks calls it."""
    async with scene(call("background", seconds=1), say("ok"), say("seen"), toolbox=()) as here:
        await here.session.ask("go")
        assert "use wait" not in here.results(1)[0]
        assert json.loads(here.results(1)[0])["message"].endswith("Do not poll: go on with other work.")


async def test_an_agent_whose_tools_all_attach_gets_no_system_tools() -> None:
    """They would only be noise in its prompt."""

    class Plain(Worker):
        patient = background = None  # type: ignore[assignment]

    async with scene(say("ok"), agent=Plain) as here:
        await here.session.ask("go")
        assert [tool.name for tool in here.request(0).tools] == ["work", "broken"]


async def test_the_calls_of_a_hundred_rounds_have_ids_of_their_own() -> None:
    """Providers refuse a history in which an id stands twice."""
    async with scene(*[call("work")] * 100, say("done"), max_rounds=200) as here:
        await here.session.ask("go")
        assert len(await here.calls()) == 100
        assert list(await here.calls())[-1] == "call_64"
