"""An agent's own handlers: what they take, when they run, and that the model never sees it."""

from typing import Any

import pytest
import trio
from attrs import frozen
from scenes import Diary, Worker, scene, virtual_time

from actors import (
    ActorsError,
    Agent,
    ConfigError,
    Control,
    Envelope,
    FromUser,
    Priority,
    Reject,
    RunFailed,
    ToolCallFinished,
    UserMessage,
    from_json,
    handle,
    to_json,
)
from actors.models import call, calls, say, slow

pytestmark = virtual_time


@frozen
class Price:
    """The price of something changed."""

    of: str
    amount: int


class Seller(Worker):
    """You sell."""

    interrupt_completions = True

    def __init__(self) -> None:
        self.prices: dict[str, int] = {}
        self.running = 0

    @handle
    async def price(self, message: Price) -> str:
        """Note it."""
        assert self.mail.body is message
        self.running += 1
        assert self.running == 1
        await trio.sleep(1)
        self.running -= 1
        if message.amount < 0:
            raise Reject("no price is negative")
        if message.amount > 1000:
            raise ValueError("too dear")
        self.prices[message.of] = message.amount
        return "noted"


def prices(here: Any) -> dict[str, int]:
    """What the agent of this scene knows."""
    known: dict[str, int] = here.session._session().session.agent.prices
    return known


async def test_a_handled_message_wakes_the_agent_and_not_its_model() -> None:
    """No run begins; nothing of it is in any request."""
    async with scene(say("ok"), agent=Seller) as here:
        await here.session.send(Price("tea", 3))
        await here.idle()
        assert (prices(here), here.asked, here.status()) == ({"tea": 3}, 0, "ready")
        await here.session.ask("go")
        assert here.words(0) == "go"
        assert here.unread() == []


async def test_they_run_one_at_a_time_and_in_order() -> None:
    """As in any actor."""
    async with scene(agent=Seller) as here:
        for amount in (1, 2, 3):
            here.session.send_nowait(Price("tea", amount))
        await here.idle()
        assert (prices(here), round(trio.current_time())) == ({"tea": 3}, 3)


async def test_they_wait_for_the_end_of_a_round() -> None:
    """Neither a completion nor attached calls have company."""
    async with scene(slow(5, call("work", seconds=5)), say("ok"), agent=Seller) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.interrupt(Price("tea", 3))
        await trio.sleep(6)
        assert prices(here) == {}
        await here.session.wait_answer()
        assert (prices(here), here.asked, trio.current_time()) == ({"tea": 3}, 2, 11)


async def test_a_pause_holds_them_up_too() -> None:
    """Until it is over."""
    async with scene(agent=Seller, resume_on_any_mail=True) as here:
        await here.session.pause()
        await here.session.send(Price("tea", 3))
        await trio.sleep(10)
        assert prices(here) == {}
        await here.session.resume()
        await here.idle()
        assert prices(here) == {"tea": 3}


async def test_they_end_no_wait_of_the_model() -> None:
    """Nobody spoke to it."""
    async with scene(call("wait", **{"for": "mail"}, timeout_seconds=20), say("ok"), agent=Seller, toolbox=("wait",)) as here:
        await here.session.send("go")
        await trio.sleep(3)
        await here.session.send(Price("tea", 3))
        await here.idle()
        assert '"woken_by":"timeout"' in here.results(1)[0]


async def test_mail_around_them_is_read_by_the_model_in_its_order() -> None:
    """Each goes to its own."""
    async with scene(slow(5, say("ok")), say("seen"), agent=Seller) as here:
        await here.session.send("go")
        await trio.sleep(1)
        for body in ("a", Price("tea", 1), "b", Price("tea", 2)):
            await here.session.send(body)
        await here.idle()
        assert [envelope.body for envelope in here.request(1).transcript[-1].mail] == [UserMessage("a"), UserMessage("b")]  # type: ignore[union-attr]
        assert (prices(here), here.unread()) == ({"tea": 2}, [])


async def test_a_rejected_message_is_a_dead_letter_and_the_session_goes_on() -> None:
    """As in any actor that was told, not asked."""
    async with scene(say("ok"), agent=Seller) as here:
        await here.session.send(Price("tea", -1))
        await here.idle()
        assert here.system.dead_letters[0].reason == "no price is negative"
        assert (await here.session.ask("go"), here.events("restarted")) == ("ok", [])


