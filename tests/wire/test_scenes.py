"""The same scenes for every provider, each a real session: the strict server takes every request, and what it got is recorded."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import snapshots
import trio
import trio.testing
from fake_server import Answer, Scripted
from providers import Provider
from stage import PNG, THEN, Stage, each_provider, on_stage

from actors import Outcome, UserMessage

Play = Callable[[Stage], Awaitable[None]]
SCENES: dict[str, tuple[list[Scripted], Play, dict[str, Any]]] = {}
LOOK_TWICE: list[tuple[str, dict[str, Any] | str]] = [("look", {"at": "prod"}), ("look", {"at": "staging"})]


def scene(*answers: Scripted, **options: Any) -> Callable[[Play], Play]:
    """A scene of this name, what the server answers in it, and the session's options."""

    def note(play: Play) -> Play:
        SCENES[play.__name__] = [*answers], play, options
        return play

    return note


@scene(Answer(text="All quiet."), Answer(text="Still quiet."))
async def plain(here: Stage) -> None:
    assert await here.session.ask("What is new?") == "All quiet."
    assert await here.session.ask("And now?") == "Still quiet."


@scene(Answer(text="Let me see.", calls=[*LOOK_TWICE, ("fall", {"at": "test"}), ("look", {"of": 3})]), THEN)
async def parallel_calls(here: Stage) -> None:
    assert await here.session.ask("What is new?") == "Very well."
    assert sorted(here.props.ran) == ["prod", "staging"]


@scene(Answer(calls=[("fetch", {"at": "prod"}), ("look", {"at": "staging"})]), Answer(text="Staging first."), THEN)
async def detached(here: Stage) -> None:
    assert await here.session.ask("What is new?") == "Staging first."
    here.props.gate.set()
    assert await here.answered() == "Very well."


async def ask_a_person(amount: int) -> Outcome:
    """Have somebody say yes."""
    return Outcome.deferred(f"a person has to agree to {amount}")


async def answer(here: Stage, call: str, outcome: Outcome) -> None:
    """As that person, once the call is deferred."""
    while True:
        found = next((row for row in (await here.session.record()).calls if row.id == call), None)
        if found is not None and found.status == "deferred":
            await here.system.complete(str(found.token), outcome)
            return
        await trio.sleep(0.002)


@scene(
    Answer(calls=[("ask_a_person", {"amount": 5}), ("look", {"at": "prod"})]), Answer(text="I have asked."),
    Answer(calls=[("ask_a_person", {"amount": 500}), ("wait", {"for": ["call_3"]})]), THEN,
    tools=[ask_a_person],
)  # fmt: skip
async def deferred(here: Stage) -> None:
    assert await here.session.ask("Pay them.") == "I have asked."
    await answer(here, "call_1", Outcome.completed({"agreed": True}))
    await answer(here, "call_3", Outcome.denied("not that much"))
    assert await here.answered() == "Very well."


@scene(Answer(calls=[("hold", {"at": "prod"})]), THEN, Answer(text="Both."))
async def mail_after_results(here: Stage) -> None:
    await here.session.send("What is new?")
    await here.props.held.wait()
    await here.session.send("Staging, too.")
    await here.session.send("And test.")
    here.props.gate.set()
    assert await here.answered() == "Very well."
    assert await here.session.ask("And?") == "Both."


@scene(Answer(text="Once upon a time there was a log", hang_after=4), THEN, interrupt_completions=True)
async def interrupt_in_mid_answer(here: Stage) -> None:
    await here.session.send("Tell me a story.")
    await here.server.sent.wait_value(lambda sent: sent >= 3)
    await here.session.interrupt("Just the errors.")
    assert await here.answered() == "Very well."


@scene(Answer(calls=[("hold", {"at": "prod"}), ("look", {"at": "test"})]), Answer(text="Staging."), THEN)
async def interrupt_in_mid_call(here: Stage) -> None:
    await here.session.send("What is new?")
    await here.props.held.wait()
    await here.session.interrupt("Staging!")
    await here.asked(2)
    here.props.gate.set()
    await here.asked(3)
    assert await here.answered() == "Very well."


