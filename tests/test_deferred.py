"""Deferred calls: a tool leaves its answer to somebody else, the run goes on, and the answer comes as mail, once."""

import trio
from attrs import frozen
from scenes import real_time, virtual_time
from test_portal import in_a_thread
from till import PAID, WHY, Till, at_the_till, paid, told, void

from actors import AgentMessage, FromSession, Limits, Outcome, UserItem
from actors.agent._record import Draft
from actors.models import ScriptedModel, call, calls, say
from supervision import open_system

pytestmark = virtual_time


# ------------------------------------------------------------------ what the model is told
async def test_a_deferred_call_is_a_placeholder_and_the_run_ends_without_it() -> None:
    """Nobody waits for a person who may come next week."""
    async with at_the_till(call("refund"), say("I have asked.")) as here:
        assert await here.session.ask("give it back") == "I have asked."
        await here.idle()
        assert told(here, 1) == {
            "status": "deferred", "tool_call_id": "call_1", "tool": "refund", "reason": WHY,
            "message": "Its result will arrive as mail. Do not poll: use wait, or go on with other work.",
        }  # fmt: skip
        [row] = (await here.calls()).values()
        assert (row.status, row.outcome, row.token, row.reason) == ("deferred", None, here.diary.host[0], WHY)
        assert (here.status(), here.unread(), here.events("tool_finished")) == ("idle", [], [])
        [told_once] = here.events("tool_detached")
        assert (told_once.call, told_once.reason) == ("call_1", f"deferred: {WHY}")
        assert row.token not in repr(row)


async def test_the_answer_is_mail_that_says_which_call_is_meant_and_not_its_token() -> None:
    """The model asked for a refund; it never saw a token, and must not."""
    async with at_the_till(call("refund"), say("I have asked."), say("It is paid.")) as here:
        await here.session.ask("give it back")
        receipt = await paid(here)
        assert here.words(2) == f"[mail {receipt.id}: call call_1 (refund) completed]\npaid 5"
        assert here.diary.host[0] not in str(
            [item for item in here.request(2).transcript if isinstance(item, UserItem)][-1].text
        )
        [row] = (await here.calls()).values()
        assert (row.status, row.outcome) == ("completed", PAID)
        [event] = here.events("tool_finished")
        assert (event.call, event.tool, event.outcome) == ("call_1", "refund", PAID)
        assert [item.text for item in (await here.record()).items if hasattr(item, "text")][-1] == "It is paid."


async def test_an_answer_that_comes_before_the_results_is_the_result() -> None:
    """The other call takes longer than the person: nothing is told twice."""
    turn = calls(call("refund"), call("work", seconds=9))
    async with at_the_till(turn, say("done")) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.system.complete(here.diary.host[0], PAID)
        await here.idle()
        assert here.results(1) == ["paid 5", "worked"]
        assert (here.asked, here.unread(), len(here.events("tool_finished"))) == (2, [], 2)


async def test_a_call_that_came_through_many_sessions_is_deferred_and_answered() -> None:
    """Its run may send nothing more, and has a call of its own all the same; the answer is kept, and wakes nobody."""
    async with at_the_till(
        call("refund"), say("asked"), say("seen"), limits=Limits(max_hops=2, wake_on=("peer", "user"))
    ) as here:
        peer = FromSession("peer")
        await here.system._root.store.send(Draft("s", AgentMessage("give it back"), peer, hops=2))
        await here.idle()
        assert [(row.status, row.hops) for row in (await here.calls()).values()] == [("deferred", 3)]
        await paid(here)
        assert (here.asked, here.unread()[0].hops) == (2, 3)
        await here.session.ask("and?")
        assert "call call_1 (refund) completed]\npaid 5" in here.words(2)


async def test_a_denial_is_told_as_one() -> None:
    """The person says no: the model reads why."""
    async with at_the_till(call("refund"), say("asked"), say("sorry")) as here:
        await here.session.ask("go")
        receipt = await paid(here, Outcome.denied("not that much"))
        assert here.words(2) == f"[mail {receipt.id}: call call_1 (refund) denied]\ndenied: not that much"


