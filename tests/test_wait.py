"""`wait` and the status tool: they end by what they name, by mail, or by their time, and consume nothing."""

import json
from typing import Any

import pytest
import trio
from scenes import Scene, Worker, real_time, scene, virtual_time
from transcripts import mail

from actors import Envelope, FromToolCall, Limits, Outcome, ToolCallFinished, UserMessage, tool
from actors._envelope import INTERRUPT
from actors.agent._record import State
from actors.agent._wait import WaitFor, woken
from actors.models import Said, ScriptedModel, call, calls, say
from supervision import open_system

pytestmark = virtual_time

WAIT_ANY = call("wait")


def waited(here: Scene, number: int, place: int = -1) -> dict[str, Any]:
    """What a `wait` told the model in this request."""
    told: dict[str, Any] = json.loads(here.results(number)[place])
    return told


async def test_wait_ends_with_the_call_it_names() -> None:
    """The other one goes on."""
    jobs = calls(call("background", seconds=20), call("background", seconds=10))
    script = [jobs, call("wait", **{"for": ["call_1"]}), say("ok"), say("seen")]
    async with scene(*script) as here:
        await here.session.ask("go")
        assert waited(here, 2) == {"woken_by": "call", "tool_call_ids": ["call_1"], "waited_seconds": 20.0}
        assert here.words(2).startswith("[mail")


async def test_wait_takes_one_id_without_a_list() -> None:
    """Small models forget the brackets."""
    async with scene(call("background", seconds=5), call("wait", **{"for": "call_1"}), say("ok")) as here:
        await here.session.ask("go")
        assert waited(here, 2)["tool_call_ids"] == ["call_1"]


async def test_wait_for_any_call_ends_with_the_first() -> None:
    """The model need not know which."""
    jobs = calls(call("background", seconds=20), call("background", seconds=10))
    async with scene(jobs, WAIT_ANY, say("ok"), say("seen")) as here:
        await here.session.ask("go")
        assert waited(here, 2) == {"woken_by": "call", "tool_call_ids": ["call_2"], "waited_seconds": 10.0}


async def test_wait_for_any_call_counts_an_attached_sibling() -> None:
    """Its end is mail like any other's."""
    async with scene(calls(call("work", seconds=3), WAIT_ANY), say("ok")) as here:
        await here.session.ask("go")
        assert waited(here, 1)["tool_call_ids"] == ["call_1"]
        assert here.results(1)[0] == "worked"


async def test_wait_ends_with_mail_which_is_read_after_it() -> None:
    """It peeks: the words themselves come in the turn's own mail."""
    async with scene(call("wait", **{"for": "mail"}), say("ok")) as here:
        await here.session.send("go")
        await trio.sleep(4)
        await here.session.send("news")
        assert await here.session.wait_answer() == "ok"
        assert waited(here, 1) == {"woken_by": "mail", "tool_call_ids": [], "waited_seconds": 4.0}
        assert here.words(1) == "news"


@pytest.mark.parametrize("what", ["any_call", "mail", ["call_1"]])
async def test_mail_ends_every_wait(what: Any) -> None:
    """Whatever the model waits for, a person's word goes first."""
    script = [call("background", seconds=60), call("wait", **{"for": what}), say("ok"), say("seen")]
    async with scene(*script) as here:
        await here.session.send("go")
        await trio.sleep(4)
        await here.session.send("news")
        await here.session.ask("and this?")
        assert waited(here, 2)["woken_by"] == "mail"


async def test_mail_that_ends_a_wait_detaches_its_attached_siblings() -> None:
    """The model is asked now; what it was attached to goes on."""
    async with scene(calls(call("work", seconds=60), call("wait")), say("ok"), say("seen")) as here:
        await here.session.send("go")
        await trio.sleep(4)
        await here.session.ask("news")
        assert json.loads(here.results(1)[0])["detached"] == "mail"
        assert waited(here, 1)["woken_by"] == "mail"


async def test_what_already_holds_ends_a_wait_at_once() -> None:
    """Level-triggered: what came while the model was asked is not waited for again."""
    script = [call("background", seconds=5), call("work", seconds=9), call("wait", **{"for": ["call_1"]}), say("ok")]
    async with scene(*script) as here:
        await here.session.ask("go")
        assert waited(here, 3) == {"woken_by": "call", "tool_call_ids": ["call_1"], "waited_seconds": 0.0}


