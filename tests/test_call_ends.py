"""How calls end: by themselves, wrongly, late, or cut short; whatever happens, each has one outcome that says what happened."""

import asyncio
from typing import Any

import pytest
import trio
from scenes import Worker, scene, virtual_time

from actors import CallRecord, Limits, Media, ToolContext, ToolError, tool
from actors.models import Said, call, calls, raw_call, say

pytestmark = virtual_time

ONE_AT_A_TIME = Limits(max_calls=1)
PIXEL = Media("image/png", b"\x89PNG")


class Aloof(BaseException):
    """No `Exception`."""


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Odd(Worker):
    """You work oddly."""

    @tool
    async def refuse(self) -> str:
        """Tell the model something."""
        raise ToolError("ask Ann first")

    @tool
    async def explode(self, how: str) -> str:
        """Raise what few expect."""
        if how == "stray":
            with trio.CancelScope() as scope:
                scope.cancel()
                try:
                    await trio.sleep(1)
                except trio.Cancelled as cancelled:  # noqa: ASYNC103  # that is the mistake
                    stray = cancelled
            raise stray
        raise {
            "asyncio": asyncio.CancelledError(), "base": Aloof("no exception"), "exit": GeneratorExit(),
            "group": BaseExceptionGroup("both", [ValueError("a"), Aloof("b")]), "mute": Mute(), "empty": TimeoutError(),
            "odd": OSError("\udcff.txt"), "long": ValueError("x" * 20_000),
        }[how]  # fmt: skip

    @tool
    async def give(self, what: str) -> Any:
        """Return one of many things."""
        return {
            "media": PIXEL,
            "both": ["look", PIXEL],
            "none": None,
            "dict": {"a": [1, None]},
            "object": object(),
            "odd": "\udcff.txt",
        }[what]

    @tool(timeout=5)
    async def limited(self, seconds: float) -> str:
        """Work, for five seconds at most."""
        await trio.sleep(seconds)
        return "in time"

    @tool(timeout=5)
    async def messy(self) -> str:
        """Fail when the time is over."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._fails_when_cancelled)
            await trio.sleep(60)
        return "never"

    async def _fails_when_cancelled(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise RuntimeError("while cleaning up")

    @tool
    async def stubborn(self, context: ToolContext) -> str:
        """Swallow the first cancellation."""
        with self.deps.call(context.call):
            try:
                await trio.sleep(60)
            except trio.Cancelled:
                self.deps.cancelled.append("swallowed")
            return "as if nothing had happened"

    @tool(attach=0)
    async def noting(self, context: ToolContext, count: int) -> str:
        """Say how far it is."""
        for number in range(count):
            context.progress({"done": number})
            await trio.sleep(1)
        return "noted"


# ------------------------------------------------------------------ it goes wrong
async def test_a_tool_that_raises_is_a_failed_outcome_and_its_siblings_go_on() -> None:
    """One bad tool is the model's to handle, not a crash."""
    turn = calls(call("work", seconds=1), call("broken", text="no disk"), call("work", seconds=2))
    async with scene(turn, say("ok")) as here:
        assert await here.session.ask("go") == "ok"
        assert here.results(1) == ["worked", "failed: ValueError: no disk", "worked"]


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("asyncio", "CancelledError"),
        ("base", "Aloof: no exception"),
        ("exit", "GeneratorExit"),
        ("group", "ValueError: a; Aloof: b"),
        ("mute", "Mute, whose text cannot be read"),
        ("empty", "TimeoutError"),
        ("odd", "OSError: \\udcff.txt"),
        ("long", f"ValueError: {'x' * 9_988}... (10012 more characters)"),
        ("stray", "it let out a cancellation that was not its call's"),
    ],
)
async def test_whatever_a_tool_raises_its_call_has_failed_and_no_more(how: str, told: str) -> None:
    """Not its siblings, not its session; and the model reads what it can read."""
    async with scene(calls(call("explode", how=how), call("work", seconds=1)), say("ok"), agent=Odd) as here:
        assert await here.session.ask("go") == "ok"
        assert here.results(1) == [f"failed: {told}", "worked"]


