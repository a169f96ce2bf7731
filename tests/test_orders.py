"""Orders: pause, resume, stop, cancel. Each is applied once, at a receive point, and nothing that was said is lost by it."""

import pytest
import trio
from scenes import Worker, scene, virtual_time
from storms import SlowStore

from actors import Fenced, Limits, ModelError, RecipientStopped, Resume, RunFailed, StopRun, UserItem
from actors._identity import current
from actors.models import call, calls, fail, say, slow

pytestmark = virtual_time


# ------------------------------------------------------------------ pause and resume
async def test_a_pause_before_a_message_holds_it_until_resume_and_does_not_come_back() -> None:
    """[Pause, message]: paused once, read after the resume, and not paused again."""
    async with scene(say("ok")) as here:
        await here.session.pause()
        here.session.send_nowait("go")
        await trio.sleep(100)
        assert (here.asked, here.status()) == (0, "paused")
        await here.session.resume()
        assert await here.session.wait_answer() == "ok"
        assert [event.status.value for event in here.events("status")] == ["paused", "ready", "running", "idle"]


async def test_a_pause_lets_calls_run_and_builds_their_results_at_the_resume() -> None:
    """Nothing is cancelled, nothing is asked."""
    async with scene(call("work", seconds=5), say("ok")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.pause()
        await trio.sleep(100)
        assert (here.diary.ended, here.asked) == (["call_1"], 1)
        await here.session.resume()
        assert await here.session.wait_answer() == "ok"
        assert here.results(1) == ["worked"]


async def test_a_pause_during_a_completion_takes_effect_behind_it() -> None:
    """What the model said is kept."""
    async with scene(slow(5, call("work")), say("ok")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.pause()
        await trio.sleep(100)
        assert (here.asked, here.status(), here.diary.ended) == (1, "paused", ["call_1"])
        await here.session.resume()
        assert await here.session.wait_answer() == "ok"


async def test_patience_that_ran_out_in_a_pause_detaches_at_the_resume() -> None:
    """A paused session takes no decisions."""
    async with scene(call("patient", seconds=60), say("ok"), say("seen")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.pause()
        await trio.sleep(30)
        assert here.events("tool_detached") == []
        await here.session.resume()
        await here.settled()
        assert [event.reason for event in here.events("tool_detached")] == ["still running after 10s"]


async def test_a_failed_session_that_is_paused_tries_again_when_it_is_resumed() -> None:
    """Paused, it does not try at the next word."""
    async with scene(fail(ModelError(reason="bad key")), say("ok")) as here:
        await here.session.send("go")
        await here.idle()
        await here.session.pause()
        await here.session.send("more")
        await trio.sleep(100)
        assert (here.asked, here.status()) == (1, "paused")
        await here.session.resume()
        assert await here.session.wait_answer() == "ok"
        assert len(here.request(1).transcript) == 1


@pytest.mark.parametrize("name", ["resume", "stop_run", "cancel_attached"])
async def test_an_order_that_has_nothing_to_do_does_nothing(name: str) -> None:
    """It is no error, and leaves nothing behind."""
    async with scene(say("ok")) as here:
        await getattr(here.session, name)()
        await here.settled()
        assert (here.status(), here.box.unread(0)) == ("ready", [])
        assert await here.session.ask("go") == "ok"


async def test_orders_are_freed_once_they_are_applied() -> None:
    """A session that is paused and resumed for years must not grow."""
    async with scene(say("ok")) as here:
        for _ in range(100):
            await here.session.pause()
            await here.session.resume()
        await here.settled()
        assert list(here.box.unread(0)) == []
        await here.session.pause()
        await here.session.send("go")
        await here.session.resume()
        await here.idle()
        assert list(here.box.unread(0)) == []


async def test_orders_past_the_bound_are_taken_and_equal_ones_are_one() -> None:
    """A person who hammers on pause fills no mailbox."""
    async with scene(slow(5, say("ok")), limits=Limits(max_unread=4)) as here:
        await here.session.send("go")
        await trio.sleep(1)
        receipts = [await here.session.pause() for _ in range(10)]
        assert [receipt.duplicate for receipt in receipts] == [False] * 4 + [True] * 6
        assert not (await here.session.resume()).duplicate


# ------------------------------------------------------------------ stop
async def test_a_stop_with_two_calls_running_settles_all_and_asks_nobody() -> None:
    """No request follows until somebody speaks; then all is told once, behind `[run stopped]`."""
    turn = calls(call("work", seconds=60), call("background", seconds=60))
    async with scene(turn, say("ok"), say("again")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.stop_run()
        await trio.sleep(1_000)
        assert (here.asked, here.status(), sorted(here.diary.cancelled)) == (1, "idle", ["call_1", "call_2"])
        assert await here.session.ask("what happened?") == "ok"
        assert here.results(1) == ["cancelled: the run was stopped"] * 2
        assert here.words(1).startswith("[run stopped]\n\n[mail m-")
        assert here.words(1).endswith("what happened?")
        await here.session.ask("more")
        assert "[run stopped]" not in here.words(2)


async def test_a_stop_tells_the_outcome_of_what_had_detached_by_mail() -> None:
    """Its placeholder promised that."""
    async with scene(call("background", seconds=60), call("work", seconds=60), say("ok")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.stop_run()
        await here.session.ask("what happened?")
        assert here.outcomes(2) == ["cancelled"]
        assert here.words(2).count("call call_1 (background) cancelled") == 1
        assert "call call_2" not in here.words(2)


async def test_a_stop_during_a_completion_cancels_it_and_nothing_of_it_is_kept() -> None:
    """The unanswered words are amended: two user items never stand in a row."""
    async with scene(slow(60, say("never")), say("ok")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.stop_run()
        await here.idle()
        assert trio.current_time() < 2
        assert here.kinds()[-3:] == ["usage", "status", "run_stopped"]
        assert "interrupted" in here.kinds()
        assert await here.session.ask("hello?") == "ok"
        [item] = here.request(1).transcript
        assert isinstance(item, UserItem)
        assert item.text.count("[run stopped]") == 1


async def test_a_stop_leaves_what_was_unread_to_the_next_run() -> None:
    """It wakes nothing, and is read with what does."""
    async with scene(call("work", seconds=60), say("ok")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.send("by the way")
        await here.session.stop_run()
        await trio.sleep(100)
        assert here.asked == 1
        await here.session.ask("hello?")
        assert "by the way" in here.words(1)


async def test_a_stop_before_the_run_begins_keeps_it_from_beginning() -> None:
    """The message was accepted, the stop came with it."""
    async with scene(say("ok")) as here:
        here.session.send_nowait("go")
        here.session._session().order(current.get(), StopRun())
        await here.idle()
        assert (here.asked, here.events("run_started")) == (0, [])
        assert await here.session.ask("now") == "ok"
        assert "go" in here.words(0)


async def test_a_stop_means_the_run_it_was_given_in_and_no_later_one() -> None:
    """A replay ends nothing else: its run is stamped when it is accepted."""
    async with scene(say("one"), slow(5, say("two"))) as here:
        await here.session.ask("go")
        await here.idle()
        stamped = await here.session.stop_run()
        assert here.events("mail_accepted")[-1].envelope.body.action == StopRun(run=2)
        assert stamped.seq == here.events("mail_accepted")[-1].envelope.seq
        await here.settled()
        assert await here.session.ask("more") == "two"


async def test_a_stop_ends_a_pause_of_its_run() -> None:
    """The session answers the next message."""
    async with scene(call("work", seconds=60), say("ok")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.pause()
        await here.settled()
        await here.session.stop_run()
        await here.settled()
        assert here.status() == "idle"
        assert await here.session.ask("hello?") == "ok"


async def test_a_stop_takes_a_resume_back() -> None:
    """[Resume, Stop] of a failed session: the round is not tried again."""
    async with scene(fail(ModelError(reason="bad key")), say("ok")) as here:
        await here.session.send("go")
        await here.idle()
        for order in (Resume(), StopRun()):
            here.session._session().order(current.get(), order)
        await here.idle()
        assert here.asked == 1
        assert await here.session.ask("again") == "ok"


async def test_words_before_a_stop_do_not_wake_a_failed_session_either() -> None:
    """All mail older than the stop wakes nothing."""
    async with scene(fail(ModelError(reason="bad key")), say("ok")) as here:
        await here.session.send("go")
        await here.idle()
        here.session.send_nowait("more")
        here.session._session().order(current.get(), StopRun())
        await here.idle()
        assert here.asked == 1


# ------------------------------------------------------------------ cancel
async def test_one_call_is_cancelled_and_the_others_go_on() -> None:
    """By its id."""
    async with scene(calls(call("work", seconds=9), call("work", seconds=9)), say("ok")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.cancel_calls("call_2", "call_9")
        assert await here.session.wait_answer() == "ok"
        assert here.results(1) == ["worked", "cancelled: cancelled by request"]


async def test_cancelling_the_attached_leaves_the_detached_alone() -> None:
    """They were let go of long ago."""
    async with scene(call("background", seconds=9), call("work", seconds=60), say("ok"), say("seen")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.cancel_attached()
        await here.idle()
        assert (here.diary.ended, here.diary.cancelled) == (["call_1"], ["call_2"])


async def test_cancelling_the_attached_means_those_of_that_moment() -> None:
    """A call that the model asks for later is not meant."""
    async with scene(slow(5, call("work", seconds=9)), say("ok")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.cancel_attached()
        assert await here.session.wait_answer() == "ok"
        assert here.results(1) == ["worked"]


async def test_a_wait_that_is_cancelled_is_over() -> None:
    """System tools are calls too."""
    async with scene(calls(call("work", seconds=60), call("wait")), say("ok")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.cancel_attached()
        assert await here.session.wait_answer() == "ok"
        assert here.outcomes(1) == ["cancelled", "cancelled"]


# ------------------------------------------------------------------ the end of a session
async def test_a_session_that_is_stopped_settles_its_calls_and_takes_no_more_mail() -> None:
    """Its run ends, its calls end, its address says that it ended."""
    async with scene(call("background", seconds=60), call("work", seconds=60)) as here:
        await here.session.send("go")
        await trio.sleep(1)
        state = here.session._session().state
        await here.session.stop()
        assert (state.status.value, dict(state.live)) == ("stopped", {})
        assert [event.outcome.error for event in here.events("tool_finished")] == ["its session was stopped"] * 2
        assert here.kinds()[-1] == "run_stopped"
        with pytest.raises(RecipientStopped):
            await here.session.send("hello?")
        with pytest.raises(RecipientStopped):
            await here.system.open(Worker, session="s", model=here.model)


async def test_a_stop_of_the_system_ends_calls_and_leaves_the_run_to_the_next_start() -> None:
    """The transcript is taken up where it was left: the calls were cancelled, the model is told."""
    store = SlowStore(0)
    async with scene(call("background", seconds=60), call("work", seconds=60), store=store) as here:
        await here.session.send("go")
        await trio.sleep(1)
    assert [event.outcome.error for event in here.events("tool_finished")] == ["shutdown"] * 2
    async with scene(say("ok"), store=store) as here:
        assert await here.session.wait_answer() == "ok"
        assert here.results(0) == ["cancelled: shutdown"]
        assert "call call_1 (background) cancelled" in here.words(0)
        assert here.request(0).instructions == "You work."


async def test_a_life_that_is_over_gives_no_orders() -> None:
    """Fenced, as everything else it does."""
    async with scene(say("ok")) as here:
        await here.session.ask("go")
        life = here.session._session().life
        await here.session.stop()
        token = current.set(life)
        try:
            with pytest.raises((Fenced, RecipientStopped)):
                await here.session.pause()
        finally:
            current.reset(token)


# ------------------------------------------------------------------ a store that takes its time
async def test_an_order_that_comes_while_a_commit_is_under_way_is_applied() -> None:
    """A fold moves the cursor of control over what lies before it: nothing may lie there unapplied."""
    async with scene(slow(60, say("never")), say("ok"), store=SlowStore(1)) as here:
        await here.session.send("go")
        await trio.sleep(0.5)
        await here.session.stop_run()
        await trio.sleep(10)
        assert (here.status(), here.asked) == ("idle", 0)
        assert await here.session.ask("hello?") == "never"


async def test_a_call_that_ends_while_a_stop_is_being_committed_ends_once() -> None:
    """Whoever comes second finds the outcome there."""
    async with scene(call("work", seconds=5), say("ok"), store=SlowStore(1)) as here:
        await here.session.send("go")
        await trio.sleep(2 + 5 + 0.5)  # two commits, the work, and half of the commit that ends it
        await here.session.stop_run()
        await here.idle()
        await trio.sleep(10)
        assert len(here.events("tool_finished")) == 1
        assert [event.reason for event in here.events("run_stopped")] == ["stopped"]
        with pytest.raises(RunFailed):
            await here.session.wait_answer()
