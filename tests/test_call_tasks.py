"""Calls as tasks and threads: whose voice they speak with, and what is left of them after their end."""

import threading
from typing import Any, cast

import pytest
import trio
from attrs import define, field
from scenes import Diary, Worker, real_time, scene, virtual_time

from actors import Fenced, FromToolCall, ToolContext, tool
from actors.models import call, calls, say, slow
from supervision import SessionRef

pytestmark = virtual_time


@define
class Means(Diary):
    """What the tools of these tests need, and what they met."""

    nursery: Any = None
    loop: Any = field(factory=trio.lowlevel.current_trio_token)
    met: list[object] = field(factory=list)
    begun: trio.Event = field(factory=trio.Event)
    done: trio.Event = field(factory=trio.Event)
    go_on: threading.Event = field(factory=threading.Event)


class Bold(Worker):
    """You act on your own session."""

    deps: Means

    @property
    def session(self) -> SessionRef:
        """Its own session."""
        return cast("SessionRef", self.ref)

    @tool
    async def stop_the_run(self) -> str:
        """End this run."""
        await self.session.stop_run()
        await trio.sleep(60)
        return "never"

    @tool
    async def stop_the_session(self) -> str:
        """End this session."""
        await self.session.stop()
        return "never"

    @tool
    async def ask_myself(self) -> str:
        """Wait for oneself."""
        return await self.session.ask("are you there?")

    @tool(attach=0)
    async def write(self, text: str) -> str:
        """Write to one's own session."""
        await self.session.send(text)
        return "written"

    @tool
    async def leave_a_task(self) -> str:
        """Start a task that outlives the call."""
        self.deps.nursery.start_soon(self._write_late)
        return "left"

    async def _write_late(self) -> None:
        await trio.sleep(5)
        try:
            await self.session.send("boo")
        except Fenced as error:
            self.deps.met.append(error)

    @tool
    def hold_a_thread(self, context: ToolContext) -> str:
        """Hold a thread until it is let go."""
        trio.from_thread.run_sync(self.deps.begun.set)
        self.deps.go_on.wait(10)
        for act in (lambda: self.session.send_from_thread("boo"), lambda: context.progress("boo")):
            try:
                act()
            except Fenced as error:
                self.deps.met.append(error)
        self.deps.loop.run_sync_soon(self.deps.done.set)
        return "held"

    @tool
    def note_in_a_thread(self, context: ToolContext) -> str:
        """Say from a thread how far it is."""
        context.progress("half")
        self.session.send_from_thread("from the thread")
        return threading.current_thread().name


async def test_a_call_can_stop_its_own_run() -> None:
    """A tool that sees that all is lost ends the run it is part of."""
    async with scene(call("stop_the_run"), say("next"), agent=Bold) as here:
        await here.session.send("go")
        await here.idle()
        assert [event.reason for event in here.events("run_stopped")] == ["stopped"]
        assert await here.session.ask("and now?") == "next"
        assert here.outcomes(1) == ["cancelled"]


async def test_a_call_can_stop_its_own_session() -> None:
    """It does not wait for itself."""
    async with scene(calls(call("stop_the_session"), call("work", seconds=60)), agent=Bold) as here:
        await here.session.send("go")
        exit = await here.session.wait()
        assert exit.normal
        assert [event.outcome.status for event in here.events("tool_finished")] == ["cancelled", "cancelled"]
        assert here.diary.cancelled == ["call_2"]


async def test_a_call_that_asks_its_own_session_is_refused_at_once() -> None:
    """The session waits for the call, the call would wait for the session: nobody would ever go on."""
    async with scene(call("ask_myself"), say("ok"), agent=Bold) as here:
        assert await here.session.ask("go") == "ok"
        assert trio.current_time() == 0
        assert here.results(1)[0].startswith("failed: this ask would wait for itself: s/call_1 -> s -> s/call_1")
        assert here.unread() == []