async def test_a_tool_error_tells_the_model_its_text_alone() -> None:
    """The author wrote that sentence for the model."""
    async with scene(call("refuse"), say("ok"), agent=Odd) as here:
        await here.session.ask("go")
        assert here.results(1) == ["failed: ask Ann first"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (call("wrok"), "there is no tool 'wrok'; the tools are background, broken"),
        (call("broken"), "text"),
        (call("broken", text=1), "text"),
        (call("broken", text="a", more=1), "more"),
        (raw_call("broken", "{text: a"), "the arguments of broken were no JSON object: '{text: a'"),
        (raw_call("wait", "[1"), "the arguments of wait were no JSON object: '[1'"),
        (call("wait", sleep=1), "unknown argument `sleep`"),
        (call("get_tool_call_status"), "missing `tool_call_id`"),
        (call("get_tool_call_status", tool_call_id="call_9"), "there is no call 'call_9' in this session; running: call_2"),
    ],
)
async def test_a_call_that_cannot_be_made_says_what_is_wrong(wrong: Said, told: str) -> None:
    """A model corrects itself from one sentence."""
    async with scene(calls(wrong, call("work")), say("ok")) as here:
        assert await here.session.ask("go") == "ok"
        assert here.outcomes(1) == ["failed", "completed"]
        assert told in here.results(1)[0]


async def test_a_call_of_a_hidden_tool_works_but_nobody_is_told_of_it() -> None:
    """Hidden means hidden, in errors too."""

    class Secretive(Worker):
        @tool(hidden=True)
        async def door(self) -> str:
            """Open."""
            return "open"

    async with scene(calls(call("door"), call("wrok")), say("ok"), agent=Secretive) as here:
        await here.session.ask("go")
        assert here.outcomes(1) == ["completed", "failed"]
        assert "door" not in here.results(1)[1]


# ------------------------------------------------------------------ what comes back
@pytest.mark.parametrize(
    ("what", "text", "media"),
    [
        ("media", "[attached image/png]", (PIXEL,)),
        ("both", "look\n[attached image/png]", (PIXEL,)),
        ("none", "done", ()),
        ("dict", '{"a":[1,null]}', ()),
        ("odd", "\\udcff.txt", ()),
    ],
)
async def test_what_a_tool_returns_is_worded_for_the_model(what: str, text: str, media: tuple[Media, ...]) -> None:
    """Text as it is, nothing as `done`, media beside it, all else compact JSON."""
    async with scene(call("give", what=what), say("ok"), agent=Odd) as here:
        await here.session.ask("go")
        [result] = here.last_results(1)
        assert (result.text, result.media) == (text, media)


async def test_what_has_no_json_is_a_failed_outcome() -> None:
    """It ran, and the author hears what to return instead."""
    async with scene(call("give", what="object"), say("ok"), agent=Odd) as here:
        await here.session.ask("go")
        assert here.outcomes(1) == ["failed"]
        assert "builtins.object is no JSON" in here.results(1)[0]


# ------------------------------------------------------------------ it takes too long
async def test_a_tool_past_its_time_has_timed_out() -> None:
    """Its own limit is not the agent's patience."""
    async with scene(calls(call("limited", seconds=9), call("limited", seconds=1)), say("ok"), agent=Odd) as here:
        await here.session.ask("go")
        assert here.results(1) == ["timed_out: it was not done after 5 s", "in time"]
        assert trio.current_time() == 5


async def test_a_tool_that_fails_when_its_time_is_over_has_failed() -> None:
    """Its error tells more than the clock does."""
    async with scene(call("messy"), say("ok"), agent=Odd) as here:
        await here.session.ask("go")
        assert here.results(1) == ["failed: RuntimeError: while cleaning up"]


# ------------------------------------------------------------------ it is cancelled
async def test_a_call_is_cancelled_by_its_id_and_mail_says_so() -> None:
    """The model stops what it no longer needs; the tool sees its cancellation."""
    script = [call("background", seconds=60), call("cancel_tool_call", tool_call_id="call_1"), say("ok"), say("seen")]
    async with scene(*script) as here:
        await here.session.ask("go")
        await here.idle()
        assert here.results(2) == ['{"cancelled":true,"previous_status":"detached"}']
        assert here.diary.cancelled == ["call_1"]
        assert here.words(2).endswith(": call call_1 (background) cancelled in 0 s]\ncancelled: cancelled by the agent")


async def test_a_call_that_has_ended_is_not_cancelled_again() -> None:
    """The status says what became of it."""
    again = [call("cancel_tool_call", tool_call_id="call_1", reason="too slow")] * 2
    async with scene(call("background", seconds=60), *again, say("ok")) as here:
        await here.session.ask("go")
        assert here.results(3) == ['{"cancelled":false,"previous_status":"cancelled"}']