async def test_one_that_raises_crashes_the_loop_once() -> None:
    """Its message is a dead letter; the next life, of the same agent, does not handle it again."""
    async with scene(say("ok"), agent=Seller) as here:
        restarted: list[object] = []
        here.system.listen(lambda event: restarted.append(event) if event.kind == "restarted" else None)
        await here.session.send(Price("tea", 1))
        await here.session.send(Price("tea", 2000))
        await here.session.send(Price("milk", 2))
        await here.idle()
        assert (prices(here), len(restarted)) == ({"tea": 1, "milk": 2}, 1)
        assert here.system.dead_letters[0].reason == "being handled when its actor crashed: ValueError('too dear')"
        assert await here.session.ask("go") == "ok"


@pytest.mark.parametrize("again", ["words", "resume", "pause", "stop"])
async def test_a_loop_that_is_given_up_while_calls_are_open_leaves_a_history_that_goes_on(again: str) -> None:
    """Each call has its result, whoever has the run tried again, and its results are asked for first."""
    async with scene(calls(call("work", seconds=5), call("work")), say("so far"), say("here"), agent=Seller) as here:
        await here.session.send("go")
        await trio.sleep(1)
        for amount in range(1001, 1007):  # a crash each, when the calls have ended
            await here.session.send(Price("tea", amount))
        with pytest.raises(RunFailed, match="too dear"):
            await here.session.wait_answer()
        assert (here.status(), here.asked) == ("failed", 1)
        orders = {"resume": ["resume"], "pause": ["pause", "resume"], "stop": ["stop_run"]}
        for order in orders.get(again, ()):
            await getattr(here.session, order)()
        await here.idle()
        assert await here.session.ask("still there?") == ("so far" if again in {"words", "stop"} else "here")
        assert (here.results(1), here.status()) == (["worked", "worked"], "idle")
        await here.session.stop()


async def test_a_failed_session_with_open_calls_rests() -> None:
    """It drains no inbox, and `drain` has nothing to wait for."""
    diary = Diary()
    async with scene(call("work", seconds=5), say("so far"), agent=Seller, deps=diary, inbox=diary) as here:
        await here.session.send("go")
        await trio.sleep(1)
        for amount in range(1001, 1007):
            await here.session.send(Price("tea", amount))
        with pytest.raises(RunFailed):
            await here.session.wait_answer()
        diary.host.append("from the host")
        await here.session.send_after(1, "wakes nothing")
        await trio.sleep(10)
        assert (here.status(), here.asked, diary.host) == ("failed", 1, ["from the host"])
        assert [event.kind for event in here.events("run_stopped")] == ["run_stopped"]
        with trio.fail_after(0.1):
            await here.session.stop("drain")


async def test_a_body_that_nothing_takes_is_refused_with_what_would_be() -> None:
    """The text names them."""
    async with scene(agent=Seller) as here:
        with pytest.raises(TypeError, match="takes str, UserMessage, AgentMessage, Price, not int"):
            await here.session.send(7)


@pytest.mark.parametrize("kind", [str, UserMessage, object, ToolCallFinished, Control])
def test_what_is_the_models_or_the_runtimes_cannot_be_handled(kind: type) -> None:
    """It would never arrive."""
    with pytest.raises(ConfigError, match=f"Greedy.take handles {kind.__name__}, but those go to the model or the runtime"):

        class Greedy(Agent):
            @handle
            def take(self, message: kind) -> None:  # type: ignore[valid-type]
                """Take what is not its own."""


def test_its_message_classes_have_json() -> None:
    """A store keeps them; nobody needs to register them."""
    envelope = Envelope("m-1", 1, FromUser(), Priority.NORMAL, 0, 0.0, None, Price("tea", 3))
    assert from_json(to_json(envelope)).body == Price("tea", 3)


async def test_what_only_a_plain_actor_can_do_says_so() -> None:
    """A session's mail is read by its loop, and it ends by a stop."""

    class Wrong(Worker):
        def __init__(self) -> None:
            self.told: list[str] = []

        @handle
        async def price(self, message: Price) -> None:
            """Try all of it."""
            with pytest.raises(ActorsError, match="an agent's handler has no `receive`"):
                await self.receive(Price)
            with pytest.raises(ActorsError, match="an agent does not `finish`"):
                self.finish(message)
            with pytest.raises(ActorsError, match="an agent has no `send_after`"):
                self.send_after(1, message)
            self.told.append("all")

    async with scene(agent=Wrong) as here:
        await here.session.send(Price("tea", 1))
        await here.idle()
        assert here.session._session().session.agent.told == ["all"]
