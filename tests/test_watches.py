"""Watches: a session is told what happens in another one, within its scope, for a time."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from scenes import Diary, Scene, Worker, scene, virtual_time

from actors import AgentMessage, FromSession, FromToolCall, Limits, ModelError, UserItem, WatchedEvent
from actors.models import Scripted, ScriptedModel, call, calls, fail, say
from supervision import ChildSpec, SessionRef, Supervisor

pytestmark = virtual_time
WORDS = AgentMessage("look at it")
TOOLS = ("watch_session", "unwatch_session", "wait")


@asynccontextmanager
async def pair(
    *script: Scripted, other: tuple[Scripted, ...] = (say("done"),), **options: Any
) -> AsyncIterator[tuple[Scene, SessionRef]]:
    """A session that has the tools, and a child of it."""
    parent = options.pop("parent", "s")
    async with scene(*script, toolbox=TOOLS, **options) as here:
        kid = await here.system.open(Worker, session="kid", parent=parent, model=ScriptedModel(other), deps=Diary())
        yield here, kid


def told(here: Scene) -> list[str]:
    """The kinds of the events that the session has been sent."""
    return [event.envelope.body.kind for event in here.events("mail_accepted") if isinstance(event.envelope.body, WatchedEvent)]


# ------------------------------------------------------------------ what is told
async def test_a_watched_event_wakes_the_session_and_is_shown_with_its_facts() -> None:
    """It did not have to ask, nor to wait."""
    async with pair(call("watch_session", session="kid", events=["answer"]), say("ok"), say("seen")) as (here, kid):
        await here.session.ask("go")
        assert here.results(1) == ['{"watch_id":"watch-1"}']
        await kid.ask("hello")
        await here.idle()
        [header, text] = here.words(2).splitlines()
        assert header.endswith(" from session kid]")
        assert text == 'answer: {"text":"done"}'


async def test_a_run_is_told_from_its_start_to_its_end() -> None:
    """In order, each once."""
    other = (calls(call("work"), call("patient")), say("done"))
    async with pair(call("watch_session", session="kid"), say("ok"), say("seen"), say("seen"), other=other) as (here, kid):
        await here.session.ask("go")
        await kid.ask("hello")
        await here.idle()
        kinds = [
            "run_started",
            "status",
            "tool_started",
            "tool_started",
            "tool_finished",
            "tool_finished",
            "answer",
            "status",
            "run_stopped",
        ]
        assert told(here) == kinds


async def test_the_hops_of_watched_events_are_those_of_the_run() -> None:
    """Two that watch each other come to an end."""
    script = (call("watch_session", session="kid"), *[say("ok")] * 60)
    async with pair(*script, max_rounds=100, limits=Limits(mail_scope="all")) as (here, kid):
        again = ScriptedModel([call("watch_session", session="s"), *[say("ok")] * 60])
        twin = await here.system.open(
            Worker, session="twin", model=again, deps=Diary(), toolbox=TOOLS, max_rounds=100, limits=Limits(mail_scope="all")
        )
        await here.session.ask("go")
        await twin.ask("go")
        await here.system.wait_idle()
        await kid.ask("hello")
        await here.system.wait_idle()
        hops = [event.envelope.hops for event in here.seen if event.kind == "mail_accepted"]
        assert max(hops) <= 17


async def test_a_watch_ends_when_its_time_is_over() -> None:
    """Nobody has to remember to end it."""
    async with pair(call("watch_session", session="kid", ttl_seconds=0.0001), say("ok")) as (here, kid):
        await here.session.ask("go")
        time.sleep(0.001)  # noqa: ASYNC251  # the clock on the wall is what counts
        await kid.ask("hello")
        assert told(here) == []


async def test_a_watch_is_ended_by_the_one_who_made_it() -> None:
    """It is told whether there was one."""
    ends = [call("unwatch_session", watch_id=id) for id in ("watch-1", "watch-1", "watch-9")]
    async with pair(call("watch_session", session="kid"), *ends, say("ok")) as (here, kid):
        await here.session.ask("go")
        await kid.ask("hello")
        assert told(here) == []
        assert [here.results(number) for number in (2, 3, 4)] == [
            ['{"stopped":true}'],
            ['{"stopped":false}'],
            ['{"stopped":false}'],
        ]


async def test_a_wait_ends_with_a_watched_event() -> None:
    """Any mail does."""
    script = (call("watch_session", session="kid"), call("wait", **{"for": "mail"}), say("ok"))
    async with pair(*script) as (here, kid), trio.open_nursery() as nursery:
        nursery.start_soon(here.session.ask, "go")
        await here.settled()
        await kid.ask("hello")
        await here.idle()
        assert '"woken_by":"mail"' in here.results(2)[0]


# ------------------------------------------------------------------ whom one may watch
REFUSED = [
    ({"session": "s"}, "is your own session"),
    ({"session": "nobody"}, "there is no session 'nobody'"),
    ({"session": "kid", "events": ["nonsense"]}, "one can watch run_started, run_stopped"),
    ({"session": "kid", "events": []}, "one can watch"),
    ({"session": "kid", "ttl_seconds": 0}, "give a number above 0"),
    ({"session": "kid", "more": 1}, "unknown argument `more`"),
    ({}, "missing `session`"),
]


@pytest.mark.parametrize(("arguments", "why"), REFUSED)
async def test_what_cannot_be_watched_is_refused_in_words(arguments: dict[str, Any], why: str) -> None:
    """The model can read what to do instead."""
    async with pair(call("watch_session", **arguments), say("ok")) as (here, _kid):
        await here.session.ask("go")
        assert here.outcomes(1) == ["failed"]
        assert why in here.results(1)[0]


SCOPES = [
    ("own", "kid", False), ("children", "kid", True), ("children", "grandkid", False), ("subtree", "grandkid", True),
    ("subtree", "other", False), ("subtree", "boss", False), ("siblings", "boss", True), ("siblings", "twin", True),
    ("siblings", "grandkid", True), ("siblings", "other", False), ("all", "other", True),
]  # fmt: skip


@pytest.mark.parametrize(("scope", "whom", "may"), SCOPES)
async def test_a_model_watches_those_in_its_scope(scope: Any, whom: str, *, may: bool) -> None:
    """By recorded lineage; a refusal says what the scope is."""
    async with scene() as here:
        model = ScriptedModel([call("watch_session", session=whom), say("ok")])
        for id, parent in {"boss": None, "twin": "boss", "kid": "me", "grandkid": "kid", "other": None}.items():
            await here.system.open(Worker, session=id, parent=parent, model=here.model, deps=here.diary)
        me = await here.system.open(
            Worker, session="me", parent="boss", model=model, deps=here.diary, toolbox=TOOLS, limits=Limits(mail_scope=scope)
        )
        await me.ask("go")
        [result] = (await me.record()).items[2].results  # type: ignore[union-attr]
        assert (result.outcome.status == "completed") is may
        assert may or f"mail_scope is '{scope}'" in result.text


async def test_children_of_one_supervisor_are_siblings() -> None:
    """Nobody opened them, yet they belong together."""
    async with scene() as here:
        model = ScriptedModel([call("watch_session", session="team/b"), say("ok")])
        options = {"model": model, "deps": here.diary, "toolbox": TOOLS, "limits": Limits(mail_scope="siblings")}
        kids = [ChildSpec(Worker, name=name, options=options) for name in "ab"]
        await here.system.start(Supervisor(*kids, name="team"))
        me = here.system.session("team/a")
        await me.ask("go")
        [result] = (await me.record()).items[2].results  # type: ignore[union-attr]
        assert result.outcome.status == "completed"


async def test_there_are_so_many_watches_and_no_more() -> None:
    """The refusal names those there are; the model can end one."""
    three = calls(*[call("watch_session", session="kid")] * 3)
    async with pair(three, say("ok"), limits=Limits(max_watches=2)) as (here, _kid):
        await here.session.ask("go")
        assert here.outcomes(1) == ["completed", "completed", "failed"]
        assert "2 watches are set, as many as may be: watch-1, watch-2; end one" in here.results(1)[2]


async def test_the_end_of_a_session_ends_its_watches() -> None:
    """Both ways: whom it watches, and who watches it."""
    async with pair(call("watch_session", session="kid", events=["exit"]), *[say("ok")] * 3) as (here, kid):
        await here.session.ask("go")
        await kid.stop()
        await here.idle()
        assert told(here) == ["stopped", "exit"]
        assert here.session._session().session.store._watches == {}


# ------------------------------------------------------------------ children
async def test_a_parent_hears_the_answer_to_its_mail() -> None:
    """It need not watch: the answer comes by itself, and wakes it."""
    async with pair(say("seen")) as (here, _kid):
        here.system.session("kid")._session().mailbox.accept(WORDS, FromSession("s"))
        await here.idle()
        assert here.words(0).endswith('answer: {"text":"done"}')


async def test_a_parent_hears_that_a_child_failed_or_was_stopped() -> None:
    """Whoever had begun the run."""
    async with pair(*[say("seen")] * 2, other=(fail(ModelError(model="m", status=400, reason="bad", retryable=False)),)) as (
        here,
        kid,
    ):
        await kid.send("hello")
        await here.idle()
        await kid.stop()
        await here.idle()
        assert told(here) == ["failed", "stopped"]


async def test_a_stopped_run_of_a_child_is_told_once() -> None:
    """By a stop of the run, or of the session."""
    async with pair(*[say("seen")] * 2, other=(call("work", seconds=10), say("done"))) as (here, kid):
        kid._session().mailbox.accept(WORDS, FromToolCall("s", "call_1"))
        await here.settled()
        await kid.stop_run()
        await here.idle()
        assert told(here) == ["stopped"]
        assert isinstance(here.request(0).transcript[0], UserItem)


async def test_the_end_of_a_child_wakes_its_parent_wherever_it_runs() -> None:
    """Another process may have it: its place is not here."""
    async with scene(say("seen")) as here:
        here.box.accept(WatchedEvent("kid", "answer", {"text": "done"}), FromSession("kid"))
        await here.idle()
        assert here.asked == 1
