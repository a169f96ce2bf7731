"""A transcript that grows, and requests that do not: an agent's `compact`."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from scenes import Worker, scene, virtual_time

from actors import AssistantItem, ConfigError, Item, RunFailed
from actors.models import ScriptedModel, call, say
from supervision import open_system

pytestmark = virtual_time


def window(items: tuple[Item, ...]) -> Sequence[Item]:
    """The example of the module."""
    start = max(1, len(items) - 40)
    while start < len(items) and not isinstance(items[start], AssistantItem):
        start += 1
    return items[:1] + items[start:]


async def test_a_window_bounds_what_is_sent_and_never_what_is_kept() -> None:
    """A session may live long although its model reads little."""
    async with scene(*[call("work")] * 50, say("done"), agent=Worker, max_rounds=100, compact=window) as here:
        await here.session.ask("go")
        assert [len(here.request(number).transcript) for number in (0, 1, 19, 20, 50)] == [1, 3, 39, 41, 41]
        assert len((await here.record()).items) == 102
        assert here.request(50).transcript[0] is here.request(0).transcript[0]


def boom(items: Sequence[Item]) -> Sequence[Item]:
    raise LookupError("no summary")


BROKEN: dict[str, tuple[Callable[..., Any], str]] = {
    "raises": (boom, "Worker.compact raised: LookupError: no summary"),
    "nothing": (lambda items: [], "would be refused"),
    "no items": (lambda items: None, "returned NoneType; return a list or tuple of items"),
    "a text": (lambda items: ["go"], "returned list; return a list or tuple of items"),
    "a call without its results": (lambda items: items[:-1], "would be refused"),
    "results without their call": (lambda items: (items[0], *items[2:]), "results stand only once|never by another item"),
}


@pytest.mark.parametrize("how", BROKEN)
async def test_what_breaks_a_rule_ends_the_run_with_a_reason(how: str) -> None:
    """No provider sees it; the session is there for the next message, with what it knows."""
    compact, why = BROKEN[how]
    working = {"broken": True}

    def sometimes(items: tuple[Item, ...]) -> Sequence[Item]:
        return compact(items) if working["broken"] and len(items) > 1 else items

    async with scene(call("work"), say("ok"), compact=sometimes) as here:
        with pytest.raises(RunFailed, match=why):
            await here.session.ask("go")
        assert (here.asked, here.status()) == (1, "failed")
        working["broken"] = False
        assert await here.session.ask("again") == "ok"


async def test_it_is_a_function() -> None:
    """Said where it is written."""
    async with open_system() as system:
        with pytest.raises(ConfigError, match="found compact=20; write a function"):
            await system.open(Worker, model=ScriptedModel([]), compact=20)
