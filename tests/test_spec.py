"""Trees that are written wrongly are refused where they are written: which spec, what was found, what to write."""

from math import inf, nan
from typing import Any

import pytest
from cast import Worker
from hands import Hand

from actors import Agent, ConfigError, Limits
from supervision import Backoff, ChildSpec, Supervisor, open_system


class Clerk(Agent):
    """An agent, which as a child of a tree is a session."""

    model = "ollama:small"
    limits = Limits(max_calls=3)


class Mute(Agent):
    """An agent without a model."""


W: Any = Worker
A = ChildSpec(Worker, name="a")
NARROW, WIDE = Limits(max_unread=10), Limits(max_unread=20)
WRONG = [
    (lambda: Supervisor(A, A, name="p"), "p: found two children named a; write a name once per supervisor"),
    (
        lambda: ChildSpec(W(), name="a"),
        "a: found an instance of Worker; an actor that may be started again is given as its class or a function that makes it: \
write Worker, ... instead of Worker(...)",
    ),
    (
        lambda: ChildSpec(Worker, name="a", significant=True, restart="permanent"),
        "a: found significant=True on a permanent child, whose end never counts; write restart='transient' or 'temporary'",
    ),
    (
        lambda: Supervisor(name="p", significant=True, restart="permanent"),
        "p: found significant=True on a permanent supervisor, whose end never counts; write restart='transient' or 'temporary'",
    ),
    (
        lambda: Supervisor(ChildSpec(Worker, name="a", limits=WIDE), name="p", limits=NARROW),
        "p/a: max_unread=20 is wider than max_unread=10 above it; a limit below may only be narrower: write that or less, \
or leave it out",
    ),
    (lambda: Supervisor(name="p", within=-1), "p: found within=-1; write seconds, more than 0"),
    (
        lambda: ChildSpec(Worker, name="a/b"),
        "a child cannot be named 'a/b': write 1 to 64 of A-Z a-z 0-9 . _ - (not starting with call_, which is the runtime's)",
    ),
    (
        lambda: ChildSpec(int, name="a"),  # type: ignore[arg-type]
        "a: found the factory <class 'int'>; write an Actor class, a function that returns one, or an async function",
    ),
    (
        lambda: ChildSpec(Clerk, 3, name="a"),
        "a: found arguments (3,) for the Agent Clerk; write options={...}; an agent is made without any",
    ),
    (
        lambda: ChildSpec(Clerk, name="a", max_deliveries=2),
        "a: found max_deliveries=2 for a session; write none; its mail is never lost",
    ),
    (
        lambda: ChildSpec(Clerk, name="a", options={"max_rounds": 0}),
        "a: Clerk: found max_rounds=0; write a whole number, 1 or more",
    ),
    (
        lambda: ChildSpec(Mute, name="a"),
        'a: Mute has no model; write `model = "openai:gpt-5.2"` in the class, or give model= when it is opened',
    ),
    (
        lambda: Supervisor(ChildSpec(Clerk, name="a"), name="p", limits=Limits(max_calls=2)),
        "p/a: max_calls=3 is wider than max_calls=2 above it; a limit below may only be narrower: write that or less, or leave it out",
    ),
    (lambda: Supervisor(W), f"supervisor: found the child {W!r}; write ChildSpec(factory, ..., name=...) or a Supervisor"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "told"), WRONG)
def test_a_wrong_tree_is_told_which_spec_what_was_found_and_what_to_write(make: Any, told: str) -> None:
    """Not when the night's third restart needs it."""
    with pytest.raises(ConfigError) as caught:
        make()
    assert str(caught.value) == told


def test_an_option_that_an_agent_does_not_have_is_told_with_those_it_has() -> None:
    """As `open` would, but where the tree is written."""
    with pytest.raises(TypeError, match=r"^a: Clerk has no option 'modle'; did you mean model"):
        ChildSpec(Clerk, name="a", options={"modle": "ollama:large"})


