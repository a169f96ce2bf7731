"""Does the ten-thousandth turn of a stored session cost what the hundredth did?

One session, turn after turn, each of a tool call and a last word. `late turn` is the median of the last hundred, `early turn` that of
a hundred turns that a young session beside it makes in the same moments. Its file is held against the JSON of its transcript,
`of its JSON` in hundredths; `loading` is what the next process waits for before it can go on, per turn.
LangGraph plays the same turns, but 400 of them: each of its steps writes all that was said so far.
"""

import sys
import time
from statistics import median

import msgspec

from actors.models import ScriptedModel, call, say
from actors.store._rows import write_item
from supervision import SessionRef, open_system

from ._cli import main
from ._disk import a_file, size
from ._measure import Measured, Stopwatch
from ._scenario import LANGGRAPH_SQLITE, OURS, AtMost, Scenario
from .agent_round import Adder, Tally

TURNS = 10_000
LAST = 100
PEER = 400  # turns of the peer, whose file grows by its whole state with each step
BEHIND = 100  # turns that the young session has behind it


async def _turn(session: SessionRef) -> float:
    began = time.perf_counter()
    await session.ask("Add one, and say that it is done.", timeout=60)
    return (time.perf_counter() - began) * 1e6


async def ours(n: int) -> Measured:
    tally, watch = Tally(), Stopwatch()
    script = [said for _ in range(n + 2 * BEHIND + LAST) for said in (call("add", amount=1), say("It is done: one more."))]
    with a_file() as path:
        store, model = f"sqlite:///{path}", ScriptedModel(script)
        async with open_system(store=store) as system:
            elder = await system.open(Adder, session="elder", model=model, deps=tally)
            young = await system.open(Adder, session="young", model=model, deps=Tally())
            for _ in range(min(BEHIND, n)):
                await _turn(young)
            last = min(LAST, n // 2)
            for _ in range(n - last):
                await _turn(elder)
                model.requests.clear()  # the test double's memory is not the session's
            early, late = [], []
            for _ in range(last):
                early.append(await _turn(young))
                late.append(await _turn(elder))
                model.requests.clear()
            record = await elder.record()
            whole = sum(len(write_item(item, lambda _mail: False, {})) for item in record.items)
            whole += len(msgspec.json.encode([row.id for row in record.calls]))
            share = (n + BEHIND + last) / n  # of both sessions' turns, the elder's
        on_disk = size(path) / share
        async with open_system(store=store) as system:
            with watch:
                await system.open(Adder, session="elder", model=model, deps=tally)
    figures = {
        "early turn": median(early),
        "late turn": median(late),
        "of its JSON": 100 * on_disk / whole,
        "loading": watch.waited(n),
    }
    return Measured(tally.total, figures)


SCENARIO = Scenario(
    name="long_session",
    question="A session of ten thousand turns in a file, a tool call each; by the clock on the wall.",
    piece="turn",
    n=TURNS,
    rounds=1,
    quick=20,
    contestants=(OURS, LANGGRAPH_SQLITE.part(PEER / TURNS)),
    budgets=(AtMost(1.2, of="ours, early turn", row="ours, late turn"), AtMost(200, row="ours, of its JSON")),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