async def test_a_sibling_of_the_same_turn_can_be_cancelled() -> None:
    """Its result says so; it has no mail."""
    turn = calls(call("work", seconds=60), call("cancel_tool_call", tool_call_id="call_1"))
    async with scene(turn, say("ok")) as here:
        await here.session.ask("go")
        assert here.outcomes(1) == ["cancelled", "completed"]
        assert here.unread() == []


async def test_a_sibling_that_is_cancelled_before_its_first_line_never_starts() -> None:
    """The order of the calls is the order of their beginnings."""
    turn = calls(call("cancel_tool_call", tool_call_id="call_2"), call("work", seconds=60))
    async with scene(turn, say("ok")) as here:
        await here.session.ask("go")
        assert here.outcomes(1) == ["completed", "not_started"]
        assert here.diary.began == []


@pytest.mark.parametrize("name", ["cancel_tool_call", "get_tool_call_status"])
async def test_a_system_tool_cannot_name_its_own_call(name: str) -> None:
    """It would wait for itself, or end twice."""
    async with scene(call(name, tool_call_id="call_1"), say("ok")) as here:
        await here.session.ask("go")
        assert here.outcomes(1) == ["failed"]
        assert "call_1 is this turn's own call" in here.results(1)[0]


async def test_cancelling_all_settles_the_done_the_running_and_the_queued() -> None:
    """Three calls, three results, in call order, and the next request is valid."""
    turn = calls(call("work", seconds=1), call("work", seconds=60), call("work", seconds=60))
    async with scene(turn, say("ok"), limits=ONE_AT_A_TIME) as here:
        await here.session.send("go")
        await trio.sleep(5)
        await here.session.cancel_attached()
        assert await here.session.wait_answer() == "ok"
        assert here.outcomes(1) == ["completed", "cancelled", "not_started"]
        assert here.diary.began == ["call_1", "call_2"]


async def test_a_cancelled_call_remembers_when_it_began_and_how_long_it_ran() -> None:
    """What it cost is known although it came to nothing."""
    async with scene(call("work", seconds=60), say("ok")) as here:
        await here.session.send("go")
        await trio.sleep(7)
        await here.session.cancel_calls("call_1")
        await here.session.wait_answer()
        row: CallRecord = (await here.calls())["call_1"]
        assert row.outcome is not None
        assert (row.outcome.duration, row.outcome.error) == (7, "cancelled by request")
        assert row.outcome.started is not None


async def test_a_tool_that_swallows_its_cancellation_is_cancelled_all_the_same() -> None:
    """Its call was settled when the order came; what it returns later counts for nothing."""
    async with scene(call("stubborn"), say("ok"), agent=Odd) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.cancel_calls("call_1")
        assert await here.session.wait_answer() == "ok"
        assert here.outcomes(1) == ["cancelled"]
        await here.idle()
        assert here.diary.ended == ["call_1"]
        assert [event.outcome.status for event in here.events("tool_finished")] == ["cancelled"]


# ------------------------------------------------------------------ it says how far it is
async def test_progress_is_shown_newest_first_and_fifty_notes_are_kept() -> None:
    """A model that looks in wants the last word, not the first."""
    status = call("get_tool_call_status", tool_call_id="call_1", wait_for_completion=True, timeout_seconds=70)
    async with scene(call("noting", count=60), status, say("ok"), say("seen"), agent=Odd) as here:
        await here.session.ask("go")
        [result] = here.last_results(2)
        assert result.outcome.value["progress"] == [{"done": number} for number in range(59, 9, -1)]


async def test_progress_of_a_call_is_dropped_once_its_outcome_is_told() -> None:
    """A session that lives for years must not keep what nobody will ask for."""
    async with scene(*[call("noting", count=2), say("ok"), say("seen")] * 3, agent=Odd) as here:
        for _ in range(3):
            await here.session.ask("go")
            await here.idle()
        assert here.session._session().session.calls.progress == {}
        assert here.session._session().session.turn.began == {}


async def test_progress_is_shown_as_events_while_the_call_runs() -> None:
    """A person watches; the model is not woken."""
    async with scene(call("noting", count=2), say("ok"), say("seen"), agent=Odd) as here:
        await here.session.ask("go")
        await here.idle()
        assert [event.payload for event in here.events("tool_progress")] == [{"done": 0}, {"done": 1}]
        assert here.asked == 3