async def test_what_a_call_writes_comes_from_the_call_and_wakes_its_session() -> None:
    """A session trusts its own tools: their mail wakes it, and says where it comes from."""
    async with scene(call("write", text="look here"), say("ok"), say("looked"), agent=Bold) as here:
        await here.session.ask("go")
        await here.idle()
        told = [item.mail for item in (await here.record()).items if hasattr(item, "mail")]
        assert FromToolCall("s", "call_1") in {envelope.sender for mail in told for envelope in mail}
        assert any("from call call_1 of s]\nlook here" in here.words(number) for number in range(1, here.asked))


async def test_what_a_call_left_behind_speaks_for_nobody() -> None:
    """The call is over; whatever still runs of it is no one's voice."""
    means = Means()
    script = [call("leave_a_task"), say("ok")]
    async with trio.open_nursery() as means.nursery, scene(*script, agent=Bold, deps=means) as here:
        await here.session.ask("go")
        await trio.sleep(10)
        assert [str(error) for error in means.met] == [str(Fenced(address="s/call_1"))]
        assert here.asked == 2


@real_time
async def test_a_sync_tool_runs_in_a_thread_with_the_voice_of_its_call() -> None:
    """It may block; what it says is its call's."""
    async with scene(call("note_in_a_thread"), *[say("ok")] * 2, agent=Bold, deps=Means()) as here:
        await here.session.ask("go")
        await here.idle()
        assert here.results(1) != [threading.current_thread().name]
        assert [event.payload for event in here.events("tool_progress")] == ["half"]
        assert "[mail" in here.words(1)
        assert "from call call_1 of s]\nfrom the thread" in here.words(1)


@real_time
async def test_a_cancelled_thread_is_abandoned_fenced_and_reported_so() -> None:
    """Nobody can stop a thread: the model is told that it may go on, and what it still does counts for nothing."""
    means = Means()
    async with scene(call("hold_a_thread"), say("ok"), agent=Bold, deps=means) as here:
        await here.session.send("go")
        await means.begun.wait()
        await here.session.cancel_calls("call_1")
        assert await here.session.wait_answer() == "ok"
        assert here.results(1) == ["cancelled: cancelled by request; its thread cannot be stopped and may go on"]
        means.go_on.set()
        await means.done.wait()
        assert [type(error) for error in means.met] == [Fenced, Fenced]


@real_time
async def test_sync_tools_run_beside_each_other_and_beside_the_loop() -> None:
    """One that blocks holds up neither its siblings nor the model."""
    means = Means()
    turn = calls(call("hold_a_thread"), call("hold_a_thread"), call("work"))
    async with scene(turn, say("ok"), agent=Bold, deps=means) as here:
        await here.session.send("go")
        await means.begun.wait()
        while here.diary.ended != ["call_3"]:
            await trio.lowlevel.checkpoint()
        means.go_on.set()
        assert await here.session.wait_answer() == "ok"
        assert here.outcomes(1) == ["completed", "completed", "completed"]


async def test_calls_stand_in_the_tree_below_their_session() -> None:
    """A person sees what runs."""
    async with scene(calls(call("work", seconds=5), call("background", seconds=5)), say("ok"), say("seen")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        [node] = here.system.tree().nodes
        assert [child.address for child in node.children] == ["s/call_1", "s/call_2"]
        await here.idle()
        [node] = here.system.tree().nodes
        assert node.children == ()


async def test_nobody_writes_to_a_call() -> None:
    """It reads no mail; its session does."""
    async with scene(call("work", seconds=5), say("ok")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        with pytest.raises(Exception, match="s/call_1 is a tool call and reads no mail; write to its session"):
            await here.system.ref("s/call_1").send("hello")


async def test_a_cancelled_completion_starts_no_call() -> None:
    """What the model had not said yet never happens."""
    async with scene(slow(10, call("work")), say("ok")) as here:
        await here.session.send("go")
        await trio.sleep(5)
        await here.session.stop_run()
        await here.idle()
        assert (await here.record()).calls == ()
        assert here.diary.began == []
