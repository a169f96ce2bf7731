"""Tools written for asyncio, `isolation="asyncio"`: a real loop in a real thread, so real time."""

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest
import trio
from attrs import define, field
from scenes import Diary, Worker, scene

from actors import ToolContext, tool
from actors._errors import ToolError
from actors.models import call, calls, say
from actors.models._blocks import ToolCall
from actors.tools import _loop
from actors.tools._call import execute
from actors.tools._loop import CancelledWithinError
from actors.tools._tool import Tool
from supervision import SessionRef

VARIABLE = contextvars.ContextVar("variable", default="unset")


def context(notes: list[Any] | None = None) -> ToolContext:
    return ToolContext("call_1", "t", "s", "ann", "key", [].append if notes is None else notes.append)


async def run(fn: Callable[..., Any], /, notes: list[Any] | None = None, **arguments: Any) -> Any:
    with trio.fail_after(20):
        return await Tool(fn, name="t", isolation="asyncio").call(None, arguments, context(notes))


async def where() -> list[Any]:
    """Say where it runs."""
    await asyncio.sleep(0)
    return [id(asyncio.get_running_loop()), threading.current_thread().name]


async def forever() -> None:
    """Wait."""
    await asyncio.Event().wait()


@define
class Seen(Diary):
    """What a tool on the loop met."""

    met: list[str] = field(factory=list)
    begun: threading.Event = field(factory=threading.Event)

    async def wait(self) -> None:
        """Wait until cancelled, and clean up for a while."""
        self.begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.met.append("cancelled")
            await asyncio.sleep(0.05)
            self.met.append("cleaned up")
            raise


class Modern(Worker):
    """You use asyncio."""

    deps: Seen

    @tool(isolation="asyncio")
    async def dwell(self) -> None:
        """Wait."""
        await self.deps.wait()

    @tool(isolation="asyncio")
    async def write(self, context: ToolContext) -> str:
        """Write to one's own session."""
        for share in range(3):
            context.progress(share)
        session: SessionRef = self.ref  # type: ignore[assignment]
        receipt = await asyncio.to_thread(session.send_from_thread, "from the loop")
        return f"seq {receipt.seq}"

    @tool(isolation="asyncio", timeout=0.1)
    async def slow(self) -> None:
        """Take too long."""
        await self.deps.wait()


# ------------------------------------------------------------------ a call
async def test_all_calls_of_a_run_share_one_loop_in_one_thread() -> None:
    """A client session made in one call can be used in the next."""
    loop, thread = await run(where)
    assert await run(where) == [loop, thread]
    assert thread == "postroom asyncio"


def test_each_run_has_a_loop_of_its_own_and_leaves_no_thread() -> None:
    """Nothing is kept between runs, nor left behind by one."""
    assert trio.run(run, where) is not None
    assert "postroom asyncio" not in {each.name for each in threading.enumerate()}
    assert trio.run(run, where) is not None


async def test_libraries_see_asyncio_and_calls_run_beside_each_other() -> None:
    """What asks which loop it is on gets the right answer, although the caller is trio's."""
    met: list[int] = []

    async def meet() -> int:
        """Wait for the other."""
        with anyio.fail_after(10):
            met.append(len(met))
            while len(met) < 2:  # noqa: ASYNC110  # the two share no event that could be made before the loop
                await anyio.sleep(0.001)
        return len(met)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, meet)
        nursery.start_soon(run, meet)
    assert met == [0, 1]


async def test_context_variables_go_along() -> None:
    """Traces and request ids are there, in the loop's tasks too."""

    async def look() -> str:
        """Look."""
        return await asyncio.create_task(_variable())

    VARIABLE.set("set in trio")
    assert await run(look) == "set in trio"


async def _variable() -> str:
    return VARIABLE.get()


async def test_items_of_a_generator_on_the_loop_are_progress() -> None:
    """As without the isolation."""

    async def climb(to: int) -> AsyncIterator[int]:
        """Climb."""
        for step in range(to):
            await asyncio.sleep(0.001)
            yield step

    notes: list[Any] = []
    assert await run(climb, notes, to=3) == 2
    assert notes == [0, 1, 2]


async def test_what_it_raises_comes_through() -> None:
    """A failed call, with the words of its own error."""

    async def fail(how: str) -> None:
        """Fail."""
        raise {"told": ToolError("ask Ann"), "time": TimeoutError("slow"), "value": ValueError("bad")}[how]

    for how, told in [("told", "ask Ann"), ("time", "TimeoutError: slow"), ("value", "ValueError: bad")]:
        asked = ToolCall("call_1", "fail", {"how": how})
        outcome = await execute(Tool(fail, isolation="asyncio"), None, asked, context())
        assert (outcome.status, outcome.error) == ("failed", told)


