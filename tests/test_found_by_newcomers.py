"""What somebody who had only read the README ran into."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from actors import Actor, Agent, ConfigError, Stopped, handle
from actors.models import ScriptedModel, say, slow
from supervision import open_system


class Clerk(Agent):
    """A clerk."""


async def test_a_drained_session_answers_what_it_had_accepted(autojump_clock: trio.testing.MockClock) -> None:
    """`stop("drain")` of an agent must not cut off the answer it is giving."""
    async with open_system() as system:
        clerk = await system.open(Clerk, model=ScriptedModel([slow(1, say("one"))]))
        async with trio.open_nursery() as nursery:
            await clerk.send("hello")
            answers: list[str] = []

            async def listen() -> None:
                answers.append(await clerk.wait_answer())

            nursery.start_soon(listen)
            await trio.sleep(0.5)
            assert isinstance(await clerk.stop("drain"), Stopped)
        assert answers == ["one"]


async def test_stopping_a_run_that_is_not_there_keeps_the_last_answer(autojump_clock: trio.testing.MockClock) -> None:
    """An order that hits nothing changes nothing."""
    async with open_system() as system:
        clerk = await system.open(Clerk, model=ScriptedModel([say("one")]))
        await clerk.ask("hello")
        await clerk.stop_run()
        await trio.sleep(1)
        assert await clerk.wait_answer() == "one"


async def test_an_empty_list_of_models_is_refused() -> None:
    """It looks like a choice and is none."""
    async with open_system() as system:
        with pytest.raises(ConfigError, match="at least one model"):
            await system.open(Clerk, model=[])


def test_an_agents_handler_of_what_has_no_json_is_refused_when_the_class_is_made() -> None:
    """A session's mail is kept; what cannot be is told of before anybody sends it."""
    with pytest.raises(ConfigError, match=r"Deaf.note handles int, which a session cannot keep: int has no fields"):

        class Deaf(Agent):
            """Deaf."""

            @handle
            async def note(self, message: int) -> None:
                """Never called."""


WRONG: dict[str, Callable[[Any], Any]] = {
    "stop: found mode='later'; write now, drain or kill": lambda clerk: clerk.stop("later"),
    "send_after: found seconds='1'": lambda clerk: clerk.send_after("1", "x"),
    "send_after: found seconds=1000000000000000.0; write a time within a hundred years": lambda clerk: clerk.send_after(
        1e15, "x"
    ),
    "send_after: found text=None": lambda clerk: clerk.send_after(1, None),
    "send_after: found label=5": lambda clerk: clerk.send_after(1, "x", label=5),
    "cancel_calls: found an id 5; write ids of calls": lambda clerk: clerk.cancel_calls(5),
}


@pytest.mark.parametrize("told", WRONG)
async def test_what_makes_no_sense_is_refused_where_it_is_said(told: str) -> None:
    """Accepted, it would stop a session by mistake, or crash its loop later, when nobody knows why."""
    async with open_system() as system:
        clerk = await system.open(Clerk, model=ScriptedModel([]))
        with pytest.raises(ConfigError, match=re.escape(told)):
            await WRONG[told](clerk)
        assert clerk.status == "ready"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"session": 5}, "open: found session=5"),
        ({"parent": 5}, "open: found parent=5"),
        ({"model_options": 5}, "Clerk: found model_options=5"),
        ({"toolbox": "wait"}, "Clerk: found toolbox='wait'; write a list, such as ['wait']"),
    ],
)
async def test_an_option_of_another_type_is_refused(options: dict[str, Any], told: str) -> None:
    """With what to write."""
    async with open_system() as system:
        with pytest.raises(ConfigError, match=re.escape(told)):
            await system.open(Clerk, model=ScriptedModel([]), **options)


async def test_an_empty_name_is_refused() -> None:
    """A name that was meant and is empty is a mistake of the caller's, not a wish for any name."""
    async with open_system() as system:
        with pytest.raises(ConfigError, match="cannot be named ''"):
            await system.spawn(Actor, name="")
