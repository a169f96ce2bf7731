"""Following a session: the events of one run, or all of them; every stream ends."""

import pytest
import trio
from scenes import Worker, scene, virtual_time

from actors import ModelError, RunFailed, Status, UnknownRecipient
from actors.events import AnyEvent, ToolProgress
from actors.models import call, fail, say, slow
from supervision import Events
from supervision._hub import RING

pytestmark = virtual_time


async def all_of(stream: Events) -> list[AnyEvent]:
    """A stream's events, to its end."""
    return [event async for event in stream]


async def test_a_stream_shows_the_run_that_reads_its_message_and_ends_with_it() -> None:
    """From the acceptance to the last event; then the answer is there."""
    async with scene(call("work"), say("done"), say("later")) as here:
        async with here.session.stream("go") as stream:
            events = await all_of(stream)
        assert (events[0].kind, events[-1].kind) == ("mail_accepted", "run_stopped")
        assert stream.answer == "done"
        await here.session.ask("more")
        assert {event.run for event in events} == {0, 1}


async def test_a_stream_of_a_message_to_a_busy_session_ends_with_the_run_in_progress() -> None:
    """That run reads it."""
    async with scene(slow(5, say("first")), say("second")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        async with here.session.stream("more") as stream:
            await all_of(stream)
        assert stream.answer == "second"


async def test_a_stream_goes_on_to_the_run_that_reads_its_message() -> None:
    """The run in progress may end without reading it: its rounds are used up."""
    async with scene(call("work"), slow(5, say("so far")), say("second"), max_rounds=1) as here:
        await here.session.send("go")
        await trio.sleep(1)
        async with here.session.stream("more") as stream:
            events = await all_of(stream)
        assert [event.run for event in events if event.kind == "run_stopped"] == [1, 2]
        assert stream.answer == "second"


async def test_the_answer_of_a_run_in_progress_is_not_there_yet() -> None:
    """The error says so instead of waiting."""
    async with scene(slow(5, say("done"))) as here, here.session.stream("go") as stream:
        with pytest.raises(RunFailed, match="it has not answered yet"):
            _ = stream.answer


@pytest.mark.parametrize(
    ("end", "status", "reason"),
    [
        ("fail", Status.FAILED, "bad key"),
        ("stop_run", Status.IDLE, "the run ended: stopped"),
        ("stop", Status.STOPPED, "stopped"),
    ],
)
async def test_a_stream_of_a_run_without_answer_ends_and_says_why(end: str, status: Status, reason: str) -> None:
    """Also when the session itself is stopped."""
    script = [slow(5, fail(ModelError(reason="bad key")))]
    async with scene(*script) as here, trio.open_nursery() as nursery:
        async with here.session.stream("go") as stream:
            if end != "fail":
                nursery.start_soon(getattr(here.session, end))
            await all_of(stream)
        with pytest.raises(RunFailed, match=reason) as told:
            _ = stream.answer
        assert told.value.status is status


async def test_a_stream_whose_message_nobody_reads_ends_with_the_session() -> None:
    """The session was paused, then stopped."""
    async with scene() as here, trio.open_nursery() as nursery:
        await here.session.pause()
        async with here.session.stream("go") as stream:
            nursery.start_soon(here.session.stop)
            events = await all_of(stream)
        assert [event.kind for event in events] == ["mail_accepted", "status", "status"]
        with pytest.raises(RunFailed, match="the session ended"):
            _ = stream.answer


async def test_a_message_resent_under_its_id_is_followed_from_where_it_was_accepted() -> None:
    """A web page that is loaded again shows the run again."""
    async with scene(say("one"), say("two"), say("three")) as here:
        await here.session.ask("before")
        async with here.session.stream("go", id="web-1") as stream:
            first = await all_of(stream)
        await here.session.ask("after")
        async with here.session.stream("go", id="web-1") as again:
            assert await all_of(again) == first
        assert again.answer == "two"
        assert here.asked == 3


async def test_a_message_resent_while_its_run_goes_on_is_followed_to_its_end() -> None:
    """What is past and what is to come, in one stream."""
    async with scene(slow(5, say("done"))) as here:
        await here.session.send("go", id="web-1")
        await trio.sleep(1)
        async with here.session.stream("go", id="web-1") as stream:
            assert (await all_of(stream))[0].kind == "mail_accepted"
        assert (stream.answer, here.asked) == ("done", 1)


async def test_a_message_resent_after_its_events_are_gone_ends_at_once() -> None:
    """Nobody waits for what has been."""
    async with scene(say("done")) as here:
        await here.session.send("go", id="web-1")
        await here.idle()
        for number in range(RING):
            here.session._session().emit(ToolProgress, payload=number)
        async with here.session.stream("go", id="web-1") as stream:
            assert await all_of(stream) == []
        with pytest.raises(RunFailed, match="its message was read long ago"):
            _ = stream.answer


@pytest.mark.parametrize("over", [True, False])
async def test_a_reader_that_fell_behind_gets_a_gap_and_still_the_end(*, over: bool) -> None:
    """It misses events, never the end of its run."""
    async with scene(slow(5, say("done"))) as here:
        async with here.session.stream("go") as stream:
            await trio.sleep(9 if over else 1)
            for number in range(RING + 9):
                here.session._session().emit(ToolProgress, payload=number)
            kinds = [event.kind for event in await all_of(stream)]
        assert kinds[0] == "gap"
        assert (kinds[-1] == "run_stopped") is not over
        assert stream.answer == "done"


async def test_a_stream_that_is_left_early_leaves_the_run_alone() -> None:
    """The reader goes, the agent works on."""
    async with scene(slow(5, say("done"))) as here:
        async with here.session.stream("go") as stream:
            async for _ in stream:
                break
        assert await here.session.wait_answer() == "done"
        assert here.system._root.hub._readers == []


# ------------------------------------------------------------------ all events of a session
async def test_the_events_of_a_session_end_with_it() -> None:
    """Its exit is the last."""
    async with scene(say("done")) as here:
        await here.session.ask("go")
        async with here.session.events(since=0) as stream:
            await here.session.stop()
            kinds = [event.kind for event in await all_of(stream)]
        assert kinds[:3] == ["mail_accepted", "status", "run_started"]
        assert kinds[-1] == "exit"


async def test_the_events_of_a_session_are_its_own() -> None:
    """And those from now on, unless a place to begin is given."""
    async with scene(say("one"), say("two"), say("three")) as here:
        other = await here.system.open(Worker, session="t", model=here.model)
        await here.session.ask("before")
        async with here.session.events() as stream:
            await other.ask("go")
            await here.session.ask("now")
            await here.session.stop()
            events = await all_of(stream)
        assert {event.session for event in events[:-1]} == {"s"}
        assert [event.text for event in events if event.kind == "answer"] == ["three"]


@pytest.mark.parametrize("since", [None, 0])
async def test_the_events_of_a_session_that_has_ended_are_what_there_is_of_them(since: int | None) -> None:
    """Nobody waits for more."""
    async with scene(say("done")) as here:
        await here.session.ask("go")
        await here.session.stop()
        async with here.session.events(since) as stream:
            kinds = [event.kind for event in await all_of(stream)]
        assert kinds == [] if since is None else kinds[-1] == "exit"


async def test_the_events_of_a_session_that_never_was_are_an_error() -> None:
    """It names who is near."""
    async with scene() as here:
        with pytest.raises(UnknownRecipient):
            here.system.session("nobody").events()
