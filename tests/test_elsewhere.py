"""A process that does not run a session and does not know its class: everything that a ref can do works all the same.

On both stores; the process that runs it is another system of this one.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import frozen
from durable import Clerk, Effects, outcomes, played, said, until
from postgres_server import empty

from actors import (
    AskTimeout,
    AssistantItem,
    ConfigError,
    RecipientStopped,
    RunFailed,
    Status,
    Stopped,
    TimerFired,
    UnknownRecipient,
    handle,
    tool,
)
from actors.models import ScriptedModel, call, calls, say, slow
from supervision import SessionRef, System, open_system


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, path: Path) -> str:
    """Where sessions are kept."""
    return empty() if request.param == "postgres" else f"sqlite:///{path}"


@frozen
class Pair:
    """Two systems: one runs `s`, the other follows."""

    here: System
    there: System
    session: SessionRef  # of the other one
    effects: Effects


@asynccontextmanager
async def pair(url: str, *script: Any, waits: bool = False, **options: Any) -> AsyncIterator[Pair]:
    """Both on one store; the agent's model plays the script."""
    agent, effects = played(*script), Effects(waits=waits)
    with trio.fail_after(20):
        async with open_system(store=url) as here, open_system(store=url) as there:
            await here.open(agent, session="s", deps=effects, **options)
            yield Pair(here, there, there.session("s"), effects)


async def orphan(url: str, agent: type[Clerk], **options: Any) -> None:
    """Leave a session that nobody runs."""
    async with open_system(store=url) as system:
        await system.open(agent, session="s", deps=Effects(), **options)


# ------------------------------------------------------------------ what can be told at once
async def test_nothing_is_sent_to_it_without_waiting_nor_is_its_status_made_up(url: str) -> None:
    """Whether it is there only the store knows; asked once, its status is known."""
    async with pair(url) as two:
        with pytest.raises(trio.WouldBlock, match="write `"):
            two.session.send_nowait("hello")
        with pytest.raises(trio.WouldBlock, match="record"):
            _ = two.session.status
        assert (await two.session.record()).status is two.session.status is Status.READY
        with pytest.raises(UnknownRecipient):
            await two.there.session("t").send("hello")


async def test_the_status_is_known_of_what_was_listed(url: str) -> None:
    """A list is a look."""
    async with pair(url) as two:
        await two.there.sessions()
        assert two.session.status is Status.READY


# ------------------------------------------------------------------ answers
async def test_it_is_asked_from_anywhere(url: str) -> None:
    """The answer to one's own words; also in a shape."""
    async with pair(url, call("book"), say("booked"), say("3"), say("never")) as two:
        assert await two.session.ask("go") == "booked"
        assert await two.session.ask("how many?", schema=int) == 3


async def test_an_ask_whose_run_has_no_answer_says_why(url: str) -> None:
    """Failed or stopped, it is told, not waited for."""
    async with pair(url, slow(60, say("never"))) as two:
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                with pytest.raises(RunFailed, match="without an answer"):
                    await two.session.ask("go")

            nursery.start_soon(ask)
            await until(lambda: two.here.session("s").status is Status.RUNNING)
            await two.session.stop_run()
        with pytest.raises(RunFailed, match="script of 1"):
            await two.session.ask("and now?")
        with pytest.raises(RunFailed, match="script of 1"):
            await two.session.wait_answer()


async def test_the_answer_of_the_run_is_waited_for(url: str) -> None:
    """Of the one about to begin, too; at rest the last one is there at once."""
    async with pair(url, slow(0.1, say("first"))) as two:
        with pytest.raises(RunFailed, match="never ran"):
            await two.session.wait_answer()
        await two.session.send("go")
        assert await two.session.wait_answer() == "first"
        assert await two.session.wait_answer(0.5) == "first"


