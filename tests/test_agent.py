"""Agents as people write them: instructions, models, tools, options; what cannot be is told at once, with what to do."""

from collections.abc import Mapping
from typing import Any

import pytest
from scenes import Diary, Worker, scene, virtual_time

from actors import Agent, ConfigError, Exit, Limits, ModelError, RunFailed, StartFailed, Tool, tool
from actors.agent._agent import DETACHABLE, configure
from actors.models import ScriptedModel, call, fail, say
from supervision import open_system, run

pytestmark = virtual_time

MODEL = ScriptedModel([])


class Plain(Agent):
    """You are plain."""

    model = MODEL


class Undocumented(Plain):
    model = MODEL


Undocumented.__doc__ = None


class Told(Plain):
    """A docstring for programmers."""

    instructions = "You are told."


class ToldBelow(Told):
    """Another docstring for programmers."""


class Fresh(Told):
    """You are fresh."""

    instructions = None  # type: ignore[assignment]


class Computed(Agent):
    """For programmers."""

    model = MODEL

    def instructions(self) -> str:
        """Fresh in every run."""
        return f"You know {self.deps}."


class Static(Agent):
    model = MODEL

    @staticmethod
    def instructions() -> str:
        """The same for all."""
        return "You are static."


# ------------------------------------------------------------------ instructions
@pytest.mark.parametrize(
    ("agent", "text"),
    [
        (Plain, "You are plain."),
        (Undocumented, "You are plain."),
        (Told, "You are told."),
        (ToldBelow, "You are told."),
        (Fresh, "You are fresh."),
        (Computed, "You know Ann."),
        (Static, "You are static."),
    ],
)
async def test_instructions_are_the_attribute_else_the_nearest_docstring(agent: type[Agent], text: str) -> None:
    """An attribute that is inherited is an attribute."""
    async with scene(say("ok"), agent=agent, deps="Ann") as here:
        await here.session.ask("go")
        assert here.request(0).instructions == text


@pytest.mark.parametrize("given", ["You are given.", lambda: "You are given.", lambda agent: f"You are {agent.deps}."])
async def test_instructions_can_be_given_when_it_is_opened(given: Any) -> None:
    """A text, or a function with or without the agent."""
    async with scene(say("ok"), agent=Told, instructions=given, deps="given") as here:
        await here.session.ask("go")
        assert here.request(0).instructions == "You are given."


async def test_a_function_of_instructions_is_asked_once_per_run() -> None:
    """Within a run they stay, so that the provider's cache holds; the next run may know more."""
    days = iter(["Monday", "Tuesday"])
    async with scene(call("work"), say("ok"), say("ok"), instructions=lambda: f"It is {next(days)}.") as here:
        await here.session.ask("go")
        await here.session.ask("and now?")
        assert [request.instructions for request in here.model.requests] == ["It is Monday."] * 2 + ["It is Tuesday."]


async def test_instructions_that_raise_fail_the_run_and_not_the_session() -> None:
    """The reason names them; the message is kept, and read when a person speaks again."""
    moods = iter([ZeroDivisionError("one by none"), None])

    def instructions() -> str:
        mood = next(moods)
        if mood is not None:
            raise mood
        return "fine"

    async with scene(say("ok"), instructions=instructions) as here:
        with pytest.raises(RunFailed, match="the instructions of Worker could not be made: ZeroDivisionError: one by none"):
            await here.session.ask("go")
        assert await here.session.ask("again") == "ok"
        assert "go" in here.words(0)


@pytest.mark.parametrize("given", [7, ["a"], scene])
def test_instructions_that_are_no_text_are_refused(given: Any) -> None:
    """Before anything runs."""
    with pytest.raises(ConfigError, match="Plain: found instructions="):
        configure(Plain, {"instructions": given} if given is not scene else {"instructions": _coroutine})


async def _coroutine() -> str:
    return "too late"


# ------------------------------------------------------------------ models
def test_an_agent_without_a_model_is_told_what_to_write() -> None:
    """The first thing a newcomer forgets."""
    with pytest.raises(ConfigError, match=r'Worker has no model; write `model = "openai:gpt-5.2"` in the class'):
        configure(Worker, {})


@pytest.mark.parametrize(
    ("given", "told"),
    [("gpt-5", "gpt-5"), ("nobody:x", "nobody"), (7, "found model=7"), ([], "found model="), (["x:y", 7], "x")],
)
def test_a_model_that_is_none_is_refused(given: Any, told: str) -> None:
    """Loudly, with what there is."""
    with pytest.raises(ConfigError, match=told):
        configure(Worker, {"model": given})


async def test_the_options_of_a_model_go_into_every_request() -> None:
    """And a choice of tools, but for the wrap-up."""
    options = {"temperature": 0, "tool_choice": "required"}
    async with scene(call("work"), say("ok"), model_options=options, max_rounds=1) as here:
        await here.session.ask("go")
        assert [request.options for request in here.model.requests] == [{"temperature": 0}] * 2
        assert [request.tool_choice for request in here.model.requests] == ["required", "none"]


# ------------------------------------------------------------------ tools
def look(at: str) -> str:
    """Look."""
    return at


def names(agent: type[Agent], options: Mapping[str, Any]) -> list[str]:
    """The tools that a model would be told of."""
    return [schema.name for schema in configure(agent, {"model": MODEL, **options}).schemas]


