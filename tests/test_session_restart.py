"""A session is the supervisor of its loop: what a crash of the loop ends, and what it does not."""

import logging
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
import trio
from scenes import Worker, scene, virtual_time

from actors import Agent, Exit, ModelError, RunFailed, Status, Stopped
from actors.events import Restarted
from actors.models import Request, Scripted, ScriptedModel, call, fail, say
from supervision import open_system

pytestmark = virtual_time


def outage(times: list[float] | None = None) -> Callable[[Request], Any]:
    """A provider that is down; notes when it was asked."""

    def answer(_request: Request) -> Any:
        if times is not None:
            times.append(trio.current_time())
        return fail(ModelError(model="cloud", status=503, reason="overloaded", retryable=True))

    return answer


def crash() -> Scripted:
    """A bug on the way to the model."""
    return fail(RuntimeError("lost the thread"))


# ------------------------------------------------------------------ what a crash leaves
async def test_a_crash_of_the_loop_leaves_calls_running() -> None:
    """Their work is not lost: it goes on, and its result arrives once."""
    async with scene(call("background", seconds=50), crash(), say("I wait"), say("it has worked")) as here:
        await here.session.ask("go")
        await here.idle()
        assert (here.diary.began, here.diary.cancelled) == (here.diary.ended, [])
        assert here.asked == 4
        assert here.words(3).count("worked") == 1
        assert [event.outcome.text for event in here.events("tool_finished")] == ["worked"]


async def test_attached_calls_outlive_a_crash_too() -> None:
    """An interrupt detached them; the request it brought crashed; the calls know nothing of it."""
    async with scene(call("work", seconds=50), crash(), say("what now?"), say("it has worked")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.interrupt("listen")
        await here.idle()
        assert here.diary.cancelled == []
        assert here.words(3).count("worked") == 1


async def test_a_stop_between_two_lives_of_the_loop_ends_the_calls_too() -> None:
    """Nothing of a session runs on when it has ended; a Ctrl-C out of its loop ends it likewise."""
    goodbyes: list[Exit] = []

    class Polite(Worker):
        async def on_stop(self, exit: Exit) -> None:
            goodbyes.append(exit)

    async with scene(call("background", seconds=500), crash(), agent=Polite) as here:
        await here.session.send("go")
        await here.settled()
        await here.session.stop()
        assert (here.diary.cancelled, trio.current_time(), list(here.system.tree())) == (["call_1"], 0, [])
    assert goodbyes == [Stopped("stop")]
    with pytest.raises(KeyboardInterrupt):
        async with scene(call("background", seconds=500), fail(KeyboardInterrupt())) as here:  # type: ignore[arg-type]
            await here.session.send("go")
            await trio.sleep(9)
    assert (here.diary.cancelled, trio.current_time()) == (["call_1"], 0)


async def test_mail_that_came_during_the_restart_is_read_once() -> None:
    """The mailbox outlives the loop: the next life finds what the last one did not read."""
    async with scene(crash(), say("both heard")) as here:
        await here.session.send("first")
        await trio.sleep(0.05)
        await here.session.send("second")
        assert await here.session.wait_answer() == "both heard"
        assert [here.words(1).count(word) for word in ("first", "second")] == [1, 1]
        assert here.unread() == []


async def test_the_agent_is_the_same_one_after_a_crash() -> None:
    """What it keeps in its attributes is there: one instance an activation."""
    started: list[Agent] = []

    class Mindful(Worker):
        async def on_start(self) -> None:
            started.append(self)

    async with scene(crash(), crash(), say("still me"), agent=Mindful) as here:
        assert await here.session.ask("who?") == "still me"
        assert here.system.tree().nodes[0].generation == 3
    assert len(started) == 1


async def test_whoever_asked_gets_the_answer_of_the_life_that_gives_it() -> None:
    """A restart is no end: a person who waits is not told of it."""
    async with scene(outage(), outage(), say("here I am")) as here:
        assert await here.session.ask("hello?") == "here I am"
        assert here.events("exit", "status")[-1].status is Status.IDLE


# ------------------------------------------------------------------ an outage
async def test_an_outage_is_retried_later_and_later_then_the_session_has_failed() -> None:
    """Five restarts, a tenth of a second and then twice as long each time; the reason can be read."""
    times: list[float] = []
    async with scene(*[outage(times)] * 6) as here:
        with pytest.raises(RunFailed, match=r"cloud gave no answer \(HTTP 503\): overloaded"):
            await here.session.ask("hello?")
        assert here.session.status is Status.FAILED
    waited = [after - before for before, after in pairwise(times)]
    assert waited == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6], rel=0.11)