async def test_a_wait_for_no_call_fails_at_once() -> None:
    """It would never end but by its time."""
    async with scene(WAIT_ANY, say("ok")) as here:
        await here.session.ask("go")
        assert here.results(1) == ["failed: no call is running, so there is nothing to wait for"]
        assert trio.current_time() == 0


@pytest.mark.parametrize(
    ("what", "told"),
    [
        (["call_9"], "there is no call 'call_9' in this session; running: call_1"),
        ("cal_1", "there is no call 'cal_1' in this session; running: call_1"),
        ([7], "there is no call 7 in this session; running: call_1"),
        ([], "`for` is an empty list; name a call, any_call or mail"),
        (["call_2"], "call_2 is this turn's own call of wait; name a call of another tool"),
    ],
)
async def test_a_wait_for_what_is_not_there_is_an_error_at_once(what: Any, told: str) -> None:
    """A model that misremembers an id hears the right ones."""
    async with scene(call("background", seconds=60), call("wait", **{"for": what}), say("ok")) as here:
        await here.session.ask("go")
        assert here.results(2) == [f"failed: {told}"]


@pytest.mark.parametrize(
    ("asked", "given"), [(10_000, 300), (-5, 0), (0, 0), (7, 7), (0.5, 0.5), (float("inf"), 300), (float("nan"), 0)]
)
async def test_the_time_of_a_wait_is_clamped(asked: float, given: float) -> None:
    """A model can be talked into anything; the tree's limit holds."""
    async with scene(call("wait", **{"for": "mail"}, timeout_seconds=asked), say("ok")) as here:
        await here.session.ask("go")
        assert waited(here, 1) == {"woken_by": "timeout", "tool_call_ids": [], "waited_seconds": given}
        assert trio.current_time() == given


async def test_a_wait_has_thirty_seconds_unless_it_says_otherwise() -> None:
    """The default of its schema."""
    async with scene(call("wait", **{"for": "mail"}), say("ok"), limits=Limits(max_wait=20)) as here:
        await here.session.ask("go")
        assert waited(here, 1)["waited_seconds"] == 20
    async with scene(call("wait", **{"for": "mail"}), say("ok")) as here:
        await here.session.ask("go")
        assert waited(here, 1)["waited_seconds"] == 30


async def test_a_wait_takes_no_slot_and_can_wait_for_a_queued_call() -> None:
    """All slots are taken, and still it runs."""
    turn = calls(call("work", seconds=5), call("work", seconds=5), call("wait", **{"for": ["call_2"]}))
    async with scene(turn, say("ok"), limits=Limits(max_calls=1)) as here:
        await here.session.ask("go")
        assert waited(here, 1) == {"woken_by": "call", "tool_call_ids": ["call_2"], "waited_seconds": 10.0}


async def test_two_waits_in_one_turn_end_each_by_its_own() -> None:
    """Each is a condition of its own."""
    turn = calls(
        call("work", seconds=5), call("wait", **{"for": ["call_1"]}), call("wait", **{"for": "mail"}, timeout_seconds=9)
    )
    async with scene(turn, say("ok")) as here:
        await here.session.ask("go")
        assert [waited(here, 1, place)["woken_by"] for place in (1, 2)] == ["call", "timeout"]


CALL_ENDED = mail(ToolCallFinished("call_1", "work", Outcome.completed("done")), FromToolCall("s", "call_1"))
URGENT = mail(UserMessage("stop!"), priority=INTERRUPT)
WORDS = mail(UserMessage("news"))


@pytest.mark.parametrize(
    ("unread", "now", "by"),
    [
        ([], 9, None),
        ([], 10, "timeout"),
        ([WORDS], 10, "mail"),
        ([WORDS, CALL_ENDED], 10, "call"),
        ([WORDS, CALL_ENDED, URGENT], 10, "interrupt"),
    ],
)
def test_of_all_that_ends_a_wait_the_most_urgent_is_told(unread: list[Envelope], now: float, by: str | None) -> None:
    """An interrupt before a call before mail before the time."""
    found = woken(WaitFor("any_call", 0, 10), State("s", "Worker"), unread, now)
    assert (found.what if found else None) == by


async def test_an_interrupt_ends_a_wait_although_mail_came_first() -> None:
    """The model should know how urgent it is."""
    async with scene(calls(call("work", seconds=5), WAIT_ANY), say("ok"), say("seen")) as here:
        await here.session.send("go")
        await trio.sleep(4)
        here.session.send_nowait("news")
        here.session.send_nowait("stop!", interrupt=True)
        await here.session.wait_answer()
        assert waited(here, 1)["woken_by"] == "interrupt"


