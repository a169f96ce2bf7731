"""What mail does at each receive point, and to a session of each status: a case for each cell of both tables.

point   when                                reads
R1      before a request                    all that is unread
R2      idle, or waiting for detached calls what may wake it
R3a     attached to calls                   interrupts, ends of calls
R3b     in `wait`                           any mail
R4      during a completion                 interrupts, if the agent says so
-       everywhere                          control, first
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from scenes import Scene, Worker, scene, virtual_time

from actors import FromActor, FromSession, Limits, ModelError, RecipientStopped, ToolCallFinished, UserItem, UserMessage
from actors.models import Said, call, calls, fail, say, slow

pytestmark = virtual_time
Do = Callable[[Scene], Awaitable[Any]]


# ------------------------------------------------------------------ what is sent
async def words(here: Scene) -> None:
    """A person's."""
    await here.session.send("words")


async def interrupt(here: Scene) -> None:
    """A person's, with priority."""
    await here.session.interrupt("words")


async def peer(here: Scene) -> None:
    """Another session's, which wakes nobody."""
    here.box.accept(UserMessage("words"), FromSession("stranger"))


async def actor(here: Scene) -> None:
    """A plain actor's."""
    here.box.accept(UserMessage("words"), FromActor("clock"))


async def timer(here: Scene) -> None:
    """The session's own."""
    await here.session.send_after(0, "words", label="t")


async def stop_run(here: Scene) -> None:
    """Control."""
    await here.session.stop_run()


async def pause(here: Scene) -> None:
    """Control."""
    await here.session.pause()


# ------------------------------------------------------------------ where it is sent to
class Reachable(Worker):
    """R4 is on."""

    interrupt_completions = True


WAITS = call("wait", **{"for": "any_call"}, timeout_seconds=100)
R2 = (say("ok"), say("next"), say("next"))
R2_WAITING = (call("background", seconds=60), say("ok"), say("next"), say("next"))
R3A = (call("work", seconds=60), say("next"), say("next"), say("next"))
R3B = (calls(call("work", seconds=60), WAITS), say("next"), say("next"), say("next"))
R4 = (slow(60, say("ok")), say("next"), say("next"))

READ = 5.1  # it is sent at 5
AT_THE_END = 60.1


async def when_told(here: Scene) -> float | None:
    """When the words that were sent are in a request, if they ever are; the session runs on for a while."""
    with trio.move_on_after(200):
        while True:
            for request in here.model.requests:
                if any(isinstance(item, UserItem) and "words" in item.text for item in request.transcript):
                    return trio.current_time()
            await trio.sleep(0.05)  # virtual
    return None


@pytest.mark.parametrize(
    ("script", "send", "agent", "at"),
    [
        # R1 folds all there is: what came during a completion is in the request behind it
        (R4, words, Worker, AT_THE_END),
        (R4, interrupt, Worker, AT_THE_END),
        (R4, peer, Worker, None),  # the completion answers, and a peer's mail wakes nobody
        (R4, actor, Worker, AT_THE_END),
        (R4, timer, Worker, AT_THE_END),
        # R2, idle
        (R2, words, Worker, READ),
        (R2, interrupt, Worker, READ),
        (R2, peer, Worker, None),
        (R2, actor, Worker, READ),
        (R2, timer, Worker, READ),
        # R2, waiting for a detached call
        (R2_WAITING, words, Worker, READ),
        (R2_WAITING, interrupt, Worker, READ),
        (R2_WAITING, peer, Worker, AT_THE_END),
        (R2_WAITING, actor, Worker, READ),
        (R2_WAITING, timer, Worker, READ),
        # R3a
        (R3A, words, Worker, AT_THE_END),
        (R3A, interrupt, Worker, READ),
        (R3A, peer, Worker, AT_THE_END),
        (R3A, actor, Worker, AT_THE_END),
        (R3A, timer, Worker, AT_THE_END),
        # R3b
        (R3B, words, Worker, READ),
        (R3B, interrupt, Worker, READ),
        (R3B, peer, Worker, READ),
        (R3B, actor, Worker, READ),
        (R3B, timer, Worker, READ),
        # R4
        (R4, words, Reachable, AT_THE_END),
        (R4, interrupt, Reachable, READ),
        (R4, peer, Reachable, None),
        (R4, actor, Reachable, AT_THE_END),
        (R4, timer, Reachable, AT_THE_END),
    ],
)
async def test_when_mail_is_read(script: tuple[Said, ...], send: Do, agent: type[Worker], at: float | None) -> None:
    """At once, behind what is going on, or with whatever wakes the session next."""
    async with scene(*script, agent=agent) as here:
        await here.session.send("go")
        await trio.sleep(5)
        await send(here)
        read = await when_told(here)
        assert (read is None) == (at is None)
        assert read is None or at is None or at - 1 < read < at + 1
        await here.session.stop()


