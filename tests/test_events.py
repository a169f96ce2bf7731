"""What happens, as it is shown: every kind of this version, in order, with what it belongs to; each call gets its end."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trio
from scenes import Worker, scene, virtual_time

from actors import AgentMessage, Limits, MailboxFull, ModelError, tool
from actors.events import AnyEvent
from actors.models import Completion, Request, ScriptedModel, TextDelta, ThinkingDelta, Usage, call, calls, fail, say, slow
from actors.store.memory import MemoryStore
from supervision import open_system, run

pytestmark = virtual_time

QUIET = ("text_delta", "usage")


async def test_a_run_with_a_call_is_shown_step_by_step() -> None:
    """From the words that wake it to its end."""
    async with scene(call("work", seconds=1), say("done")) as here:
        await here.session.ask("go")
        await here.idle()
        assert here.kinds(*QUIET) == [
            "mail_accepted", "status", "run_started", "mail_delivered", "turn_started", "tool_started",
            "mail_accepted", "tool_finished", "turn_started", "answer", "status", "run_stopped",
        ]  # fmt: skip


async def test_a_detached_call_is_shown_to_detach_to_be_waited_for_and_to_end() -> None:
    """The run stays open for it."""
    async with scene(call("background", seconds=5), say("ok"), say("seen")) as here:
        await here.session.ask("go")
        await here.idle()
        assert here.kinds(*QUIET, "mail_accepted", "status") == [
            "run_started", "mail_delivered", "turn_started", "tool_started", "tool_detached", "turn_started", "answer",
            "waiting", "tool_finished", "mail_delivered", "turn_started", "answer", "run_stopped",
        ]  # fmt: skip
        [detached] = here.events("tool_detached")
        assert (detached.call, detached.reason) == ("call_1", "still running after 0s")


async def test_events_are_numbered_dated_and_say_what_they_belong_to() -> None:
    """One sequence for the process."""
    async with scene(call("work"), say("done")) as here:
        await here.session.ask("go")
        assert [event.seq for event in here.seen] == list(range(1, len(here.seen) + 1))
        now = datetime.now(UTC)
        assert all(now - timedelta(minutes=1) < event.at <= now for event in here.seen)
        started, finished = here.events("tool_started", "tool_finished")
        assert (started.session, started.run, started.turn, started.call, started.tool) == ("s", 1, 1, "call_1", "work")
        assert (finished.session, finished.run, finished.call, finished.tool) == ("s", 1, "call_1", "work")
        assert [event.turn for event in here.events("turn_started")] == [1, 2]


async def test_mail_is_shown_when_it_is_accepted_and_just_before_the_round_that_reads_it() -> None:
    """With that round's number; what a result told already is not shown again."""
    async with scene(call("work", seconds=5), say("done")) as here:
        await here.session.send("go")
        await trio.sleep(1)
        here.box.accept(AgentMessage("news"), here.session._session().sender)
        await here.session.wait_answer()
        delivered = [([each.body.text for each in event.mail], event.round) for event in here.events("mail_delivered")]
        assert delivered == [(["go"], 1), (["news"], 2)]
        order = [event.kind for event in here.events("mail_accepted", "mail_delivered", "turn_started")]
        assert order[-2:] == ["mail_delivered", "turn_started"]


async def test_words_are_shown_as_they_come_and_a_cut_answer_is_taken_back() -> None:
    """An interrupted turn retracts its deltas."""
    async with scene(say("from the first"), say("never asked")) as here:
        second = ScriptedModel([say("from the second")])
        first = Torn()
        session = await here.system.open(Worker, session="t", model=[first, second], deps=here.diary)
        await session.ask("go")
        kinds = [event.kind for event in here.seen if event.session == "t"]
        start, end = kinds.index("text_delta"), kinds.index("interrupted")
        assert kinds[start : end + 1] == ["text_delta", "thinking_delta", "interrupted"]
        assert "text_delta" in kinds[end:]


class Torn:
    """A model whose answer breaks off."""

    name = "torn"
    capabilities = ScriptedModel([]).capabilities

    def stream(self, _request: Request) -> Any:
        """Two pieces, then nothing."""
        return _Breaking()


class _Breaking:
    async def __aenter__(self) -> Any:
        return self._events()

    async def __aexit__(self, *_: object) -> None:
        pass

    async def _events(self) -> Any:
        yield TextDelta("half")
        yield ThinkingDelta("hm")
        raise ModelError(reason="cut", retryable=True)


async def test_the_cost_of_each_completion_is_reported() -> None:
    """An empty one costs too, and one that was refused."""

    class Dear(Torn):
        def stream(self, _request: Request) -> Any:
            return _Costing()

    class _Costing(_Breaking):
        async def _events(self) -> Any:
            yield Completion((), Usage(1, 10, 20), "refused")

    async with scene(model=Dear()) as here:
        await here.session.send("go")
        await here.idle()
        [usage] = here.events("usage")
        assert (usage.usage.input_tokens, usage.usage.output_tokens) == (10, 20)


async def test_the_loop_s_own_words_are_shown_as_such() -> None:
    """Never confused with a person's."""
    async with scene(say(""), call("work"), say("so far"), max_rounds=2) as here:
        await here.session.ask("go")
        assert [event.nudge for event in here.events("continuing")] == ["continuation", "wrap_up"]


@pytest.mark.parametrize(
    ("script", "reason"),
    [([say("ok")], "answered"), ([call("work"), say("ok")], "limit"), ([fail(ModelError(reason="no"))], "failed")],
)
async def test_the_end_of_a_run_says_why(script: list[Any], reason: str) -> None:
    """Answered, out of rounds, failed; and stopped."""
    async with scene(*script, max_rounds=1) as here:
        await here.session.send("go")
        await here.idle()
        assert [event.reason for event in here.events("run_stopped")] == [reason]


