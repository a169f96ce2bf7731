"""Sessions in a system: how they are opened, found, kept and bounded."""

import gc
from typing import Any

import pytest
import trio
from scenes import Diary, Worker, scene, virtual_time
from storms import SlowStore

from actors import (
    AgentMessage,
    ConfigError,
    Control,
    FromToolCall,
    Limits,
    MailboxFull,
    Outcome,
    Pause,
    RecipientStopped,
    TimerFired,
    ToolCallFinished,
    UnknownRecipient,
    UserMessage,
)
from actors.models import ScriptedModel, call, calls, say
from actors.store.memory import MemoryStore
from supervision import SessionRef, System, open_system

pytestmark = virtual_time


class Other(Worker):
    """You are another one."""


def told(*texts: str) -> dict[str, Any]:
    """Options of a session whose model says these."""
    return {"model": ScriptedModel([say(text) for text in texts]), "deps": Diary()}


# ------------------------------------------------------------------ opening
async def test_an_open_session_is_opened_again_as_the_same_and_needs_no_options() -> None:
    """Whoever opened it first chose them."""
    async with scene(say("ok")) as here:
        again = await here.system.open(Worker, session="s")
        assert again == here.session
        assert await again.ask("go") == "ok"


@pytest.mark.parametrize("live", [True, False])
async def test_a_session_is_of_one_class(*, live: bool) -> None:
    """Another agent would read its transcript as its own."""
    store = MemoryStore()
    async with open_system(store=store) as system:
        session = await system.open(Worker, session="s", **told("ok"))
        await session.ask("go")
        if live:
            with pytest.raises(ConfigError, match="s is a session of Worker already; choose another id"):
                await system.open(Other, session="s", **told())
    if not live:
        async with open_system(store=store) as system:
            with pytest.raises(ConfigError, match="session s is kept as Worker's, not Other's"):
                await system.open(Other, session="s", **told())


async def test_the_name_of_an_actor_is_no_session_s() -> None:
    """One address, one place."""
    async with open_system() as system:
        await system.spawn(_rests, name="s")
        with pytest.raises(ConfigError, match="s is an actor already; choose another id"):
            await system.open(Worker, session="s", **told())


async def _rests(_context: object) -> None:
    await trio.sleep_forever()


async def test_two_who_open_one_id_at_once_get_one_session() -> None:
    """A store that takes its time lets both ask before it answers either."""
    found: list[SessionRef] = []

    async def open_it(system: System) -> None:
        found.append(await system.open(Worker, session="s", **told("ok")))

    async with open_system(store=_SlowToLoad()) as system:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(open_it, system)
        assert found == [system.session("s")] * 3
        assert await found[2].ask("go") == "ok"


class _SlowToLoad(MemoryStore):
    async def load(self, session: str) -> Any:
        """After a while."""
        await trio.sleep(1)
        return await super().load(session)


async def test_a_session_without_an_id_gets_a_short_one_that_nobody_has() -> None:
    """Not here, and not in the store: it is a new one."""
    store = MemoryStore()
    for expected in ("worker-1", "worker-2"):
        async with open_system(store=store) as system:
            session = await system.open(Worker, **told("ok"))
            assert session.address == expected
            await session.ask("go")
            assert len((await session.record()).items) == 2


@pytest.mark.parametrize("id", ["", "a b", "a/call_1", "call_1", "a//b", "x" * 65])
async def test_an_id_that_is_no_address_is_refused(id: str) -> None:
    """The error says what one is; `call_` is ours."""
    async with open_system() as system:
        with pytest.raises(ConfigError):
            await system.open(Worker, session=id, **told())


async def test_what_is_no_agent_is_not_opened() -> None:
    """Actors are spawned."""
    async with open_system() as system:
        with pytest.raises(ConfigError, match="open takes an Agent class"):
            await system.open(Diary)  # type: ignore[arg-type]


async def test_a_stopped_session_is_not_opened_again() -> None:
    """It ended for good; its id is not for another."""
    async with scene() as here:
        await here.session.stop()
        with pytest.raises(RecipientStopped):
            await here.system.open(Worker, session="s", **told())


async def test_a_session_that_is_kept_goes_on_where_it_was() -> None:
    """Its transcript, its answer, its unread mail."""
    store = MemoryStore()
    async with scene(say("one"), store=store) as here:
        await here.session.ask("go")
        await here.idle()
        await here.session.pause()
        await here.settled()
        await here.session.send("unread")
    async with scene(say("two"), store=store) as here:
        assert here.status() == "paused"
        await here.session.resume()
        await here.idle()
        assert await here.session.wait_answer() == "two"
        assert (here.words(0), len(here.request(0).transcript)) == ("unread", 3)


async def test_the_last_answer_of_a_kept_session_is_known_at_once() -> None:
    """It was given in another life."""
    store = MemoryStore()
    async with scene(say("one"), store=store) as here:
        await here.session.ask("go")
        await here.idle()
    async with scene(store=store) as here:
        assert await here.session.wait_answer() == "one"


# ------------------------------------------------------------------ mail
@pytest.mark.parametrize("body", ["words", UserMessage("words"), AgentMessage("words")])
async def test_a_session_takes_words(body: Any) -> None:
    """Of people and of agents."""
    async with scene(say("ok")) as here:
        await here.session.send(body)
        assert await here.session.wait_answer() == "ok"
        assert here.words(0).endswith("words")


