"""Tools: marked methods, plain functions, what a class collects, and how a call runs."""

import functools
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import trio

from actors._errors import BadArguments, CodecError, ConfigError
from actors._inherit import INHERIT
from actors._outcome import Media
from actors.tools._collect import as_tool, by_name, collect
from actors.tools._context import ToolContext
from actors.tools._tool import Tool, tool


def context(notes: list[Any] | None = None) -> ToolContext:
    return ToolContext("call_1", "t", "s", "ann", "key", [].append if notes is None else notes.append)


class Logs:
    def __init__(self, text: str) -> None:
        self.text = text

    @tool
    async def read_log(self, name: str) -> str:
        """Read a log file by name.

        Args:
            name: The log's name.
        """
        return f"{name}: {self.text}"

    @tool(name="count-lines", attach=0, timeout=5, idempotent=True, hidden=True)
    def count(self, context: ToolContext, least: int = 0) -> dict[str, object]:
        """Count its lines."""
        return {"least": least, "call": context.call, "main": threading.current_thread() is threading.main_thread()}

    @tool
    @staticmethod
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @classmethod
    @tool
    def whose(cls) -> str:
        """Say whose."""
        return cls.__name__

    def not_a_tool(self, anything) -> None:  # type: ignore[no-untyped-def]
        """No model sees this."""


def test_a_class_collects_its_marked_methods_once_in_order() -> None:
    """A call pays nothing for finding its tool."""
    assert list(collect(Logs)) == ["read_log", "count-lines", "add", "whose"]
    assert collect(Logs) is collect(Logs)


def test_a_tool_says_what_was_said_of_it() -> None:
    """The loop and the policy read these."""
    found = collect(Logs)["count-lines"]
    assert collect(Logs)["read_log"].attach is INHERIT
    told = (found.description, found.attach, found.timeout, found.idempotent, found.hidden, found.isolation)
    assert told == ("Count its lines.", 0, 5, True, True, "task")


def test_a_model_is_shown_neither_self_nor_the_context() -> None:
    """They come from the runtime."""
    assert collect(Logs)["count-lines"].schema["properties"] == {"least": {"type": "integer", "default": 0}}
    assert collect(Logs)["read_log"].schema == {
        "type": "object",
        "properties": {"name": {"description": "The log's name.", "type": "string"}},
        "required": ["name"],
        "additionalProperties": False,
    }


async def test_a_marked_method_stays_what_it_was() -> None:
    """It can be called, overridden and tested like any other."""
    assert await Logs("fine").read_log("prod") == "prod: fine"
    assert Logs.add(1, 2) == 3


async def test_a_call_runs_the_method_of_the_agent_at_hand() -> None:
    """One compiled tool serves all instances of the class."""
    found = collect(Logs)["read_log"]
    assert await found.call(Logs("fine"), {"name": "prod"}, context()) == "prod: fine"
    assert await found.call(Logs("bad"), {"name": "prod"}, context()) == "prod: bad"
    assert await collect(Logs)["add"].call(Logs(""), {"a": 1, "b": 2}, context()) == 3
    assert await collect(Logs)["whose"].call(Logs(""), {}, context()) == "Logs"


async def test_a_sync_tool_runs_in_a_thread_with_its_context() -> None:
    """It may block, and nobody else waits."""
    made = await collect(Logs)["count-lines"].call(Logs(""), {"least": 2}, context())
    assert made == {"least": 2, "call": "call_1", "main": False}


async def test_a_cancelled_sync_tool_is_left_behind() -> None:
    """A thread cannot be stopped; its call can."""
    release, left = threading.Event(), threading.Event()

    def block() -> None:
        """Block."""
        release.wait(10)
        left.set()

    with trio.move_on_after(0.05) as scope:
        await Tool(block).call(None, {}, context())
    assert scope.cancelled_caught
    assert not left.is_set()
    release.set()
    await trio.to_thread.run_sync(left.wait, 10)


async def test_items_of_an_async_generator_are_progress_and_the_last_is_the_result() -> None:
    """A tool tells how far it is by yielding."""

    async def climb(to: int) -> AsyncIterator[dict[str, int]]:
        """Climb."""
        for step in range(to):
            yield {"step": step}

    notes: list[Any] = []
    assert await Tool(climb).call(None, {"to": 3}, context(notes)) == {"step": 2}
    assert notes == [{"step": 0}, {"step": 1}, {"step": 2}]
    assert await Tool(climb).call(None, {"to": 0}, context(notes)) is None


async def test_a_cancel_closes_the_generator_also_one_that_never_waits() -> None:
    """What it holds is given back; and a tool that only yields does not hold the loop."""
    met: list[str] = []

    async def count() -> AsyncIterator[int]:
        """Count without an end."""
        try:
            number = 0
            while True:
                yield number
                number += 1
        finally:
            met.append("closed")

    with trio.move_on_after(0.05) as scope:
        await Tool(count).call(None, {}, context())
    assert scope.cancelled_caught
    assert met == ["closed"]


async def test_bad_arguments_run_nothing() -> None:
    """The model reads what was wrong; the tool never knew."""
    ran: list[int] = []

    async def note(number: int) -> None:
        """Note."""
        ran.append(number)

    with pytest.raises(BadArguments, match=r"bad arguments for note: `number`: expected int, got str"):
        await Tool(note).call(None, {"number": "1"}, context())
    assert ran == []