class Listed(Agent):
    tools = (look,)

    @tool
    async def work(self) -> str:
        """Work."""
        return "worked"


def test_tools_given_when_it_is_opened_take_the_place_of_those_listed() -> None:
    """Methods stay: they are the agent."""
    assert names(Listed, {}) == ["work", "look"]
    assert names(Listed, {"tools": [Tool(look, name="see")]}) == ["work", "see"]
    assert names(Listed, {"tools": []}) == ["work"]


@pytest.mark.parametrize("given", [[Tool(look, name="work")], [look, look], [Tool(look, name="wait")]])
def test_two_tools_of_one_name_are_refused(given: Any) -> None:
    """A model could not tell them apart; a system tool's name is taken too."""
    with pytest.raises(ConfigError, match="name"):
        names(Listed, {"tools": given})


def test_system_tools_come_with_the_first_tool_that_can_detach() -> None:
    """Or as they are chosen."""
    assert names(Worker, {})[-4:] == list(DETACHABLE)
    assert names(Listed, {}) == ["work", "look"]
    assert names(Listed, {"toolbox": ["wait"]}) == ["work", "look", "wait"]
    with pytest.raises(ConfigError, match="there is no system tool 'wiat'; there are wait"):
        names(Listed, {"toolbox": ["wiat"]})


# ------------------------------------------------------------------ options
@pytest.mark.parametrize(
    ("wrong", "told"),
    [("modle", "did you mean model"), ("max_round", "did you mean max_rounds"), ("xyz", "there are instructions")],
)
async def test_an_unknown_option_is_told_with_near_ones(wrong: str, told: str) -> None:
    """A typo must not be an option that is ignored."""
    async with open_system() as system:
        with pytest.raises(TypeError, match=told):
            await system.open(Plain, **{wrong: 1})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_rounds": 0}, "found max_rounds=0"),
        ({"max_rounds": True}, "found max_rounds=True"),
        ({"max_rounds": "3"}, "found max_rounds='3'"),
        ({"limits": {"max_calls": 1}}, "Plain: found limits="),
    ],
)
def test_an_option_nobody_could_live_with_is_refused(options: dict[str, Any], told: str) -> None:
    """At once, instead of a session that never does anything."""
    with pytest.raises(ConfigError, match=told):
        configure(Plain, options)


def test_limits_below_may_only_be_narrower() -> None:
    """What is set above holds."""
    with pytest.raises(ConfigError, match="Plain: max_calls=9 is wider than max_calls=2"):
        configure(Plain, {"limits": Limits(max_calls=9)}, Limits(max_calls=2))
    assert configure(Plain, {}, Limits(max_calls=2)).limits.max_calls == 2


async def test_deps_are_what_was_given_else_what_the_class_says() -> None:
    """A default is a class attribute like any other."""

    class Knows(Plain):
        deps = "a default"

    for given, found in (({}, "a default"), ({"deps": "given"}, "given")):
        async with open_system() as system:
            session = await system.open(Knows, model=ScriptedModel([]), **given)
            agent = session._session().session.agent
            assert agent is not None
            assert agent.deps == found


# ------------------------------------------------------------------ its life
class Alive(Worker):
    """You live."""

    async def on_start(self) -> None:
        """Note it, or fail."""
        self.deps.began.append("on_start")
        if self.deps.peak:
            raise ValueError("no disk")

    async def on_stop(self, exit: Exit) -> None:
        """Note it."""
        self.deps.ended.append(f"on_stop: {type(exit).__name__}")


async def test_an_agent_is_made_once_and_kept_through_restarts_of_its_loop() -> None:
    """What it remembers outlives a bad moment of its provider."""
    away = ModelError(reason="overloaded", retryable=True)
    async with scene(fail(away), fail(away), say("ok"), agent=Alive) as here:
        agent = here.session._session().session.agent
        assert await here.session.ask("go") == "ok"
        assert here.session._session().session.agent is agent
        await here.session.stop()
        assert (here.diary.began, here.diary.ended) == (["on_start"], ["on_stop: Stopped"])


async def test_an_agent_whose_start_fails_is_not_there() -> None:
    """Whoever opens it hears why; nothing is left behind, and it can be tried again."""
    async with open_system() as system:
        bad, good = Diary(peak=1), Diary()
        with pytest.raises(StartFailed, match="s did not start: ValueError: no disk"):
            await system.open(Alive, session="s", model=MODEL, deps=bad)
        assert list(system.tree()) == []
        session = await system.open(Alive, session="s", model=ScriptedModel([say("ok")]), deps=good)
        assert await session.ask("go") == "ok"


async def test_an_agent_knows_its_own_session() -> None:
    """Its ref is a session's, in its methods and tools."""
    async with scene(agent=Alive) as here:
        agent = here.session._session().session.agent
        assert agent is not None
        assert agent.ref == here.session
        assert type(agent.ref) is type(here.session)


def test_run_gives_the_last_answer_and_raises_what_went_wrong() -> None:
    """A whole program in one call."""
    assert run(Plain, "go", model=ScriptedModel([say("ok")])) == "ok"
    with pytest.raises(RunFailed, match="bad key"):
        run(Plain, "go", model=ScriptedModel([fail(ModelError(reason="bad key"))]))
    with pytest.raises(ConfigError, match="needs a task"):
        run(Plain)  # type: ignore[arg-type]