async def test_an_answer_wakes_as_the_end_of_a_call_does() -> None:
    """Its kind is `tool`; a session that is not to be woken by tools reads it with what wakes it."""
    async with at_the_till(call("refund"), say("asked"), say("seen"), limits=Limits(wake_on=("user",))) as here:
        await here.session.ask("go")
        await paid(here)
        assert here.asked == 2
        await here.session.ask("and?")
        assert "call call_1 (refund) completed]\npaid 5" in here.words(2)


async def test_a_tool_of_any_kind_can_defer() -> None:
    """Async, an async generator whose last item it is; and those in threads, below."""
    async with at_the_till(call("refund_step_by_step"), say("asked"), say("paid")) as here:
        await here.session.ask("go")
        await paid(here)
        assert [event.payload for event in here.events("tool_progress")] == ["asked the bank"]
        assert (told(here, 1)["status"], (await here.calls())["call_1"].status) == ("deferred", "completed")


@real_time
async def test_a_tool_in_a_thread_defers_and_a_thread_of_the_host_answers() -> None:
    """A webhook of a web framework, through the portal."""
    async with at_the_till(call("refund_in_a_thread"), say("asked"), say("It is paid.")) as here:
        await here.session.ask("go")
        receipt = await in_a_thread(here.system, lambda portal: portal.complete(here.diary.host[0], PAID))
        assert not receipt.duplicate
        await here.idle()
        assert here.words(2) == f"[mail {receipt.id}: call call_1 (refund_in_a_thread) completed]\npaid 5"


async def test_a_run_that_is_asked_for_a_shape_goes_on() -> None:
    """It answers in the shape, with what it knows."""

    @frozen
    class Paid:
        amount: int

    async with at_the_till(call("refund"), say('{"amount": 0}'), say("It is paid.")) as here:
        assert await here.session.ask("how much?", schema=Paid) == Paid(0)
        await paid(here)
        assert here.asked == 3


# ------------------------------------------------------------------ it takes nothing
async def test_a_deferred_call_takes_no_slot_and_no_place_in_the_background() -> None:
    """A hundred people may be asked at once."""
    turn = calls(call("refund"), call("work"), call("background", seconds=1))
    limits = Limits(max_calls=1, max_detached=1)
    async with at_the_till(turn, say("asked"), say("seen"), limits=limits) as here:
        await here.session.ask("go")
        assert here.outcomes(1) == ["deferred", "completed", "running"]


async def test_a_detached_call_that_defers_lets_the_run_end() -> None:
    """Its placeholder said `running`; its task is over, and what follows is somebody else's."""
    async with at_the_till(call("refund_later"), say("I go on."), say("It is paid.")) as here:
        await here.session.send("go")
        await trio.sleep(3)
        assert here.status() == "waiting"
        await here.idle()
        assert (here.status(), here.asked, (await here.calls())["call_1"].status) == ("idle", 2, "deferred")
        receipt = await paid(here)
        assert here.words(2) == f"[mail {receipt.id}: call call_1 (refund_later) completed]\npaid 5"


# ------------------------------------------------------------------ the system tools
async def test_the_system_tools_tell_a_deferred_call_from_one_that_runs() -> None:
    """A model that asks is not told that something works when nobody does."""
    look = calls(call("get_tool_call_status", tool_call_id="call_1"), call("list_running_tool_calls"), call("wait"))
    again = call("get_tool_call_status", tool_call_id="call_1")
    async with at_the_till(call("refund"), look, say("asked"), again, say("paid")) as here:
        await here.session.ask("go")
        seen = told(here, 2, 0)
        assert (seen["status"], seen["is_final"], seen["result"]) == ("deferred", False, None)
        assert [(each["tool_call_id"], each["status"]) for each in told(here, 2, 1)["running"]] == [("call_1", "deferred")]
        assert here.results(2)[2] == (
            "failed: no call is running, so there is nothing to wait for; the answer to call_1 will be mail, whenever it comes: "
            "wait for it by its id, or go on"
        )
        await paid(here)
        seen = told(here, 4)
        assert (seen["status"], seen["is_final"], seen["result"]) == ("completed", True, "paid 5")


