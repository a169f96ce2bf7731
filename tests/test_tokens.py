"""Tokens of deferred calls: what makes one void, and what is no answer."""

from collections.abc import Sequence
from typing import Any

import pytest
import trio
from scenes import virtual_time
from till import PAID, WHY, at_the_till, paid, void

from actors import (
    AlreadyCompleted,
    CodecError,
    ConfigError,
    Outcome,
    ToolContext,
    UnknownToken,
)
from actors.models import call, calls, say

pytestmark = virtual_time


# ------------------------------------------------------------------ void tokens
async def test_what_stops_a_run_voids_its_tokens() -> None:
    """Also those of earlier runs; and every call has its result."""
    turn = calls(call("refund"), call("work", seconds=60))
    async with at_the_till(call("refund"), say("asked"), turn, say("stopped")) as here:
        await here.session.ask("go")
        await here.session.send("again")
        await trio.sleep(3)
        await here.session.stop_run()
        await here.idle()
        assert {row.status for row in (await here.calls()).values()} == {"cancelled"}
        for deferred in ("call_1", "call_2"):
            await void(here, "the run was stopped", deferred)
        await here.session.ask("well?")
        assert here.outcomes(3) == ["cancelled", "cancelled"]


async def test_a_stop_when_no_run_is_in_progress_leaves_deferred_calls() -> None:
    """It means the run that is about to begin, which is none of theirs."""
    async with at_the_till(call("refund"), say("asked"), say("It is paid.")) as here:
        await here.session.ask("go")
        await here.idle()
        await here.session.stop_run()
        await paid(here)
        assert here.asked == 3


async def test_who_cancels_a_deferred_call_voids_its_token() -> None:
    """That one alone, and the session hears of it."""
    turn = calls(call("refund"), call("refund"))
    async with at_the_till(turn, say("asked"), say("one is off"), say("the other is paid")) as here:
        await here.session.ask("go")
        await here.session.cancel_calls("call_1")
        await here.idle()
        assert "call call_1 (refund) cancelled" in here.words(2)
        await void(here, "cancelled by request")
        await paid(here, call="call_2")
        assert "call call_2 (refund) completed" in here.words(3)


@pytest.mark.parametrize("deleted", [False, True])
async def test_the_end_of_a_session_voids_its_tokens(*, deleted: bool) -> None:
    """Nobody would read the answer."""
    async with at_the_till(call("refund"), say("asked")) as here:
        await here.session.ask("go")
        await here.session.stop()
        if deleted:
            await here.session.delete()
        why = "its session was deleted" if deleted else r"it is cancelled \(its session was stopped\)"
        with pytest.raises(AlreadyCompleted, match=f"s/call_1 cannot be answered any more: {why}"):
            await here.system.complete(here.diary.host[0], PAID)


# ------------------------------------------------------------------ what is no answer
BAD_ANSWERS: Sequence[tuple[Any, Any, type[Exception], str]] = (
    (0, Outcome.deferred("later"), ConfigError, "final, such as .* found status 'deferred'"),
    (0, Outcome("paid"), ConfigError, "found status 'paid'"),  # type: ignore[arg-type]
    (0, "paid", TypeError, "takes a str and an Outcome; found str and 'paid'"),
    (0, Outcome.completed(object()), CodecError, "has no JSON"),
    (0, Outcome("failed", error=7), TypeError, "has a str for its error"),  # type: ignore[arg-type]
    (7, PAID, TypeError, "found int"),
    ("m-7; DROP TABLE", PAID, UnknownToken, r"has the token m-7;\.\.\. \(15 characters\)"),
    ("\ud800", PAID, UnknownToken, "ud800"),
    ("", PAID, UnknownToken, "has the token ''"),
)


@pytest.mark.parametrize(("token", "outcome", "error", "match"), BAD_ANSWERS)
async def test_what_is_no_answer_is_refused_and_the_call_goes_on_waiting(
    token: Any, outcome: Any, error: type[Exception], match: str
) -> None:
    """A host's mistake costs nobody an answer."""
    async with at_the_till(call("refund"), say("asked"), say("paid")) as here:
        await here.session.ask("go")
        with pytest.raises(error, match=match):
            await here.system.complete(here.diary.host[0] if token == 0 else token, outcome)
        await paid(here)
        assert here.asked == 3


async def test_an_answer_before_the_tool_has_returned_is_asked_for_again() -> None:
    """A provider can be faster than a tool; nobody knows the token until it counts."""
    async with at_the_till(call("slow_refund"), say("asked"), say("paid"), tools=[slow_refund]) as here:
        await here.session.send("go")
        await trio.sleep(1)
        with pytest.raises(UnknownToken, match="if the tool has not returned yet, again in a moment"):
            await here.system.complete(TOKENS[-1], PAID)
        await here.idle()
        await here.system.complete(TOKENS[-1], PAID)
        await here.idle()
        assert here.asked == 3


TOKENS: list[str] = []


async def slow_refund(context: ToolContext) -> Outcome:
    """Ask for it, and take some time to return."""
    TOKENS.append(context.continuation)
    await trio.sleep(5)
    assert context.continuation == TOKENS[-1]
    return Outcome.deferred(WHY)