def test_an_exit_of_the_program_is_nobodys_to_keep() -> None:
    """As from any other tool."""

    async def leave() -> None:
        """Leave."""
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        trio.run(run, leave)


# ------------------------------------------------------------------ cancelled
async def test_a_cancel_reaches_the_task_and_waits_for_its_cleanup() -> None:
    """When the call is over, nothing of it runs."""
    seen = Seen()

    async def wait() -> None:
        """Wait."""
        await seen.wait()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, wait)
        await trio.to_thread.run_sync(seen.begun.wait)
        nursery.cancel_scope.cancel()
    assert seen.met == ["cancelled", "cleaned up"]


async def test_a_cancel_closes_the_generator() -> None:
    """Its `finally` runs, on the loop."""
    met: list[str] = []
    counting = threading.Event()

    async def count() -> AsyncIterator[int]:
        """Count without an end."""
        try:
            number = 0
            while True:
                yield number
                number += 1
                counting.set()
        finally:
            await asyncio.sleep(0.01)
            met.append(threading.current_thread().name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, count)
        await trio.to_thread.run_sync(counting.wait)
        nursery.cancel_scope.cancel()
    assert met == ["postroom asyncio"]


async def test_a_task_cancelled_on_the_loop_is_a_cancelled_call() -> None:
    """Cancellation goes both ways; the session is not harmed."""

    async def give_up() -> None:
        """Cancel itself."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(1)

    outcome = await execute(Tool(give_up, isolation="asyncio"), None, ToolCall("call_1", "t", {}), context())
    assert (outcome.status, outcome.error) == ("cancelled", "its asyncio task was cancelled from within")


async def test_a_cancel_that_is_swallowed_gives_the_result() -> None:
    """As of a task of trio's."""

    async def stubborn() -> str:
        """Swallow it."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "all the same"
        return "never"

    with trio.move_on_after(0.05):
        assert await run(stubborn) == "all the same"


async def test_a_stopped_loop_ends_its_calls_and_the_next_one_gets_a_new_loop() -> None:
    """One bad tool does not take the isolation from the others."""

    async def stop() -> None:
        """Stop the loop."""
        asyncio.get_running_loop().stop()
        await asyncio.sleep(60)

    before = await run(where)
    with pytest.raises(CancelledWithinError):
        await run(stop)
    assert await run(where) != before


def test_what_is_left_on_the_loop_ends_with_the_run() -> None:
    """Background tasks, generators that nobody closed, and the loop's own threads."""
    met: list[str] = []

    async def background() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            met.append("ended")

    tasks = []

    async def leave() -> None:
        """Leave a task behind."""
        tasks.append(asyncio.create_task(background()))
        await asyncio.to_thread(met.append, "in a thread")
        await asyncio.sleep(0)

    trio.run(run, leave)
    assert met == ["in a thread", "ended"]
    assert not [each for each in threading.enumerate() if each.name.startswith("asyncio")]


def test_a_loop_that_does_not_end_is_left_behind(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A run ends, whatever a library does on the loop; somebody hears of it."""
    monkeypatch.setattr(_loop, "GRACE", 0.05)
    go_on = threading.Event()

    async def block() -> None:
        """Block the loop a little later."""
        asyncio.get_running_loop().call_later(0, go_on.wait, 10)

    trio.run(run, block)
    go_on.set()
    assert "did not end within 0.05 s of the run" in caplog.text


# ------------------------------------------------------------------ in a session
async def test_a_call_on_the_loop_speaks_with_its_own_voice() -> None:
    """Its mail, its progress and its result are the call's, whichever thread they come from."""
    async with scene(call("write"), *[say("ok")] * 2, agent=Modern, deps=Seen()) as here:
        await here.session.ask("go")
        await here.idle()
        assert here.results(1) == ["seq 2"]
        assert "from call call_1 of s]\nfrom the loop" in here.words(1)
        assert [event.payload for event in here.events("tool_progress")][-1] == 2


async def test_a_cancelled_call_of_a_session_is_over_on_the_loop() -> None:
    """By request, or because its time is over; siblings in other worlds go on."""
    seen = Seen()
    async with scene(calls(call("dwell"), call("slow"), call("work")), say("ok"), agent=Modern, deps=seen) as here:
        await here.session.send("go")
        await trio.to_thread.run_sync(seen.begun.wait)
        await trio.sleep(0.3)
        await here.session.cancel_calls("call_1")
        assert await here.session.wait_answer() == "ok"
        await here.idle()
        assert here.results(1) == ["cancelled: cancelled by request", "timed_out: it was not done after 0.1 s", "worked"]
    assert seen.met == ["cancelled", "cleaned up"] * 2
