"""A transcript that grows, and requests that do not: an agent's `compact`."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from scenes import Worker, scene, virtual_time

from actors import AssistantItem, ConfigError, Item, RunFailed
from actors.agent._compact import Past
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


CUTS = (slice(None), slice(1), slice(-2, None), slice(2, 1), slice(None, None, -1), slice(1, 9, 2))


def past_of(items: list[str], shown: Any = None) -> Any:
    return Past(items, shown)  # type: ignore[arg-type]  # words stand for items


def test_a_transcript_is_used_as_a_tuple() -> None:
    """What people write for a tuple of items works: places from the end, cuts, sums, walks."""
    items = ["a", "b", "c", "d"]
    past, summary = past_of(items), ("z",)
    assert [past[cut] for cut in CUTS] == [tuple(items)[cut] for cut in CUTS]
    assert (past[0], past[-1], len(past), "c" in past, past.index("d")) == ("a", "d", 4, True, 3)
    assert [*past] == [*reversed(past)][::-1] == items
    assert (past + summary, summary + past, list(summary) + past) == ((*items, "z"), ("z", *items), ("z", *items))
    with pytest.raises(IndexError):
        past[4]


def test_what_a_provider_refused_is_a_note_in_it_too() -> None:
    """Else a window would bring it back."""
    past = past_of(["a", "b"], lambda place, item: f"{place} {item}")
    assert (past[0], past[-1], past[:1], past.whole()) == ("0 a", "1 b", ("0 a",), ("0 a", "1 b"))


def test_a_transcript_that_grows_meanwhile_is_as_long_as_it_was() -> None:
    """A request is of one moment."""
    items = ["a", "b"]
    past = past_of(items)
    items.append("c")
    assert (len(past), [*past], past[-1]) == (2, ["a", "b"], "b")


async def test_it_is_a_function() -> None:
    """Said where it is written."""
    async with open_system() as system:
        with pytest.raises(ConfigError, match="found compact=20; write a function"):
            await system.open(Worker, model=ScriptedModel([]), compact=20)