async def test_a_wait_for_a_deferred_call_waits_for_its_answer() -> None:
    """It is named, so that is what is meant."""
    wait = call("wait", timeout_seconds=100, **{"for": ["call_1"]})
    async with at_the_till(call("refund"), wait, say("It is paid.")) as here:
        await here.session.send("go")
        await trio.sleep(7)
        await paid(here)
        seen = told(here, 2)
        assert (seen["woken_by"], seen["tool_call_ids"], seen["waited_seconds"]) == ("call", ["call_1"], 7)
        assert here.words(2).endswith("call call_1 (refund) completed]\npaid 5")


async def test_a_status_that_waits_for_completion_waits_for_the_answer() -> None:
    """And what it has shown is not told again."""
    wait = call("get_tool_call_status", tool_call_id="call_1", wait_for_completion=True, timeout_seconds=100)
    async with at_the_till(call("refund"), wait, say("It is paid.")) as here:
        await here.session.send("go")
        await trio.sleep(7)
        receipt = await paid(here)
        assert (told(here, 2)["result"], here.words(2)) == (
            "paid 5", f"[mail {receipt.id}: call call_1 (refund) completed, already read]",
        )  # fmt: skip


async def test_a_call_that_defers_ends_a_wait_for_any_call() -> None:
    """It runs no more: to wait on for it would be to wait for nobody knows whom."""
    async with at_the_till(call("refund_later"), call("wait", timeout_seconds=100), say("asked")) as here:
        await here.session.ask("go")
        seen = told(here, 2)
        assert (seen["woken_by"], seen["tool_call_ids"], seen["waited_seconds"]) == ("call", ["call_1"], 5)


async def test_a_deferred_call_can_be_cancelled_by_its_model() -> None:
    """Its token is void from then on, and that is told as mail: its result was a placeholder."""
    async with at_the_till(call("refund"), call("cancel_tool_call", tool_call_id="call_1"), say("no matter")) as here:
        await here.session.ask("go")
        assert told(here, 2) == {"cancelled": True, "previous_status": "deferred"}
        assert here.words(2).endswith("call call_1 (refund) cancelled]\ncancelled: cancelled by the agent")
        await void(here, "cancelled by the agent")


# ------------------------------------------------------------------ copies
async def test_a_copy_has_no_token_and_the_original_keeps_its_own() -> None:
    """An answer is for one session: two of them would act on it."""
    async with at_the_till(call("refund"), say("asked"), say("copy"), say("seen"), say("paid")) as here:
        await here.session.ask("go")
        other = await here.session.fork(session="t")
        await here.idle()
        [row] = (await other.record()).calls
        assert (row.status, row.token) == ("cancelled", None)
        words = [item for item in (await other.record()).items if isinstance(item, UserItem)][-1].text
        assert words.endswith(
            "call call_1 (refund) cancelled]\ncancelled: its answer goes to the session that this one was copied from"
        )
        await paid(here)
        assert ((await here.calls())["call_1"].status, len((await other.record()).items)) == ("completed", 6)


async def test_an_answer_that_was_told_is_told_in_a_copy_as_it_was() -> None:
    """With the tool's name, and not once more as news."""
    async with at_the_till(call("refund"), say("asked"), say("It is paid."), say("again")) as here:
        await here.session.ask("go")
        await paid(here)
        text, old = await here.session.export(), await here.record()
    Till.model = ScriptedModel([say("and on")])
    async with open_system(agents=[Till]) as system:
        session = await system.import_session(text, session="u")
        new = await session.record()
        assert new.items == old.items
        assert [getattr(item, "text", "") for item in new.items] == [getattr(item, "text", "") for item in old.items]
        assert await session.ask("go on") == "and on"
        assert len((await session.record()).items) == len(old.items) + 2
