"""Interrupts: what they pre-empt, what they do not, and that nothing is lost by them."""

import json

import trio
from scenes import scene, virtual_time

from actors import Limits, UserItem
from actors.agent._fold import HEAD
from actors.models import call, calls, say, slow

pytestmark = virtual_time


async def test_an_interrupt_detaches_what_runs_and_is_read_in_the_same_turn() -> None:
    """The model is asked at once, and nothing that it started is lost."""
    turn = calls(call("work", seconds=60), call("work", seconds=60))
    async with scene(turn, say("stopped"), say("seen"), say("seen")) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.interrupt("wait, staging!")
        await trio.sleep(0.1)
        assert [json.loads(text)["detached"] for text in here.results(1)] == ["interrupted", "interrupted"]
        assert here.words(1) == "wait, staging!"
        await here.idle()
        assert sorted(here.diary.ended) == ["call_1", "call_2"]


async def test_a_queued_call_never_starts_after_an_interrupt() -> None:
    """It had not begun, so there is nothing to go on with."""
    turn = calls(call("work", seconds=60), call("work", seconds=60))
    async with scene(turn, say("ok"), say("seen"), limits=Limits(max_calls=1)) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.interrupt("stop")
        await here.idle()
        assert here.results(1)[1] == "not_started: an interrupt came first"
        assert here.diary.began == ["call_1"]


async def test_a_call_that_ended_keeps_its_outcome_when_an_interrupt_comes() -> None:
    """Only what still runs detaches."""
    turn = calls(call("work", seconds=1), call("work", seconds=60))
    async with scene(turn, say("ok"), say("seen")) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.interrupt("stop")
        await trio.sleep(0.1)
        assert here.results(1)[0] == "worked"
        assert json.loads(here.results(1)[1])["detached"] == "interrupted"


async def test_normal_mail_does_not_detach() -> None:
    """It is read when the calls are done."""
    async with scene(call("work", seconds=60), say("ok")) as here:
        await here.session.send("go")
        await trio.sleep(3)
        assert await here.session.ask("by the way") == "ok"
        assert trio.current_time() == 60
        assert here.results(1) == ["worked"]
        assert here.words(1) == "by the way"


async def test_one_interrupt_pre_empts_once() -> None:
    """It was read; the next calls are attached as ever."""
    async with scene(call("work", seconds=60), call("work", seconds=60), say("ok"), say("seen")) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.interrupt("faster!")
        await here.idle()
        assert here.results(2) == ["worked"]
        assert trio.current_time() == 63


async def test_an_interrupt_ends_a_wait_and_detaches_its_siblings() -> None:
    """A model that waits is the easiest to reach."""
    async with scene(calls(call("work", seconds=60), call("wait")), say("ok"), say("seen")) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.interrupt("stop")
        await trio.sleep(0.1)
        assert json.loads(here.results(1)[0])["detached"] == "interrupted"
        assert json.loads(here.results(1)[1])["woken_by"] == "interrupt"


async def test_an_interrupt_during_a_completion_is_read_in_the_next_round() -> None:
    """Completions are not interrupted: the model is asked once, and once more."""
    async with scene(slow(10, say("first")), say("second")) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.send("more", interrupt=True)
        await here.idle()
        assert here.asked == 2
        assert trio.current_time() == 10
        assert await here.session.wait_answer() == "second"


async def test_an_interrupt_that_came_during_a_completion_pre_empts_its_calls() -> None:
    """It is unread when the calls begin, so nobody is waited for."""
    async with scene(slow(10, call("work", seconds=60)), say("ok"), say("seen")) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.interrupt("stop")
        await trio.sleep(8)
        assert json.loads(here.results(1)[0])["detached"] == "interrupted"


async def test_an_interrupt_wakes_an_idle_session_as_any_words_do() -> None:
    """There is nothing to pre-empt."""
    async with scene(say("ok")) as here:
        await here.session.interrupt("hello")
        assert await here.session.wait_answer() == "ok"
        assert here.words(0) == "hello"


async def test_an_interrupt_behind_three_hundred_messages_takes_them_all_along() -> None:
    """One pre-emption, all of it folded: heads beyond the byte bound, nothing skipped, nothing asked twice."""
    async with scene(call("work", seconds=60), say("ok"), say("seen"), limits=Limits(max_unread=512)) as here:
        await here.session.send("go")
        await trio.sleep(3)
        for number in range(299):
            await here.session.send(f"{number} {'x' * 500}")
        await here.session.interrupt("now")
        await trio.sleep(1)
        item = here.request(1).transcript[-1]
        assert isinstance(item, UserItem)
        assert (len(item.mail), item.waiting, here.unread()) == (300, 0, [])
        assert [name for name, _ in item.cuts] == [each.id for each in item.mail[65:-1]]
        assert {shown for _, shown in item.cuts} == {HEAD}
        assert here.asked == 2


async def test_mail_behind_an_interrupt_is_folded_up_to_the_bound_and_the_rest_announced() -> None:
    """What lies behind the last interrupt is ordinary mail."""
    async with scene(call("work", seconds=60), say("ok"), *[say("seen")] * 3) as here:
        await here.session.send("go")
        await trio.sleep(3)
        here.session.send_nowait("now", interrupt=True)
        for number in range(100):
            here.session.send_nowait(str(number))
        await here.idle()
        first, second = (request.transcript[-1] for request in here.model.requests[1:3])
        assert isinstance(first, UserItem)
        assert isinstance(second, UserItem)
        assert (len(first.mail), first.waiting) == (64, 37)
        assert first.text.endswith("[37 more messages waiting]")
        assert len(second.mail) == 37