@pytest.mark.parametrize(
    "body",
    [
        7,
        None,
        {"text": "hi"},
        Control(Pause()),
        ToolCallFinished("call_1", "work", Outcome.completed("forged")),
        TimerFired("t"),
    ],
)
async def test_anything_else_is_a_type_error(body: object) -> None:
    """Nobody forges what the runtime says."""
    async with scene() as here:
        with pytest.raises(TypeError, match="s is a session and takes str, UserMessage, AgentMessage, not"):
            await here.session.send(body)
        assert here.box.unread(0) == []


@pytest.mark.parametrize("early", [True, False])
async def test_every_ref_of_a_session_goes_through_its_rules(*, early: bool) -> None:
    """Also one that was made before there was a session, and one that sent before."""
    async with open_system() as system:
        ref = system.ref("s") if early else None
        session = await system.open(Worker, session="s", **told("ok", "ok"))
        ref = ref or system.ref("s")
        for _ in range(2):
            ref.send_nowait("words")
            with pytest.raises(TypeError):
                ref.send_nowait(7)
        await system.wait_idle()
        assert {type(each.body) for item in (await session.record()).items for each in getattr(item, "mail", ())} == {
            UserMessage
        }


async def test_a_full_mailbox_refuses_and_makes_room_as_it_is_read() -> None:
    """Nothing is kept of what was refused; a refusal is an event."""
    async with scene(say("ok"), say("ok"), limits=Limits(max_unread=2)) as here:
        await here.session.pause()
        await here.settled()
        for text in ("one", "two"):
            await here.session.send(text)
        with pytest.raises(MailboxFull):
            await here.session.send("three")
        assert [event.error for event in here.events("refused")] == [
            "s has 2 unread messages of at most 2; nothing was kept: wait for room with send(..., wait=seconds), or send less"
        ]
        await here.session.resume()
        await here.session.send("three", wait=5)
        await here.idle()
        assert [each.body.text for item in (await here.record()).items for each in getattr(item, "mail", ())] == [
            "one",
            "two",
            "three",
        ]


async def test_the_end_of_a_call_of_a_run_from_far_away_is_kept() -> None:
    """Its mail carries more hops than anybody may send; refused, it would be lost."""
    async with scene(call("background", seconds=5), say("ok"), say("seen")) as here:
        here.box.accept(AgentMessage("go"), FromToolCall("s", "call_0"), hops=16)
        await here.idle()
        assert [event.outcome.status for event in here.events("tool_finished")] == ["completed"]
        assert (here.status(), here.asked) == ("idle", 2)
        await here.session.ask("and?")
        assert "worked" in here.words(2)


# ------------------------------------------------------------------ looking
async def test_the_status_of_a_session_is_the_session_s() -> None:
    """Not that of the task that runs it."""
    async with scene(calls(call("work", seconds=5), call("background", seconds=9)), say("ok"), say("seen")) as here:
        seen = [here.status()]
        await here.session.send("go")
        for _ in range(3):
            await trio.sleep(4)
            seen.append(here.status())
        await here.session.stop()
        assert [*seen, here.status()] == ["ready", "running", "waiting", "idle", "stopped"]
        assert here.system.session("s").status.value == "stopped"


async def test_a_ref_of_nobody_fails_when_it_is_used() -> None:
    """Making one never does."""
    async with scene() as here:
        with pytest.raises(UnknownRecipient, match="did you mean s"):
            await here.system.session("ss").send("hello")
        with pytest.raises(UnknownRecipient):
            await here.system.session("nobody").record()


async def test_the_record_is_what_is_kept() -> None:
    """All of it, or its end."""
    async with scene(call("work"), say("ok")) as here:
        await here.session.ask("go")
        await here.idle()
        record = await here.session.record()
        assert (record.id, record.agent, record.parent, record.owner, record.status) == ("s", "Worker", None, None, "idle")
        assert [type(item).__name__ for item in record.items] == ["UserItem", "AssistantItem", "ResultsItem", "AssistantItem"]
        assert [row.id for row in record.calls] == ["call_1"]
        assert (await here.session.record(last=1)).items == record.items[-1:]


async def test_what_a_round_looks_at_does_not_grow() -> None:
    """Round 1,000 costs what round 10 did: nothing but the transcript itself gets longer."""
    async with scene(*[call("work")] * 300, say("ok"), max_rounds=500) as here:
        await here.session.ask("go")
        await here.idle()
        session = here.session._session().session
        assert (len(session.state.calls), len(session.state.items)) == (300, 602)
        small = (
            session.state.live,
            session.state.placeholders,
            session.state.fetched,
            session.turn.began,
            session.calls.progress,
        )
        assert [len(each) for each in small] == [0] * 5
        assert (len(session.turn.asked), len(here.box.unread(0)), len(here.session._session().children or ())) == (1, 0, 0)


async def test_the_calls_of_a_session_are_freed_with_their_end() -> None:
    """A million short calls leave nothing but their rows."""
    async with scene(*[calls(call("work"), call("background"))] * 50, say("ok"), *[say("seen")] * 9, max_rounds=500) as here:
        await here.session.ask("go")
        await here.idle()
        gc.collect()
        places = [each for each in gc.get_objects() if type(each).__name__ == "CallPlace"]
        assert len(places) <= 2


async def test_a_store_that_takes_its_time_changes_nothing_but_the_time() -> None:
    """Every commit waits for it; nothing is torn."""
    async with scene(calls(call("work", seconds=1), call("background")), say("ok"), say("seen"), store=SlowStore(0.5)) as here:
        assert await here.session.ask("go") == "ok"
        await here.idle()
        assert here.status() == "idle"