async def test_a_result_without_json_is_an_error_and_media_is_kept() -> None:
    """What the model cannot read is the author's to mend."""

    async def look(well: bool) -> object:
        """Look."""
        return Media("image/png", b"...") if well else object()

    assert await Tool(look).call(None, {"well": True}, context()) == Media("image/png", b"...")
    with pytest.raises(CodecError, match=r"builtins.object is no JSON"):
        await Tool(look).call(None, {"well": False}, context())


def test_a_subclass_has_its_bases_tools_and_a_method_of_the_same_name_replaces_one() -> None:
    """With the old options if it is not decorated anew; `None` takes it away."""

    class Mine(Logs):
        async def read_log(self, name: str, tail: int = 10) -> str:
            """Read the end of a log."""
            return name

        add: ClassVar[None] = None  # type: ignore[assignment]

        @tool
        def more(self) -> None:
            """Do more."""

    found = collect(Mine)
    assert list(found) == ["read_log", "count-lines", "whose", "more"]
    assert found["read_log"].description == "Read the end of a log."
    assert set(found["read_log"].schema["properties"]) == {"name", "tail"}
    assert set(collect(Logs)["read_log"].schema["properties"]) == {"name"}


def test_types_that_only_the_function_around_knows_are_found() -> None:
    """Annotations are strings under `from __future__ import annotations`; tests define their types where they use them."""

    @dataclass
    class Local:
        number: int

    class Agent:
        @tool
        async def method(self, given: "Local | None" = None) -> None:
            """Do it."""

    @tool
    def function(given: "Local") -> None:
        """Do it."""

    assert collect(Agent)["method"].parse({"given": {"number": 1}}) == {"given": Local(1)}
    assert as_tool(function).parse({"given": {"number": 1}}) == {"given": Local(1)}
    assert Tool(function, name="other").parse({"given": {"number": 1}}) == {"given": Local(1)}


def test_what_an_agent_lists_as_tools_becomes_tools() -> None:
    """A `Tool`, a marked function with what its mark says, any function."""

    @tool(name="marked", attach=3)
    def function(a: int) -> None:
        """Do it."""

    def plain(a: int) -> None:
        """Do it."""

    made = [as_tool(each) for each in (Tool(plain, name="made", description="Done."), function, plain)]
    assert [(each.name, each.description, each.attach) for each in made] == [
        ("made", "Done.", INHERIT),
        ("marked", "Do it.", 3),
        ("plain", "Do it.", INHERIT),
    ]
    with pytest.raises(ConfigError, match="'read_log' is no tool"):
        as_tool("read_log")


async def test_partials_and_objects_that_can_be_called_are_tools() -> None:
    """A partial's bound arguments are not the model's to give."""

    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    class Adder:
        async def __call__(self, a: int) -> int:
            """Add."""
            return a + 1

    assert await Tool(functools.partial(add, 1), name="add").call(None, {"b": 2}, context()) == 3
    assert await Tool(Adder(), name="adder").call(None, {"a": 2}, context()) == 3


def yields() -> Iterator[int]:
    """Yield."""
    yield 1


def fine() -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Tool(fine, isolation="asyncio"), "runs async functions, and this is sync; leave it out"),
        (
            lambda: Tool(fine, isolation="thread"),  # type: ignore[arg-type]
            "found isolation='thread'; there are task, process, asyncio",
        ),
        (lambda: Tool(fine, name="read log"), "its name 'read log' is not 1 to 64 of A-Z a-z 0-9 _ -"),
        (lambda: Tool(lambda: None), "its name '<lambda>' is not"),
        (lambda: Tool(functools.partial(fine)), "give it one with name="),
        (lambda: Tool(fine, attach=-1), "attach=-1 is no time"),
        (lambda: Tool(fine, timeout=0), "timeout=0 is no time"),
        (lambda: Tool(yields), "tool yields is a generator; write an async generator"),
        (lambda: Tool(context), "parameter `notes[]` is annotated Any, which a model cannot be told"),
        (lambda: by_name([Tool(fine), Tool(fine)], "Logs"), "Logs has two tools called 'fine'"),
        (lambda: tool(Logs("").count), "write Tool(Logs.count, ...)"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_when_it_is_made(make: Callable[[], object], told: str) -> None:
    """The author reads what is wrong with which tool, and what to write."""
    with pytest.raises(ConfigError) as caught:
        make()
    assert told in str(caught.value)


def test_an_error_names_the_class_and_its_method() -> None:
    """An agent has many tools."""

    class Careless:
        @tool
        def read(self, where) -> None:  # type: ignore[no-untyped-def]
            """Read."""

    with pytest.raises(ConfigError, match=r"^tool Careless.read: parameter `where` has no annotation"):
        collect(Careless)


def test_progress_is_json_when_it_is_noted() -> None:
    """A note that nobody could read is the author's error, in the author's line."""
    notes: list[Any] = []
    context(notes).progress((1, {2}))
    assert notes == [[1, [2]]]
    with pytest.raises(CodecError, match=r"builtins.object is no JSON"):
        context(notes).progress(object())
    assert len(notes) == 1
