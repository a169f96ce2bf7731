"""An answer with two calls, cut or left at every event of its stream: nothing of it counts, and the next request is as it should be.

That is: the strict server takes it, it holds what was said before and what was said meanwhile, each once, and no call ran
that is not in it.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio.testing
from attrs import define, field
from fake_server import Answer
from msgspec.structs import replace
from providers import Provider
from stage import Stage, each_provider, on_stage

from supervision import Backoff

TWO = Answer(thinking="Hm, both.", text="Let me see.", calls=[("look", {"at": "prod"}), ("look", {"at": "test"})])
DONE = Answer(text="All quiet.")
BODY: dict[str, Any] = {"model": "m", "messages": [{}], "input": [{}], "contents": [{}]}


@define(eq=False)
class Script:
    """What the server answers: the first time the spoilt answer, then the whole one, then, to results, the last word."""

    spoilt: list[Answer] = field(factory=list)

    def __call__(self, body: dict[str, Any]) -> Answer:
        last = json.dumps((body.get("messages") or body.get("input") or body["contents"])[-1])
        if "test: all quiet" in last:
            return DONE
        return self.spoilt.pop() if self.spoilt else TWO


async def cut(here: Stage, number: int) -> str:
    """The connection is lost; nobody does anything."""
    return await here.session.ask("Question.")


async def interrupted(here: Stage, number: int) -> str:
    """Somebody has more to say."""
    await _hanging(here, number)
    await here.session.interrupt("More.")
    return await here.answered()


async def stopped(here: Stage, number: int) -> str:
    """Somebody stops the run, and asks for more."""
    await _hanging(here, number)
    await here.session.stop_run()
    return await here.session.ask("More.")


async def _hanging(here: Stage, number: int) -> None:
    streams, sent = here.server.streaming.value, here.server.sent.value
    await here.session.send("Question.")
    await here.server.streaming.wait_value(lambda count: count > streams)
    await here.server.sent.wait_value(lambda count: count >= sent + number)
    await trio.testing.wait_all_tasks_blocked(0.002)


@each_provider
@pytest.mark.parametrize("spoil", [cut, interrupted, stopped], ids=lambda spoil: spoil.__name__)
async def test_nothing_is_lost_or_doubled_wherever_an_answer_ends(
    spoil: Callable[[Stage, int], Awaitable[str]], provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where other runtimes brick a session: half an answer in the history, or a call without its result."""
    monkeypatch.setattr(Backoff, "delay", lambda *_: 0.0)  # the loop starts again at once
    script, events = Script(), len(list(provider.wire.chunks(TWO, BODY)))
    async with on_stage(provider, monkeypatch, otherwise=script, interrupt_completions=True) as here:
        for number in range(events):
            await here.begin_anew()
            script.spoilt = [spoilt(number, hang=spoil is not cut)]
            assert await spoil(here, number) == "All quiet."
            assert sorted(here.props.ran) == ["prod", "test"]
            history = json.dumps(here.server.bodies[-1])
            counts = [history.count(words) for words in ("Question.", "More.", "Let me see.", "prod: all quiet")]
            assert counts == [1, 0 if spoil is cut else 1, 1, 1]


def spoilt(number: int, *, hang: bool) -> Answer:
    """The whole answer, spoilt behind so many events."""
    return replace(TWO, **{"hang_after" if hang else "cut_after": number})