@scene(Answer(calls=[("fetch", {"at": "prod"}), ("wait", {"for": "any_call"})]), Answer(text="Later, then."), THEN)
async def interrupt_in_mid_wait(here: Stage) -> None:
    await here.session.send("What is new?")
    await here.props.held.wait()
    await trio.testing.wait_all_tasks_blocked(0.01)
    await here.session.interrupt("Never mind prod.")
    await here.asked(2)
    here.props.gate.set()
    await here.asked(3)
    assert await here.answered() == "Very well."


@scene(Answer(text="Hello."), THEN)
async def interrupt_at_rest(here: Stage) -> None:
    await here.session.ask("Hello?")
    await here.session.interrupt("Wake up!")
    await here.asked(2)
    assert await here.answered() == "Very well."


@scene(Answer(calls=[("look", {"at": "test"}), ("hold", {"at": "prod"})]), THEN)
async def cancel_calls(here: Stage) -> None:
    await here.session.send("What is new?")
    await here.props.held.wait()
    await here.session.cancel_attached()
    assert await here.answered() == "Very well."


@scene(Answer(calls=[("look", {"at": "test"}), ("hold", {"at": "prod"})]), THEN)
async def stop_in_mid_call(here: Stage) -> None:
    await here.session.send("What is new?")
    await here.props.held.wait()
    await here.session.stop_run()
    assert await here.session.ask("Again, please.") == "Very well."


@scene(Answer(text="Once upon a time there was a log", hang_after=4), THEN)
async def stop_in_mid_answer(here: Stage) -> None:
    await here.session.send("Tell me a story.")
    await here.server.sent.wait_value(lambda sent: sent >= 3)
    await here.session.stop_run()
    assert await here.session.ask("The short one, please.") == "Very well."


@scene(Answer(text="See.", calls=[("photograph", {"at": "the rack"}), ("look", {"at": "prod"})]), THEN)
async def images(here: Stage) -> None:
    assert await here.session.ask(UserMessage("What is this?", (PNG,))) == "Very well."


@scene(
    Answer(thinking="Prod, perhaps.", text="I look.", calls=LOOK_TWICE),
    Answer(thinking="Both are quiet.", calls=[("look", {"at": "test"})]),
    Answer(thinking="So it is.", text="All quiet."),
    THEN,
)
async def thinking(here: Stage) -> None:
    assert await here.session.ask("What is new?") == "All quiet."
    assert await here.session.ask("Sure?") == "Very well."


@scene(*[Answer(text=f"Round {number}.", calls=LOOK_TWICE) for number in range(12)], THEN, THEN, max_rounds=20)
async def long_history(here: Stage) -> None:
    await here.session.ask("Keep looking.")
    assert await here.session.ask("Enough?") == "Very well."


@scene(Answer(), Answer(text="Sorry. All quiet."))
async def empty_answer(here: Stage) -> None:
    assert await here.session.ask("What is new?") == "Sorry. All quiet."


@scene(Answer(status=400, message="you are too long for me"), Answer(text="Now I can."))
async def refused(here: Stage) -> None:
    with pytest.raises(Exception, match="you are too long for me"):
        await here.session.ask("What is new?")
    assert await here.session.ask("And shorter?") == "Now I can."


@scene(Answer(text="Once upon a time", cut_after=3), THEN)
async def cut(here: Stage) -> None:
    assert await here.session.ask("Tell me a story.") == "Very well."


@each_provider
@pytest.mark.parametrize("name", SCENES)
async def test_a_scene_is_taken_by_the_strictest_server_and_sends_what_was_recorded(
    name: str, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One agent, any provider: what differs is on record, and nothing of it bricks a session."""
    answers, play, options = SCENES[name]
    async with on_stage(provider, monkeypatch, *answers, **options, **provider.options_for(name)) as here:
        await play(here)
        bodies = here.server.bodies
    found = snapshots.recorded(bodies[:1] + bodies[-1:] if name == "long_history" else bodies, tools=name == "plain")
    assert found == snapshots.kept(f"{provider}/{name}", found)