async def test_two_sessions_that_wait_for_each_other_both_time_out_at_the_cap() -> None:
    """Neither hangs for ever; each is told that its time is over."""
    script = [call("wait", **{"for": "mail"}, timeout_seconds=10_000), say("ok")]
    async with open_system() as system, trio.open_nursery() as nursery:
        for name in ("a", "b"):
            session = await system.open(Worker, session=name, model=ScriptedModel(script), deps=None)
            nursery.start_soon(session.ask, "wait for the other")
        await trio.sleep(300 - 1e-6)
        assert [str(node.status) for node in system.tree()] == ["running"] * 2
        await system.wait_idle()
        assert trio.current_time() == pytest.approx(300, abs=0.1)


class Blocking(Worker):
    @tool(attach=0)
    def block(self) -> str:
        """Hold a thread for a moment."""
        trio.from_thread.run(trio.sleep, 0.5)
        return "blocked"


@real_time
async def test_a_blocked_thread_does_not_delay_a_wait_past_its_time() -> None:
    """The loop waits in its mailbox and nowhere else."""
    script = [call("block"), call("wait", timeout_seconds=0.05), say("ok"), say("seen")]
    async with scene(*script, agent=Blocking) as here:
        await here.session.ask("go")
        assert waited(here, 2)["woken_by"] == "timeout"
        assert waited(here, 2)["waited_seconds"] < 0.4


# ------------------------------------------------------------------ status and list
STATUS = {"tool_call_id": "call_1"}


@pytest.mark.parametrize(
    ("ask", "status", "result", "after"),
    [
        (call("get_tool_call_status", **STATUS), "detached", None, 0),
        (call("get_tool_call_status", **STATUS, wait_for_completion=True), "detached", None, 5),
        (call("get_tool_call_status", **STATUS, wait_for_completion=True, timeout_seconds=60), "completed", "worked", 30),
    ],
)
async def test_a_status_tells_what_is_known_of_a_call(ask: Said, status: str, result: str | None, after: float) -> None:
    """At once, or when it is done, or when its patience is over: always a result, never an error."""
    async with scene(call("background", seconds=30), ask, say("ok"), say("seen")) as here:
        await here.session.ask("go")
        told = json.loads(here.results(2)[0])
        assert (told["status"], told["result"], told["is_final"]) == (status, result, result is not None)
        assert (told["tool_call_id"], told["tool"], trio.current_time()) == ("call_1", "background", after)
        assert told["started_at"] is not None
        assert (told["completed_at"] is not None) == told["is_final"]
        assert list(told)[-1] == "progress"


async def test_a_status_without_progress_leaves_it_out() -> None:
    """It costs tokens."""
    ask = call("get_tool_call_status", **STATUS, include_progress=False)
    async with scene(call("background", seconds=30), ask, say("ok")) as here:
        await here.session.ask("go")
        assert "progress" not in json.loads(here.results(2)[0])


async def test_mail_does_not_end_a_status_request_that_waits() -> None:
    """It asked for that call; an interrupt ends it all the same."""
    ask = call("get_tool_call_status", **STATUS, wait_for_completion=True, timeout_seconds=20)
    async with scene(call("background", seconds=60), ask, say("ok"), say("seen")) as here:
        await here.session.send("go")
        await trio.sleep(5)
        await here.session.send("news")
        await trio.sleep(5)
        assert here.asked == 2
        await here.session.interrupt("now!")
        await trio.sleep(1)
        assert (here.asked, here.outcomes(2)) == (3, ["completed"])


async def test_the_list_shows_the_calls_that_run_and_how() -> None:
    """Queued, running or detached; the list itself is not on it."""
    turn = calls(call("work", seconds=5), call("work", seconds=5), call("list_running_tool_calls"))
    async with scene(call("background", seconds=60), turn, say("ok"), limits=Limits(max_calls=1)) as here:
        await here.session.ask("go")
        running = json.loads(here.results(2)[2])["running"]
        assert [(row["tool_call_id"], row["tool"], row["status"]) for row in running] == [
            ("call_1", "background", "detached"),
            ("call_2", "work", "running"),
            ("call_3", "work", "queued"),
        ]
        assert [row["started_at"] is None for row in running] == [False, False, True]