async def test_each_restart_is_an_event_and_giving_up_is_none() -> None:
    """Five attempts of five, then silence; a person's next words start a count of their own."""
    async with scene(*[outage()] * 7, say("back again")) as here:
        for words in ("hello?", "and now?"):
            with suppress(RunFailed):
                await here.session.ask(words)
        assert [event.attempt for event in here.seen if isinstance(event, Restarted)] == [1, 2, 3, 4, 5, 1]
        assert here.system.statistics().restarts == 6


async def test_a_failed_session_answers_the_next_message() -> None:
    """Failed is a status, not an end: the outage is over, and the person tries again."""
    async with scene(*[outage()] * 6, say("back again")) as here:
        with pytest.raises(RunFailed):
            await here.session.ask("hello?")
        assert await here.session.ask("and now?") == "back again"
        assert [here.words(6).count(words) for words in ("hello?", "and now?")] == [1, 1]


async def test_an_answer_between_failures_starts_the_count_afresh() -> None:
    """Only failures in a row count: a provider that is slow to recover is not given up."""
    one_round: list[Scripted] = [*[outage()] * 4, call("work")]
    async with scene(*one_round * 4, say("done")) as here:
        assert await here.session.ask("go") == "done"


@pytest.mark.parametrize("first", [0, 1])
async def test_an_outage_of_one_of_two_models_is_retried_though_the_other_refuses(first: int) -> None:
    """A fallback without a key must not make an outage of a moment the end of a run."""
    refuses = fail(ModelError(model="b", status=401, reason="no key"))
    models = [ScriptedModel([outage(), say("back")]), ScriptedModel([refuses, refuses])]
    async with scene(model=[models[first], models[1 - first]]) as here:
        assert await here.session.ask("go") == "back"


async def test_a_refusal_is_not_retried() -> None:
    """What no retry can cure ends the run at once, without a restart."""
    refusal = fail(ModelError(model="cloud", status=400, reason="too long"))
    async with scene(refusal) as here:
        with pytest.raises(RunFailed, match="too long"):
            await here.session.ask("hello?")
        assert trio.current_time() == 0
        assert here.system.statistics().crashes == 0


async def test_an_outage_fails_one_session_after_another_never_the_system() -> None:
    """Ten agents on one provider that is down: each is failed, each says why, everything else goes on."""
    model = ScriptedModel([outage()] * 60)
    async with open_system() as system:
        sessions = [await system.open(Worker, model=model) for _ in range(10)]
        for session in sessions:
            await session.send("hello?")
        await system.wait_idle()
        records = [await session.record() for session in sessions]
        assert {record.status for record in records} == {Status.FAILED}
        assert {session.status for session in sessions} == {Status.FAILED}
        assert system.statistics().crashes == 60
        await system.open(Worker, session="new", model=ScriptedModel([say("fine")]))
        assert await system.session("new").ask("and you?") == "fine"


async def test_each_crash_is_logged_once_with_what_follows(caplog: pytest.LogCaptureFixture) -> None:
    """Path, attempt, next step: what a person on call needs, and no line twice."""
    async with scene(*[outage()] * 6) as here:
        with pytest.raises(RunFailed):
            await here.session.ask("hello?")
    told: list[Any] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [(record.address, record.attempt) for record in told] == [("s", number) for number in range(1, 7)]
    assert [record.follows.partition(" in ")[0] for record in told] == [
        *(f"restart {number} of at most 5" for number in range(1, 6)),
        "no more than 5 restarts: it has failed",
    ]
