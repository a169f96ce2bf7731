"""Deferred calls outlive processes: killed, opened again, stopped at the very moment of an answer, they are answered once."""

from pathlib import Path
from typing import ClassVar

import pytest
import trio
from durable import Effects, killed, outcomes, system_on, until
from postgres_server import empty
from postgres_stores import Losing, rows

from actors import Agent, Outcome, SessionRecord, ToolContext, UnknownToken, UserItem, tool
from actors.models import Scripted, ScriptedModel, call, calls, say
from actors.store import _pg_pool
from actors.store.memory import MemoryStore
from actors.store.postgres import PostgresStore
from actors.store.sqlite import SQLiteStore
from supervision import System, open_system

PAID = Outcome.completed("paid 5")


BANK: dict[str, str] = {}  # by idempotency key, the token that it will answer to


class Till(Agent):
    """You give money back."""

    model: ClassVar[ScriptedModel] = ScriptedModel([])
    deps: Effects

    @tool
    async def refund(self, context: ToolContext) -> Outcome:
        """Give it back, once somebody has said yes."""
        self.deps.keys.append(context.continuation)
        return Outcome.deferred("a person has to say yes")

    @tool(idempotent=True)
    async def refund_safely(self, context: ToolContext) -> Outcome:
        """Tell the bank, under the call's key, and who it is to answer; it takes some time to return."""
        BANK.setdefault(context.idempotency_key, context.continuation)  # a bank that has the key already does nothing
        self.deps.keys.append(context.idempotency_key)
        if self.deps.waits:
            await self.deps.ends.wait()
        return Outcome.deferred("the bank has to pay")

    @tool
    async def work(self) -> str:
        """Work until it is over."""
        await self.deps.ends.wait()
        return "worked"


def till(*script: Scripted) -> type[Till]:
    """One whose model plays this script; its sessions are the same till's."""
    return type("Till", (Till,), {"model": ScriptedModel(script), "__doc__": "You give money back."})


def told(record: SessionRecord) -> list[str]:
    """What the model was told, as user."""
    return [item.text for item in record.items if isinstance(item, UserItem)]


async def answered(system: System, count: int = 2) -> SessionRecord:
    """The session, once it has answered so often."""
    session = system.session("s")
    while True:
        record = await session.record()
        if record.status == "idle" and len(record.items) == 2 + 2 * count:
            return record
        await trio.sleep(0.01)


# ------------------------------------------------------------------ opened again
async def test_a_call_deferred_by_a_process_that_was_killed_is_answered_in_the_next(place: Path | str) -> None:
    """The answer wakes the session wherever its class is known; nothing ran twice, and nothing was lost."""
    effects = Effects()
    await killed(place, till(call("refund"), say("asked")), effects)
    later = till(say("asked"), say("It is paid."))
    async with system_on(place, later, deps=effects) as system:
        record = await system.session("s").record()
        [row] = record.calls
        assert (row.status, row.outcome, effects.keys) == ("deferred", None, [])
        receipt = await system.complete(str(row.token), PAID)
        again = await system.complete(str(row.token), PAID)
        assert (again.id, again.duplicate) == (receipt.id, True)
        record = await answered(system)
        assert told(record) == ["go", f"[mail {receipt.id}: call call_1 (refund) completed]\npaid 5"]
    async with system_on(place, till(), deps=effects) as system:
        assert told(await system.session("s").record()) == told(record)
        assert (await system.complete(str(row.token), PAID)).duplicate


async def test_the_token_of_a_call_that_is_started_again_is_the_same(place: Path | str) -> None:
    """The bank has it from the first attempt, and heeds no second one: its answer would be nobody's."""
    BANK.clear()
    effects = Effects()
    await killed(place, till(call("refund_safely")), effects)
    async with system_on(place, till(say("asked"), say("It is paid.")), deps=effects) as system:
        await until(lambda: len(effects.keys) == 1)
        await system.session("s").wait_answer()
        await system.complete(BANK["s/call_1"], PAID)
        record = await answered(system)
        assert (record.calls[0].outcome, outcomes(record)) == (PAID, ["deferred"])
        other = await system.session("s").fork(session="t")
        assert other._session().state.seal not in {"", system.session("s")._session().state.seal}


