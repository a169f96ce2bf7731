"""What runs may spend: calls in the background, requests, tokens, cost; each refusal says what was used up."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from attrs import evolve
from scenes import Diary, Worker, scene, virtual_time

from actors import Limits, ModelError, RunFailed
from actors.agent._budget import refusal
from actors.models import Completion, ModelEvent, Request, ScriptedModel, Usage, call, calls, fail, say, slow
from supervision import open_system

pytestmark = virtual_time

# ------------------------------------------------------------------ in the background


async def test_a_seventeenth_detached_call_fails_and_names_those_running() -> None:
    """A model that starts things and never looks at them hears of it."""
    many = calls(*[call("background", seconds=3600)] * 17)
    async with scene(many, say("ok"), *[say("seen")] * 16) as here:
        await here.session.send("go")
        await trio.sleep(1)
        assert len(here.diary.began) == 16
        told = here.last_results(1)[16].outcome
        assert told.status == "failed"
        assert told.error.startswith("call_1, call_2, ")
        assert told.error.endswith("call_10 run in the background, as many as may; wait for one or cancel one")
        await here.session.stop_run()


async def test_one_that_would_detach_beyond_the_bound_is_cancelled_and_fails() -> None:
    """Its attach time is over, and there is no place for it."""
    turn = calls(call("background", seconds=3600), call("patient", seconds=3600))
    async with scene(turn, say("ok"), limits=Limits(max_detached=1)) as here:
        await here.session.send("go")
        await trio.sleep(11)
        assert [result.outcome.status for result in here.last_results(1)] == ["running", "failed"]
        assert here.results(1)[1] == "failed: call_1 run in the background, as many as may; wait for one or cancel one"
        assert here.diary.cancelled == ["call_2"]
        await here.session.stop_run()


async def test_an_end_makes_room_for_the_next_in_the_background() -> None:
    """The bound is of those that run."""
    first, second = call("background", seconds=5), calls(call("background"), call("background"))
    async with scene(first, second, say("ok"), *[say("seen")] * 3, limits=Limits(max_detached=1)) as here:
        await here.session.send("go")
        await here.idle()
        assert [result.outcome.status for result in here.last_results(2)] == ["failed", "failed"]
        assert here.diary.ended == ["call_1"]


async def test_detached_calls_do_not_hold_up_one_that_attaches() -> None:
    """They take no slot."""
    turn = calls(*[call("background", seconds=3600)] * 4, call("work", seconds=1))
    async with scene(turn, say("ok")) as here:
        await here.session.send("go")
        await trio.sleep(2)
        assert here.results(1)[4] == "worked"
        await here.session.stop_run()


# ------------------------------------------------------------------ requests, tokens, cost
class Paid(ScriptedModel):
    """Each answer takes six tokens and costs 0.3."""

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        async with super().stream(request) as events:
            yield self._paid(events)

    async def _paid(self, events: AsyncIterator[ModelEvent]) -> AsyncIterator[ModelEvent]:
        async for event in events:
            yield evolve(event, usage=Usage(1, 4, 2, cost=0.3)) if isinstance(event, Completion) else event


async def test_requests_of_a_run_are_bounded_and_what_was_begun_is_settled() -> None:
    """The host reads why; each person's run counts anew."""
    async with scene(call("work"), call("work"), say("ok"), limits=Limits(max_requests=2)) as here:
        with pytest.raises(RunFailed, match="max_requests=2 is used up: this run has had 2"):
            await here.session.ask("go")
        assert (here.asked, here.status()) == (2, "failed")
        assert await here.session.ask("and now") == "ok"
        assert here.results(2) == ["worked"]


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(max_tokens=10), "max_tokens=10 is used up: this run has had 12"),
        (Limits(max_cost=0.5), "max_cost=0.5 is used up: this run has had 0.6"),
    ],
)
async def test_tokens_and_cost_of_a_run_are_bounded(limits: Limits, said: str) -> None:
    """The request that crosses the bound is the last."""
    model = Paid([call("work"), call("work"), say("never")])
    async with open_system() as system:
        session = await system.open(Worker, model=model, deps=Diary(), limits=limits)
        with pytest.raises(RunFailed, match=said):
            await session.ask("go")
        assert len(model.requests) == 2


async def test_what_a_failed_run_has_spent_is_not_held_against_the_next() -> None:
    """Else a run that ended without an answer would leave a session that never makes a request again."""
    script = (slow(60, say("cut")), fail(ModelError(status=401, reason="no")), say("ok"))
    async with scene(*script, limits=Limits(max_requests=1)) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.stop_run()
        with pytest.raises(RunFailed, match="HTTP 401"):
            await here.session.ask("again")
        assert await here.session.ask("and now?") == "ok"


async def test_a_bound_on_the_system_is_of_all_that_it_spends() -> None:
    """One runaway session must not be followed by another."""
    async with open_system(limits=Limits(max_requests=3)) as system:
        model = ScriptedModel([say("a"), say("b"), say("c"), say("d")])
        one, two = [await system.open(Worker, model=model) for _ in range(2)]
        assert [await one.ask("1"), await two.ask("2"), await one.ask("3")] == ["a", "b", "c"]
        with pytest.raises(RunFailed, match="max_requests=3 is used up: the system has had 3"):
            await two.ask("4")


@pytest.mark.parametrize(
    ("spent", "told"),
    [
        (Usage(requests=0), None),
        (Usage(1, 5, 4, cost=0.9), None),
        (Usage(2, 0, 0), "max_requests=2 is used up: x has had 2"),
        (Usage(1, 5, 5), "max_tokens=10 is used up: x has had 10"),
        (Usage(1, 0, 0, cost=1.5), "max_cost=1 is used up: x has had 1.5"),
    ],
)
def test_what_refuses_a_request(spent: Usage, told: str | None) -> None:
    """Reached is used up."""
    assert refusal(Limits(max_requests=2, max_tokens=10, max_cost=1.0), spent, "x") == told
    assert refusal(Limits(), spent, "x") is None
    assert refusal(Limits(max_requests=None, max_tokens=None, max_cost=None), spent, "x") is None


def test_usage_adds_up() -> None:
    """A cost nobody knows counts nothing; an estimate makes the sum one."""
    assert Usage(1, 2, 3).plus(Usage(1, 1, 1, estimated=True, cost=0.5)) == Usage(2, 3, 4, estimated=True, cost=0.5)
    assert Usage(1, 2, 3).plus(Usage()) == Usage(2, 2, 3)