@pytest.mark.parametrize("script", [R2, R2_WAITING, R3A, R3B, R4])
@pytest.mark.parametrize("order", [stop_run, pause])
async def test_control_is_applied_at_every_point(script: tuple[Said, ...], order: Do) -> None:
    """First, and at once; a completion goes on in a pause, and nothing follows it."""
    async with scene(*script) as here:
        await here.session.send("go")
        await trio.sleep(5)
        asked = here.asked
        await order(here)
        await trio.sleep(1)
        assert here.status() == ("idle" if order is stop_run else "running" if script is R4 else "paused")
        await trio.sleep(100)
        assert (here.asked, here.status()) == (asked, "idle" if order is stop_run else "paused")
        await here.session.stop()


@pytest.mark.parametrize(("script", "told"), [(R3A, 1), (R3B, 1), (R2_WAITING, 2)])
async def test_the_end_of_a_call_is_read_where_it_is_waited_for(script: tuple[Said, ...], told: int) -> None:
    """As a result where the session is attached to it, as mail where not."""
    async with scene(*script) as here:
        await here.session.send("go")
        await here.idle()
        assert 60 <= trio.current_time() < 61
        mailed = [each for item in here.request(told).transcript if isinstance(item, UserItem) for each in item.mail]
        ends = [each for each in mailed if isinstance(each.body, ToolCallFinished)]
        assert len(ends) == (script is R2_WAITING)


# ------------------------------------------------------------------ status
async def ready(_here: Scene) -> None:
    """It never ran."""


async def running(here: Scene) -> None:
    """It is attached to a call."""
    await here.session.send("work")
    await trio.sleep(1)


async def idle(here: Scene) -> None:
    """It has answered."""
    await here.session.send("answer")
    await trio.sleep(1)


async def waiting(here: Scene) -> None:
    """It has answered, and a detached call runs."""
    await here.session.send("background")
    await trio.sleep(1)


async def paused(here: Scene) -> None:
    """By a person."""
    await here.session.pause()
    await trio.sleep(1)


async def failed(here: Scene) -> None:
    """A provider refused."""
    await here.session.send("fail")
    await trio.sleep(1)


async def stopped(here: Scene) -> None:
    """For good."""
    await here.session.stop()


BEGINNINGS: dict[Do, tuple[Said, ...]] = {
    ready: (), running: (call("work", seconds=60),), idle: (say("ok"),), waiting: (call("background", seconds=60), say("ok")),
    paused: (), failed: (fail(ModelError(status=401, reason="no")),), stopped: (),
}  # fmt: skip


async def resume(here: Scene) -> None:
    """Control."""
    await here.session.resume()


@pytest.mark.parametrize(
    ("begin", "send", "asks"),
    [
        (ready, words, True), (ready, actor, True), (ready, peer, False), (ready, resume, False),
        (idle, words, True), (idle, actor, True), (idle, peer, False), (idle, resume, False),
        (waiting, words, True), (waiting, actor, True), (waiting, peer, False), (waiting, resume, False),
        (running, words, False), (running, peer, False), (running, interrupt, True), (running, resume, False),
        (paused, words, False), (paused, interrupt, False), (paused, actor, False), (paused, peer, False),
        (failed, words, True), (failed, interrupt, True), (failed, actor, False), (failed, peer, False), (failed, resume, True),
    ],
)  # fmt: skip
async def test_what_mail_wakes_a_session_of_each_status(begin: Do, send: Do, asks: bool) -> None:
    """All of it is accepted; only what the table says makes a request, now."""
    async with scene(*BEGINNINGS[begin], *[say("next")] * 5) as here:
        await begin(here)
        assert here.status() == begin.__name__
        before = here.asked
        await send(here)
        await trio.sleep(1)
        assert (here.asked > before) == asks
        await here.session.stop()


async def test_a_resume_ends_a_pause_with_what_was_said_in_it() -> None:
    """The only thing that does."""
    async with scene(say("next")) as here:
        await paused(here)
        await here.session.send("words")
        await here.session.resume()
        await here.idle()
        assert here.words(0) == "words"


@pytest.mark.parametrize("send", [words, interrupt])
async def test_a_stopped_session_refuses_mail(send: Do) -> None:
    """Whoever writes hears how it ended."""
    async with scene() as here:
        await stopped(here)
        with pytest.raises(RecipientStopped):
            await send(here)


@pytest.mark.parametrize("kind", ["user", "tool", "peer"])
async def test_what_wakes_is_a_limit(kind: Any) -> None:
    """`wake_on` says which kinds do."""
    sends = {"user": words, "tool": actor, "peer": peer}
    for other, send in sends.items():
        async with scene(say("next"), limits=Limits(wake_on=(kind,))) as here:
            await send(here)
            await trio.sleep(1)
            assert (here.asked == 1) == (other == kind)