async def test_an_answer_is_taken_where_nobody_can_run_the_session(place: Path | str) -> None:
    """A webhook's process knows no agents; whoever runs the session reads it there."""
    effects = Effects(waits=False)
    agent = till(call("refund"), say("asked"), say("It is paid."))
    async with system_on(place, agent, deps=effects) as system:
        session = await system.open(agent, session="s", deps=effects)
        assert await session.ask("go") == "asked"
    async with system_on(place) as system:
        await system.complete(effects.keys[0], PAID)
        with pytest.raises(UnknownToken):
            await system.complete("another", PAID)
    async with system_on(place, till(say("It is paid.")), deps=effects) as system:
        record = await answered(system)
        assert (outcomes(record), record.calls[0].outcome) == (["deferred"], PAID)


async def test_a_session_in_memory_waits_for_its_answer_as_long_as_its_store_is_there() -> None:
    """What is opened again on that store goes on."""
    store, effects = MemoryStore(), Effects()
    with trio.fail_after(5):
        async with open_system(store=store) as system:
            session = await system.open(till(call("refund"), say("asked")), session="s", deps=effects)
            assert await session.ask("go") == "asked"
        async with open_system(store=store) as system:
            await system.open(till(say("It is paid.")), session="s", deps=effects)
            await system.complete(effects.keys[0], PAID)
            record = await answered(system)
            assert record.calls[0].outcome == PAID


# ------------------------------------------------------------------ at the same moment
async def test_a_stop_that_meets_an_answer_of_another_process_keeps_the_answer(place: Path | str) -> None:
    """It was accepted: the run stops, and the call is what it is. The next words find it told."""
    effects = Effects()
    agent = till(calls(call("refund"), call("work")), say("stopped and paid"))
    other = SQLiteStore(str(place)) if isinstance(place, Path) else PostgresStore(place)
    async with system_on(place, agent, deps=effects) as system:
        session = await system.open(agent, session="s", deps=effects)
        await session.send("go")
        await until(lambda: bool(effects.keys))
        loop = session._session().session
        await until(lambda: bool(loop.state.deferred))
        await other.open()
        async with loop.calls.ending:  # it has the order, and decides when this is left
            await session.stop_run()
            await other.complete(effects.keys[0], PAID)
        await until(lambda: loop.state.status == "idle")
        record = await session.record()
        assert [row.outcome and row.outcome.status for row in record.calls] == ["completed", "cancelled"]
        assert outcomes(record) == ["completed", "cancelled"]
        assert await session.ask("well?") == "stopped and paid"
        await other.close()


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_call_whose_deferral_was_not_heard_of_is_deferred_once(
    losing: type[Losing], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The server was away for too long to tell: whatever became of it, the call waits for its answer."""
    monkeypatch.setattr(_pg_pool, "PATIENCE", 0.0)
    effects = Effects()
    agent = till(call("refund_safely"), say("asked"), say("It is paid."))
    async with system_on(empty(), agent, deps=effects) as system:
        session = await system.open(agent, session="s", deps=effects)
        BANK.clear()
        await session.send("go")
        await until(lambda: bool(effects.keys))
        losing.lose = moment
        effects.ends.set()
        assert await session.wait_answer() == "asked"
        await system.complete(BANK["s/call_1"], PAID)
        assert ((await answered(system)).calls[0].outcome, losing.lost, effects.keys) == (PAID, 1, ["s/call_1"])


async def test_a_session_that_waits_for_an_answer_alone_is_no_process_s_to_run(place: Path | str) -> None:
    """A thousand of them cost nothing: nobody takes them up as they are."""
    effects = Effects()
    agent = till(call("refund"), say("asked"))
    async with system_on(place, agent, deps=effects) as system:
        session = await system.open(agent, session="s", deps=effects)
        await session.ask("go")
    async with system_on(place, till(), deps=effects) as system:
        await trio.sleep(0.3)
        if isinstance(place, str):
            assert rows(place, "SELECT holder FROM sessions") == [(None,)]
        assert [node.address for node in system.tree()] == []