async def test_a_session_that_nobody_runs_is_asked_too(url: str) -> None:
    """Its words wait for whoever takes it up."""
    await orphan(url, played())
    with trio.fail_after(20):
        async with open_system(store=url) as there:
            with pytest.raises(AskTimeout):
                await there.session("s").ask("anybody?", timeout=0.1)
            agent = played(say("here I am"))
            async with open_system(store=url, agents=[agent], deps={agent: Effects}):
                assert await there.session("s").wait_answer() == "here I am"


# ------------------------------------------------------------------ events
async def test_a_stream_tells_the_lifecycle_of_the_run(url: str) -> None:
    """In the order of the transcript, each call with its end, and then it ends."""
    async with pair(url, calls(call("book"), call("note")), say("done")) as two:
        async with two.session.stream("go") as events:
            kinds = [event.kind async for event in events]
        assert events.answer == "done"
        assert [kind for kind in kinds if kind != "status"] == [
            "run_started", "mail_delivered", "tool_started", "tool_started", "tool_finished", "tool_finished", "answer", "run_stopped"
        ]  # fmt: skip


async def test_a_message_that_is_sent_again_is_followed_from_where_it_was_read(url: str) -> None:
    """A process that died after sending finds its answer."""
    async with pair(url, call("book"), say("one"), say("two")) as two:
        await two.session.send("go", id="web-1")
        await two.session.wait_answer()
        await two.session.ask("more")
        async with two.session.stream("go", id="web-1") as events:
            kinds = [event.kind async for event in events]
        assert events.answer == "one"
        assert kinds[:2] == ["run_started", "mail_delivered"]


async def test_a_session_is_followed_until_it_ends(url: str) -> None:
    """From anywhere; one that is not there is told."""
    async with pair(url, say("one"), say("two")) as two:
        seen: list[str] = []

        async def follow() -> None:
            async with two.session.events() as events:
                entered.set()
                seen.extend([event.kind async for event in events])

        entered = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await entered.wait()
            for words in ("go", "more"):
                await two.session.ask(words)
            await two.here.session("s").stop()
        assert [kind for kind in seen if kind in {"answer", "exit"}] == ["answer", "answer", "exit"]
        with pytest.raises(UnknownRecipient):
            async with two.there.session("t").events():
                pass


# ------------------------------------------------------------------ timers
async def test_a_timer_is_set_and_cancelled_where_the_session_does_not_run(url: str) -> None:
    """Whoever runs it keeps it, and says whether it was in time."""
    async with pair(url, say("tea it is"), say("late")) as two:
        late = await two.session.send_after(60, "never")
        assert await two.session.cancel_timer(late) is True
        assert await two.session.cancel_timer(late) is False
        timer = await two.session.send_after(0.05, "tea is ready", label="tea")
        await until(lambda: two.here.session("s").status is Status.IDLE)
        [item, _] = (await two.session.record()).items
        assert [each.body for each in getattr(item, "mail", ())] == [TimerFired("tea", "tea is ready")]
        assert await two.session.cancel_timer(timer) is False


async def test_a_timer_of_a_session_that_nobody_runs_is_kept_and_can_be_cancelled(url: str) -> None:
    """It is set when somebody takes the session up; what was cancelled before never is."""
    await orphan(url, played())
    with trio.fail_after(20):
        async with open_system(store=url) as there:
            session = there.session("s")
            gone = await session.send_after(0, "never")
            assert await session.cancel_timer(gone) is True
            assert await session.cancel_timer("timer-0") is False
            await session.send_after(0.01, "tea is ready")
            agent = played(say("tea it is"))
            async with open_system(store=url, agents=[agent], deps={agent: Effects}):
                await until(lambda: len(agent.model.requests) == 1)
            [request] = agent.model.requests
            [item] = request.transcript
            assert "tea is ready" in getattr(item, "text", "")
            assert "never" not in getattr(item, "text", "")


# ------------------------------------------------------------------ orders, its end, copies
async def test_orders_reach_it_from_anywhere(url: str) -> None:
    """Whoever runs it applies them."""
    async with pair(url, say("one")) as two:
        await two.session.pause()
        await until(lambda: two.here.session("s").status is Status.PAUSED)
        await two.session.resume()
        assert await two.session.ask("go") == "one"
        assert said(await two.session.record()) == ["go"]


