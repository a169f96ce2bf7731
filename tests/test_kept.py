"""The options of a session that are kept with it: another process takes it up as it was opened."""

from pathlib import Path
from typing import Any

import pytest
from durable import Clerk, Effects, played, system_on

from actors import Limits
from actors.agent._kept import kept, taken_up
from actors.models import ScriptedModel, call, say

KEPT: list[dict[str, Any]] = [
    {},
    {"model": "openai:gpt-5.2", "instructions": "Be brief.", "model_options": {"temperature": 0.5}},
    {"model": ["openai:a", "ollama:b"], "toolbox": ["wait"], "max_rounds": 3, "interrupt_completions": True},
    {"limits": Limits(max_unread=9, wake_on=("user", "peer"), max_cost=None)},
]
NOT_KEPT: list[dict[str, Any]] = [
    {"model": ScriptedModel([])},
    {"model": ["openai:a", ScriptedModel([])]},
    {"instructions": lambda: "Be brief.", "deps": object(), "tools": [print], "inbox": None, "compact": list},
    {"model_options": {"hook": print}},
    {"model_options": {1: 2}},
]


@pytest.mark.parametrize("options", KEPT)
def test_what_has_json_is_kept(options: dict[str, Any]) -> None:
    """It is the same again."""
    assert taken_up(kept(options)) == options


@pytest.mark.parametrize("options", NOT_KEPT)
def test_what_is_code_or_alive_is_not_kept(options: dict[str, Any]) -> None:
    """Nor half of it."""
    assert kept(options) == ""


async def test_a_session_comes_to_life_in_another_process_as_it_was_opened(path: Path) -> None:
    """Not as its class says."""
    agent = played()
    async with system_on(path) as system:
        options: dict[str, Any] = {"instructions": "Be brief.", "max_rounds": 1, "limits": Limits(max_unread=9)}
        await system.open(agent, session="s", deps=Effects(), **options)
    later = played(call("book"), say("enough"))
    async with system_on(path, later, deps=Effects(waits=False)) as system:
        assert await system.session("s").ask("go") == "enough"  # the one round, and the wrap-up
        assert [request.instructions for request in later.model.requests] == ["Be brief."] * 2
        assert system.session("s")._session().state.limits.max_unread == 9


async def test_options_that_are_given_anew_replace_those_that_were_kept(path: Path) -> None:
    """Those that are not kept, `deps` say, replace nothing."""
    told: list[str] = []
    for options in ({"instructions": "First.", "max_rounds": 3}, {}, {"instructions": "Second."}, {}):
        agent: type[Clerk] = played(say("yes"))
        async with system_on(path) as system:
            session = await system.open(agent, session="s", deps=Effects(), **options)
            await session.ask("go")
            told += [f"{request.instructions} {session._session().config.max_rounds}" for request in agent.model.requests]
    assert told == ["First. 3", "First. 3", "Second. 10", "Second. 10"]