SETTINGS: list[tuple[type, str, list[Any], str]] = [
    (ChildSpec, "factory", [None, 3, "Worker", Worker()], "write "),
    (ChildSpec, "name", ["", "a b", "a/b", "call_1", "x" * 65, 1], "write 1 to 64 of "),
    (ChildSpec, "restart", ["always", None, 1], "write permanent, transient or temporary"),
    (ChildSpec, "shutdown", [-1, nan, None, "5", True], "write seconds, 0 or more"),
    (ChildSpec, "init_timeout", [0, -1, nan, None], "write seconds, more than 0"),
    (ChildSpec, "significant", [1, "yes", None], "write True or False"),
    (ChildSpec, "backoff", [3, True], r"write Backoff\(...\)"),
    (ChildSpec, "limits", [3, {"max_unread": 3}], r"write Limits\(...\)"),
    (ChildSpec, "max_deliveries", [0, 1.5, True, None], "write a whole number, 1 or more"),
    (ChildSpec, "options", [{"model": "x"}], "write arguments of the factory"),
    (Supervisor, "name", ["", "a/b", None], "write 1 to 64 of "),
    (Supervisor, "strategy", ["all", None, []], "write one_for_one, one_for_all or rest_for_one"),
    (Supervisor, "max_restarts", [-1, 1.5, inf, None, True, "3"], "write a whole number, 0 or more"),
    (Supervisor, "within", [0, -5, nan, None, "5"], "write seconds, more than 0"),
    (Supervisor, "budget", ["both", None], "write supervisor or child"),
    (Supervisor, "auto_shutdown", ["some", True], "write never, any or all"),
    (Supervisor, "restart", ["always"], "write permanent, transient or temporary"),
    (Supervisor, "significant", [0], "write True or False"),
    (Supervisor, "backoff", [0.5], r"write Backoff\(...\)"),
    (Supervisor, "limits", [5], r"write Limits\(...\)"),
    (Backoff, "first", [-1, nan, None], "write seconds, 0 or more"),
    (Backoff, "maximum", [0, nan, "30"], "write seconds, 0.1 or more"),
    (Backoff, "factor", [0.5, nan, None], "write a number, 1 or more"),
    (Backoff, "jitter", [-0.1, nan, 1], "write a "),
    (Backoff, "max_attempts", [0, 2.5, inf], "write a whole number, 1 or more"),
]
AGENTS_OPTIONS = [3, "model", ["model"]]
GIVEN: dict[type, dict[str, Any]] = {ChildSpec: {"factory": Worker, "name": "a"}, Supervisor: {}, Backoff: {}}


@pytest.mark.parametrize(
    ("kind", "setting", "value", "told"),
    [(kind, setting, value, told) for kind, setting, values, told in SETTINGS for value in values],
)
def test_a_setting_nobody_could_work_with_is_refused(kind: type, setting: str, value: Any, told: str) -> None:
    """A wrong type too: it must not be a TypeError from somewhere inside, or wait for the first crash."""
    with pytest.raises(ConfigError, match=told):
        kind(**{**GIVEN[kind], setting: value})


@pytest.mark.parametrize("value", AGENTS_OPTIONS)
def test_the_options_of_an_agent_are_a_mapping(value: Any) -> None:
    """Each with its name."""
    with pytest.raises(ConfigError, match=r"a: found options=.*; write a mapping of instructions, model, "):
        ChildSpec(Clerk, name="a", options=value)


async def test_an_agent_is_not_spawned() -> None:
    """It is opened, or started in a tree."""
    async with open_system() as system:
        with pytest.raises(
            ConfigError, match=r"write `await system.open\(Clerk, session='a'\)`, or put ChildSpec\(Clerk, name='a'\)"
        ):
            await system.spawn(Clerk, name="a")


async def test_a_spawn_is_checked_like_a_spec() -> None:
    """What it takes besides too; nothing was started."""
    async with open_system() as system:
        for wrong in ({"max_restarts": -1}, {"within": 0}, {"shutdown": nan}, {"restart": "always"}, {"name": "a/b"}):
            with pytest.raises(ConfigError, match="write "):
                await system.spawn(Hand, **wrong)
        assert not list(system.tree())


@pytest.mark.parametrize("wrong", [{"limits": 3}, {"hard_deadline": -1}, {"hard_deadline": None}])
def test_a_system_is_checked_too(wrong: Any) -> None:
    """Before its block is entered."""
    with pytest.raises(ConfigError, match=r"open_system: found .*; write "):
        open_system(**wrong)
