"""How often the notes of calls are shown, on a clock of the test's own; what is kept of them `test_call_ends.py` tests."""

from collections.abc import Iterator
from typing import Any

import pytest
import trio
from scenes import Diary, Worker, scene, virtual_time

from actors import ToolContext, tool
from actors._deadlines import Deadlines
from actors.agent._progress import Progress
from actors.models import call, say

pytestmark = virtual_time


class Chatty(Worker):
    """You tell how far you are."""

    @tool
    async def chat(self, context: ToolContext, count: int, every: float, then: float = 0) -> str:
        """Note so many steps."""
        for number in range(count):
            context.progress(number)
            await trio.sleep(every)
        await trio.sleep(then)
        return "told"


@pytest.mark.parametrize(
    ("count", "every", "then", "shown"),
    [
        (3, 1, 0, [(0, 0), (1, 1), (2, 2)]),
        (1000, 0, 0, [(0, 0), (0, 999)]),
        (1000, 0, 5, [(0, 0), (0.1, 999)]),
        (5, 0.04, 1, [(0, 0), (0.1, 2), (0.2, 4)]),
        (3, 0.06, 1, [(0, 0), (0.1, 1), (0.2, 2)]),
    ],
    ids=["seldom", "burst", "burst, then quiet", "often", "a little too often"],
)
async def test_the_newest_note_is_shown_ten_times_a_second_at_most(
    count: int, every: float, then: float, shown: list[tuple[float, int]]
) -> None:
    """A tool that notes every byte must not drown who watches; and the last word is never lost."""
    async with scene(call("chat", count=count, every=every, then=then), say("ok"), agent=Chatty, deps=Diary()) as here:
        began = trio.current_time()
        seen: list[tuple[float, Any]] = []
        here.system.listen(lambda event: seen.append((round(trio.current_time() - began, 3), event)))
        await here.session.ask("go")
        assert [(at, event.payload) for at, event in seen if event.kind == "tool_progress"] == shown
        kinds = [event.kind for _, event in seen if event.kind.startswith("tool")]
        assert kinds[-1] == "tool_finished"


async def test_calls_are_paced_each_for_itself() -> None:
    """A busy one does not silence its sibling."""
    shown: list[Any] = []
    progress, deadlines = Progress(lambda *what: shown.append(what)), Deadlines()
    for call_id in ("a", "b"):
        for number in range(3):
            progress.tell(call_id, number, deadlines)
    progress.ended("b")
    progress.ended("b")
    assert shown == [("a", 0), ("b", 0), ("b", 2)]
    assert len(deadlines) == 1


def test_notes_of_what_is_over_are_forgotten() -> None:
    """And only those."""
    progress = Progress(lambda *_: None)
    for call_id in _ids():
        progress.keep(call_id, call_id)
    progress.forget({"a"}, ("c",))
    assert list(progress.notes) == ["a", "c"]


def _ids() -> Iterator[str]:
    yield from "abc"
