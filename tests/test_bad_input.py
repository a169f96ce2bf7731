"""Whatever a model or a provider sends: a readable outcome or error, and a session that answers the next message."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from scenes import Scene, scene, virtual_time

from actors import ModelError, RunFailed
from actors.agent._toolbox import TOOLBOX
from actors.models import (
    Completion,
    ModelEvent,
    Request,
    Said,
    ScriptedModel,
    Text,
    ToolCall,
    Usage,
    call,
    calls,
    fail,
    raw_call,
    say,
)
from actors.models._transcript import Validator

pytestmark = virtual_time


def asked_twice(provider_id: str) -> Said:
    """Two calls under one id of the provider's, as some gateways send them."""
    said = calls(call("work"), call("work"))
    blocks = tuple(
        ToolCall("", each.tool, each.arguments, provider_id=provider_id) for each in said.blocks if isinstance(each, ToolCall)
    )
    return Said(blocks)


class Whole(ScriptedModel):
    """Gives a completion as it is, then plays a script."""

    def __init__(self, completion: Completion) -> None:
        super().__init__([say("here")])
        self._whole: Completion | None = completion

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        """One event, or those of the script."""
        if self._whole is None:
            async with super().stream(request) as events:
                yield events
            return
        whole, self._whole = self._whole, None
        yield _one(whole)


async def _one(event: ModelEvent) -> AsyncIterator[ModelEvent]:
    yield event


async def answers_again(here: Scene) -> None:
    """The session is no brick: its history is one that a provider takes, and it answers."""
    assert await here.session.ask("still there?") == "here"
    Validator().check((await here.record()).items)


# ------------------------------------------------------------------ calls that make no sense
@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (raw_call("work", "{"), "were no JSON object"),
        (raw_call("work", "[1]"), "were no JSON object"),
        (raw_call("work", ""), "worked"),
        (call("work", seconds="soon"), "`seconds`: expected float, got str"),
        (call("work", second=1), "unknown argument `second`"),
        (call("broken"), "missing `text`"),
        (call("wrok"), "wrok"),
        (call("wait", timeout_seconds="soon"), "`timeout_seconds`: got str"),
        (call("wait", **{"for": ["call_99"]}), "call_99"),
        (call("wait", **{"for": [["call_1"]]}), "there is no call ['call_1']"),
        (call("wait", **{"for": [{"call": 1}]}), "there is no call {'call': 1}"),
        (call("wait", timeout_seconds=10**400), "woken_by"),
        (call("set_timer", after_seconds=10**400, text="x"), "give a number from 0 to"),
        (call("cancel_tool_call"), "missing `tool_call_id`"),
        (call("get_tool_call_status", tool_call_id=7), "got int"),
    ],
)
async def test_a_bad_call_is_an_outcome_that_says_what_was_wrong(bad: Any, told: str) -> None:
    """The model reads it and tries again; its siblings are not harmed."""
    async with scene(calls(call("work"), bad), say("I see"), say("here"), toolbox=list(TOOLBOX)) as here:
        assert await here.session.ask("go") == "I see"
        assert here.results(1)[0] == "worked"
        assert told in here.results(1)[1]
        await answers_again(here)


async def test_calls_under_one_id_of_the_provider_are_two_calls() -> None:
    """Ours are unique; each has its result."""
    async with scene(asked_twice("toolu_1"), say("ok"), asked_twice("toolu_1"), say("ok"), say("here")) as here:
        await here.session.ask("go")
        await here.session.ask("again")
        assert here.results(3) == ["worked", "worked"]
        assert list(await here.calls()) == ["call_1", "call_2", "call_3", "call_4"]
        await answers_again(here)


# ------------------------------------------------------------------ answers that say nothing, or not all
async def test_an_empty_answer_is_asked_for_again() -> None:
    """With a nudge, and nothing of it in the history."""
    async with scene(say(""), say("  \n"), say("here"), say("here")) as here:
        assert await here.session.ask("go") == "here"
        assert [event.nudge for event in here.events("continuing")] == ["continuation", "continuation"]
        await answers_again(here)


@pytest.mark.parametrize(
    ("blocks", "stop", "reason"),
    [
        ((), "length", "the answer was cut off by its length limit before it said anything"),
        ((), "refused", "the model refused to answer"),
    ],
)
async def test_an_answer_that_was_cut_off_before_it_said_anything_is_an_error(blocks: Any, stop: Any, reason: str) -> None:
    """A nudge would be cut off too."""
    async with scene(model=Whole(Completion(blocks, Usage(), stop))) as here:
        with pytest.raises(RunFailed, match=reason):
            await here.session.ask("go")
        await answers_again(here)


async def test_an_answer_that_was_cut_off_in_mid_sentence_is_an_answer() -> None:
    """It is what there is; its words are kept."""
    async with scene(model=Whole(Completion((Text("Once upon"),), Usage(), "length"))) as here:
        assert await here.session.ask("go") == "Once upon"
        await answers_again(here)


# ------------------------------------------------------------------ providers that refuse
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ModelError(model="m", status=400, reason="image too large"), "m gave no answer (HTTP 400): image too large"),
        (ModelError(model="m", status=401, reason="bad key"), "m gave no answer (HTTP 401): bad key"),
        (ModelError(model="m", status=404, reason="no such model"), "m gave no answer (HTTP 404): no such model"),
    ],
)
async def test_a_refusal_ends_the_run_with_the_providers_reason(error: ModelError, reason: str) -> None:
    """A retry would not help; the next words are a new try."""
    async with scene(fail(error), say("here")) as here:
        with pytest.raises(RunFailed) as caught:
            await here.session.ask("go")
        assert reason in caught.value.reason
        assert here.status() == "failed"
        await answers_again(here)


async def test_an_outage_ends_the_run_after_some_tries_and_the_session_lives() -> None:
    """Rate limits, 5xx and cut streams are tried again with a delay, five times."""
    outage = fail(ModelError(model="m", status=503, reason="overloaded", retryable=True))
    async with scene(*[outage] * 6, say("here")) as here:
        with pytest.raises(RunFailed, match="overloaded"):
            await here.session.ask("go")
        await answers_again(here)


async def test_a_missing_key_says_which_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what to do about it; with a key the session goes on."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    async with scene(model="anthropic:claude-sonnet-4-5") as here:
        with pytest.raises(RunFailed, match="ANTHROPIC_API_KEY"):
            await here.session.ask("go")
        assert here.status() == "failed"