@pytest.mark.parametrize("mode", ["now", "kill"])
async def test_it_is_stopped_from_anywhere(url: str, mode: Any) -> None:
    """In the midst of a call; when `stop` returns it has ended, everywhere."""
    async with pair(url, call("book"), waits=True) as two:
        await two.session.send("go")
        await until(lambda: bool(two.effects.keys))
        assert await two.session.stop(mode) == Stopped("stop")
        with pytest.raises(RecipientStopped):
            await two.session.send("hello")
        assert await two.here.session("s").wait() == Stopped("stop")
        record = await two.session.record()
        assert (record.status, outcomes(record)) == (Status.STOPPED, ["cancelled"])


async def test_it_is_stopped_in_the_midst_of_an_answer_and_while_it_is_paused(url: str) -> None:
    """A stop waits for neither."""
    async with pair(url, slow(60, say("never"))) as two:
        await two.session.send("go")
        await until(lambda: two.here.session("s").status is Status.RUNNING)
        await two.session.stop()
        other = await two.here.open(played(), session="t", deps=two.effects)
        await other.pause()
        await until(lambda: other.status is Status.PAUSED)
        await two.there.session("t").stop()
        assert [each.status for each in await two.there.sessions()] == [Status.STOPPED] * 2


async def test_a_drain_from_elsewhere_lets_its_run_end(url: str) -> None:
    """Its last answer is given."""
    async with pair(url, slow(0.3, say("done"))) as two:
        await two.session.send("go")
        await until(lambda: two.here.session("s").status is Status.RUNNING)
        await two.session.stop("drain")
        assert [item.text for item in (await two.session.record()).items if isinstance(item, AssistantItem)] == ["done"]


async def test_it_is_deleted_from_anywhere(url: str) -> None:
    """Where it runs it is stopped first; nothing of it is left, and nothing brings it back."""
    async with pair(url, slow(60, say("never"))) as two:
        await two.session.send("go")
        await until(lambda: two.here.session("s").status is Status.RUNNING)
        await two.session.delete()
        assert await two.there.sessions() == await two.here.sessions() == []
        for ref in (two.session, two.here.session("s")):
            with pytest.raises(RecipientStopped):
                await ref.send("hello")


@frozen
class Leave:
    """Delete yourself."""


class Leaver(Clerk):
    """Deletes itself, by a call or by a handler; it is cancelled in there."""

    async def _leave(self) -> None:
        self.deps.keys.append("leaves")
        await self.find("s").delete()  # type: ignore[attr-defined]
        self.deps.keys.append("is still there")

    @tool
    async def leave(self) -> None:
        """Delete the session."""
        await self._leave()

    @handle
    async def told(self, _message: Leave) -> None:
        await self._leave()


@pytest.mark.parametrize("body", ["go", Leave()])
async def test_a_session_deletes_itself(url: str, body: Any) -> None:
    """Nothing of it is left."""
    effects = Effects()
    async with open_system(store=url) as system:
        session = await system.open(Leaver, session="s", model=ScriptedModel([call("leave")]), deps=effects)
        await session.send(body)
        assert await session.wait() == Stopped("stop")
        with trio.fail_after(10):
            while await system.sessions():  # noqa: ASYNC110  # a store has no event for it
                await trio.sleep(0.01)
    assert effects.keys == ["leaves"]


async def test_a_copy_is_made_from_anywhere(url: str) -> None:
    """It goes on where it was made; the original goes on where it runs."""
    async with pair(url, say("one"), say("two")) as two:
        assert await two.session.ask("go") == "one"
        with pytest.raises(ConfigError, match="is not registered"):
            await two.session.fork()
        two.there._root.waking.register(played(say("three")))
        copy = await two.session.fork(session="copy")
        assert said(await copy.record()) == ["go"]
        assert await two.session.ask("and?") == "two"