async def test_a_status_is_shown_when_it_changes_and_only_then() -> None:
    """Each of them, in order."""
    async with scene(call("background", seconds=1), say("ok"), say("seen"), fail(ModelError(reason="no"))) as here:
        await here.session.ask("go")
        await here.idle()
        for order in (here.session.pause, here.session.pause, here.session.resume, here.session.resume):
            await order()
            await here.settled()
        await here.session.send("more")
        await here.idle()
        await here.session.stop()
        assert [event.status.value for event in here.events("status")] == [
            "running", "waiting", "running", "idle", "paused", "idle", "running", "failed", "stopped",
        ]  # fmt: skip


async def test_a_refused_send_is_shown_to_whoever_watches() -> None:
    """The sender got the error; the host sees the flood."""
    async with scene(slow(5, say("ok")), limits=Limits(max_unread=1)) as here:
        await here.session.pause()
        await here.settled()
        await here.session.send("one")
        with pytest.raises(MailboxFull):
            await here.session.send("two")
        [event] = here.events("refused")
        assert event.recipient == "s"
        assert event.error.startswith("s has 1 unread messages of at most 1")


async def test_the_restart_of_a_loop_is_shown() -> None:
    """The session itself has not ended."""
    async with scene(fail(ModelError(reason="overloaded", retryable=True)), say("ok")) as here:
        await here.session.ask("go")
        kinds = [event.kind for event in here.seen if getattr(event, "address", None) == "s"]
        assert kinds == ["restarted"]


# ------------------------------------------------------------------ each call gets its end
def ends(seen: list[AnyEvent]) -> dict[str, list[str]]:
    """The ends of each announced call."""
    told: dict[str, list[str]] = {}
    for event in seen:
        if event.kind == "tool_started":
            told[str(event.call)] = []
        elif event.kind == "tool_finished":
            told[str(event.call)].append(event.outcome.status)
    return told


ALL_KINDS = calls(
    call("work"), call("broken", text="x"), call("unknown"), call("background", seconds=60), call("work", seconds=60),
    call("wait"), call("list_running_tool_calls"), call("work", seconds=60),
)  # fmt: skip
SO_FAR = {
    "call_1": ["completed"], "call_2": ["failed"], "call_3": ["failed"], "call_4": [], "call_5": [], "call_6": ["completed"],
    "call_7": ["completed"], "call_8": [],
}  # fmt: skip


async def test_each_announced_call_gets_its_end_when_the_run_is_stopped() -> None:
    """Done, failed, unknown, detached, attached, waiting, queued."""
    async with scene(ALL_KINDS, say("ok"), limits=Limits(max_calls=1)) as here:
        await here.session.send("go")
        await trio.sleep(1)
        assert ends(here.seen) == SO_FAR
        await here.session.stop_run()
        await here.settled()
        assert ends(here.seen) == {**SO_FAR, "call_4": ["cancelled"], "call_5": ["cancelled"], "call_8": ["not_started"]}


@pytest.mark.parametrize("how", ["now", "kill"])
async def test_each_announced_call_gets_its_end_when_the_session_is_stopped(how: Any) -> None:
    """However it is."""
    async with scene(ALL_KINDS, say("ok"), limits=Limits(max_calls=1)) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.stop(how)
        assert all(len(each) == 1 for each in ends(here.seen).values())


@pytest.mark.parametrize("durable", [True, False])
async def test_each_announced_call_gets_its_end_when_the_system_stops(*, durable: bool) -> None:
    """One that had not begun may begin when its session is opened again, where sessions outlive the process."""
    store = MemoryStore()
    store.durable = durable
    async with scene(ALL_KINDS, say("ok"), limits=Limits(max_calls=1), store=store) as here:
        await here.session.send("go")
        await trio.sleep(1)
    last = [] if durable else ["not_started"]
    assert ends(here.seen) == {**SO_FAR, "call_4": ["cancelled"], "call_5": ["cancelled"], "call_8": last}


class Stubborn(Worker):
    @tool
    async def shield(self) -> str:
        """Outlive every stop for a while."""
        with trio.CancelScope(shield=True):
            await trio.sleep(100)
        return "done"


async def test_a_call_that_outlives_its_session_has_one_end_all_the_same() -> None:
    """It was told when it was decided; a zombie tells nothing more."""
    async with scene(call("shield"), agent=Stubborn) as here:
        await here.session.send("go")
        await trio.sleep(1)
        await here.session.stop()
        assert list(here.system.tree().zombies) == ["s/call_1"]
        await trio.sleep(200)
        assert ends(here.seen) == {"call_1": ["cancelled"]}


def test_events_reach_a_callback_of_run() -> None:
    """A script can print them; what it raises is its own affair."""
    seen: list[str] = []

    def watch(event: AnyEvent) -> None:
        seen.append(event.kind)
        raise ValueError

    assert run(Worker, "go", model=ScriptedModel([say("ok")]), on_event=watch) == "ok"
    assert seen[-1] == "exit"
    assert seen.count("run_stopped") == 1


async def test_a_system_shows_the_events_of_all_its_sessions() -> None:
    """In one sequence."""
    async with open_system() as system, system.events() as stream:
        for name in ("a", "b"):
            await (await system.open(Worker, session=name, model=ScriptedModel([say("ok")]))).ask("go")
        await system.wait_idle()
        answers: list[str | None] = []
        async for event in stream:
            if event.kind == "answer":
                answers.append(event.session)
                if len(answers) == 2:
                    break
        assert answers == ["a", "b"]
