"""Stored sessions that leave memory and come back, and systems that share them."""

from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import frozen
from durable import Effects, asleep, awake, outcomes, played, said, system_on, until, url_of

from actors import Agent, FromUser, LeaseLost, StartFailed, Status, UserMessage, handle, tool
from actors.agent._record import Draft
from actors.models import ScriptedModel, call, say, slow
from supervision import open_system


@frozen
class Noted:
    """What agents here take beside words."""

    number: int


# ------------------------------------------------------------------ leaving memory, and coming back
async def test_a_session_that_rests_leaves_memory_and_mail_brings_it_back(place: Path | str) -> None:
    """A hundred thousand sessions cost what those do that work; nobody can tell the difference."""
    agent = played(say("one"), say("two"), say("three"))
    async with system_on(place, idle_timeout=0.05) as system:
        session = await system.open(agent, session="s", deps=Effects())
        assert await session.ask("first") == "one"
        await until(lambda: system.statistics().sessions == 0)
        assert (await system.sessions())[0].status is session.status is Status.IDLE
        assert await session.ask("second") == "two"
        await until(lambda: system.statistics().sessions == 0)
        await session.send("third")
        await until(lambda: len(agent.model.requests) == 3)
        await system.wait_idle()
        assert said(await session.record()) == ["first", "second", "third"]


async def test_a_timer_brings_a_session_back_when_it_falls_due(place: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not some seconds later, when somebody looks for what has something to do."""
    monkeypatch.setattr("supervision._resting.SCAN", 1e6)
    agent = played(say("ding"))
    async with system_on(place, idle_timeout=0.05) as system:
        session = await system.open(agent, session="s", deps=Effects())
        await session.send_after(1, "wake up")
        await until(lambda: system.statistics().sessions == 0)
        await until(lambda: len(agent.model.requests) == 1)


async def test_what_is_sent_while_its_system_stops_is_kept(place: Path | str) -> None:
    """That a process ends is no end of a session: a call's last words reach it, and what a handler of its own takes."""

    class Recorder(Agent):
        """You listen."""

        model = ScriptedModel([call("work")])

        @handle
        async def note(self, message: Noted) -> None:
            """Nothing."""

        @tool
        async def work(self) -> None:
            """Work, and report when that is cut off."""
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(0.1)
                    for body in ("cut off", Noted(1)):
                        await self.find("other").send(body, wait=1)

    async with system_on(place) as system:
        await system.open(Recorder, session="other")
        working = await system.open(Recorder, session="working")
        await working.send("go")
        await until(lambda: bool(Recorder.model.requests))
        await trio.sleep(0.1)
    async with system_on(place) as system:
        assert {each.id: each.unread for each in await system.sessions()}["other"] == 2


async def test_words_that_come_while_it_leaves_are_not_lost(place: Path | str) -> None:
    """They are accepted, and wake it."""
    agent = played(*[say("heard")] * 60)
    async with system_on(place, idle_timeout=0.001) as system:
        session = await system.open(agent, session="s", deps=Effects())
        for number in range(30):
            await session.send(f"{number}")
            await trio.sleep(0.01)
        await until(lambda: system.statistics().sessions == 0)
        [found] = await system.sessions()
        assert found.unread == 0
        assert said(await session.record()) == [f"{number}" for number in range(30)]


async def test_more_sessions_than_may_live_take_turns(place: Path | str) -> None:
    """`max_live` bounds memory, not work."""
    async with system_on(place, max_live=2) as system:
        for number in range(6):
            await system.open(played(), session=f"s{number}", deps=Effects())
    agent = played(*[say("heard")] * 6)
    async with system_on(place) as system:
        for number in range(6):
            await system.session(f"s{number}").send("hello")
    peak = 0
    async with system_on(place, agent, max_live=2) as system:
        while len(agent.model.requests) < 6:
            peak = max(peak, system.statistics().sessions)
            await trio.sleep(0.002)
        await system.wait_idle()
        assert sum(each.unread for each in await system.sessions()) == 0
    assert peak <= 2


# ------------------------------------------------------------------ two systems on one store
async def test_two_systems_on_one_store_share_its_sessions(place: Path | str) -> None:
    """One runs a session; what the other sends reaches it there, and any can ask."""
    agent = played(say("heard"), say("you too"))
    async with system_on(place, agent) as here, system_on(place, agent) as there:
        session = await here.open(agent, session="s", deps=Effects())
        await there.session("s").send("from there")
        await until(lambda: session.status is Status.IDLE and len(agent.model.requests) == 1)
        assert said(await session.record()) == ["from there"]
        assert (await there.session("s").record()).items == (await session.record()).items
        assert await there.session("s").ask("me too?") == "you too"
        with pytest.raises(LeaseLost, match="is run by another process"):
            await there.open(agent, session="s")


async def test_a_system_that_ends_hands_its_sessions_over_at_once(place: Path | str) -> None:
    """Nobody waits for a lease to run out."""
    agent = played(slow(30, say("late")))
    async with system_on(place, played(say("taken up"), say("taken up"))) as there:
        async with system_on(place, agent) as here:
            session = await here.open(agent, session="s", deps=Effects())
            await session.send("go")
            await until(lambda: session.status is Status.RUNNING)
        await there.session("s").send("and?")
        assert await there.session("s").wait_answer() == "taken up"


async def test_whoever_lost_its_lease_stops_without_a_trace(place: Path | str) -> None:
    """Its commits are refused, its calls are cancelled, its session goes on elsewhere."""
    effects = Effects()
    agent = played(call("book"))
    async with system_on(place, agent) as here:
        session = await here.open(agent, session="s", deps=effects)
        await session.send("go")
        await until(lambda: bool(effects.keys))
        await asleep(here)
        async with system_on(place, played(say("I have it")), deps=Effects(waits=False)) as there:
            assert await there.session("s").wait_answer() == "I have it"
            await session.send("more")
            awake(here)
            await until(lambda: here.statistics().sessions == 0)
            record = await there.session("s").record()
    assert outcomes(record) == ["orphaned"]


async def test_deps_that_cannot_be_made_cost_that_session_alone(place: Path | str, caplog: pytest.LogCaptureFixture) -> None:
    """The system runs on; the mail stays where it is."""

    def broken() -> Effects:
        raise ValueError("no database")

    async with system_on(place) as system:
        await system.open(played(), session="s", deps=Effects())
    agent = played(say("here"))
    async with open_system(store=url_of(place), agents=[agent], deps={agent: broken}) as system:
        with pytest.raises(StartFailed, match="no database"):
            await system.session("s").ask("hello?")
        store: Any = system._root.store
        await store.send(Draft("s", UserMessage("wake up"), FromUser()))
        await until(lambda: "could not be taken up: s did not start: ValueError: no database" in caplog.text)
        assert (await system.sessions())[0].unread == 1
