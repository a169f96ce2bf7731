"""R4: a completion in progress, and an interrupt that cancels it."""

import trio
from scenes import Worker, scene, virtual_time

from actors import Limits, StopRun, UserItem
from actors._identity import current
from actors.models import call, calls, say, slow

pytestmark = virtual_time


class Reachable(Worker):
    """You can be interrupted while you think."""

    interrupt_completions = True


async def test_an_interrupt_cancels_the_completion_and_both_texts_stand_in_one_turn() -> None:
    """The model is asked twice and answers once; nobody waits for words that are wrong already."""
    async with scene(slow(60, say("prod is fine")), say("staging is not"), agent=Reachable) as here:
        await here.session.send("check prod")
        await trio.sleep(3)
        await here.session.interrupt("staging!")
        await here.idle()
        assert (trio.current_time(), here.asked) == (3, 2)
        assert here.words(0) == "check prod"
        [only] = here.request(1).transcript
        assert isinstance(only, UserItem)
        assert [envelope.body.text for envelope in only.mail] == ["check prod", "staging!"]
        assert len((await here.record()).items) == 2
        assert await here.session.wait_answer() == "staging is not"


async def test_what_was_shown_of_it_is_retracted() -> None:
    """A reader of events drops the deltas, and hears that the request was paid for."""
    async with scene(slow(60, say("no")), say("yes"), agent=Reachable) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.interrupt("stop")
        await here.idle()
        assert here.kinds("mail_accepted", "status", "text_delta") == [
            "run_started", "mail_delivered", "turn_started", "interrupted", "usage", "mail_delivered", "turn_started", "usage", "answer", "run_stopped",
        ]  # fmt: skip
        assert [event.usage.estimated for event in here.events("usage")] == [True, False]
        assert [event.turn for event in here.events("interrupted", "answer")] == [1, 2]


async def test_older_normal_mail_is_taken_along_and_nothing_is_skipped() -> None:
    """An interrupt overtakes nobody: the cursor moves over a prefix."""
    async with scene(slow(60, say("no")), say("yes"), agent=Reachable) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.send("by the way")
        await trio.sleep(3)
        assert here.asked == 1
        await here.session.interrupt("stop")
        await here.idle()
        [item] = here.request(1).transcript
        assert isinstance(item, UserItem)
        assert [envelope.body.text for envelope in item.mail] == ["go", "by the way", "stop"]
        assert here.unread() == []


async def test_one_interrupt_behind_three_hundred_cancels_once() -> None:
    """All up to it is folded; the next completion is left alone."""
    async with scene(slow(60, say("no")), slow(60, say("yes")), agent=Reachable, limits=Limits(max_unread=512)) as here:
        await here.session.send("go")
        await trio.sleep(3)
        for number in range(299):
            await here.session.send(f"{number} {'x' * 500}")
        await here.session.interrupt("now")
        await here.idle()
        assert (here.asked, trio.current_time(), here.unread()) == (2, 63, [])


async def test_an_interrupt_after_results_stands_behind_them() -> None:
    """The results were committed; what the model was saying of them was not."""
    async with scene(calls(call("work"), call("work")), slow(60, say("no")), say("yes"), agent=Reachable) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.interrupt("stop")
        await here.idle()
        assert [type(item).__name__ for item in here.request(2).transcript] == [
            "UserItem",
            "AssistantItem",
            "ResultsItem",
            "UserItem",
        ]
        assert here.results(2) == ["worked", "worked"]


async def test_each_interrupt_cancels_once_more() -> None:
    """A person may change their mind as often as they like."""
    script = [slow(60, say("no"))] * 4
    async with scene(*script, say("yes"), agent=Reachable, max_rounds=2) as here:
        await here.session.send("go")
        for number in range(4):
            await trio.sleep(1)
            await here.session.interrupt(str(number))
        await here.idle()
        assert here.words(4).count("[mail ") == 5
        assert here.events("continuing") == []


async def test_an_interrupt_that_came_before_the_request_is_in_it() -> None:
    """It was read; it cancels nothing."""
    async with scene(call("work", seconds=5), slow(9, say("ok")), say("seen"), agent=Reachable) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.interrupt("stop")
        await trio.sleep(1)
        assert here.asked == 2
        assert here.events("interrupted") == []
        await here.idle()


async def test_a_stop_in_mid_completion_comes_before_an_interrupt() -> None:
    """Control first: nothing is asked any more."""
    async with scene(slow(60, say("no")), say("yes"), agent=Reachable) as here:
        await here.session.send("go")
        await trio.sleep(3)
        here.session.send_nowait("wait", interrupt=True)
        here.session._session().order(current.get(), StopRun())  # in the same step
        await here.idle()
        assert (here.asked, here.status()) == (1, "idle")
        await here.session.ask("go on")
        assert here.words(1).count("[run stopped]") == 1
