"""How much memory does an actor hold that does nothing, and a session?

What is judged is RSS: what the process really grew by, fragmentation and all, divided by how many were made. The
traced rows say what Python objects are behind it (`tracemalloc`, a run of its own, for tracing costs memory too).
"""

import sys

from trio.testing import wait_all_tasks_blocked

from actors import Agent
from actors.models import ScriptedModel, say
from supervision import open_system

from ._cli import main
from ._measure import Growth, Measured
from ._ours import Count
from ._scenario import ASYNCIO, AUTOGEN, PYKKA, THESPIAN, AtMost, Contestant, Scenario
from ._work import ADD


class Idler(Agent):
    """You wait."""


async def actor(n: int, *, traced: bool = False) -> Measured:
    async with open_system() as system:
        await (await system.spawn(Count)).ask(ADD)
        growth = Growth(traced=traced)
        refs = [await system.spawn(Count) for _ in range(n)]
        await wait_all_tasks_blocked()
        measured = growth.each(n, 0)
        done = sum([await ref.ask(ADD) for ref in refs])
    return Measured(done, measured.figures)


async def actor_traced(n: int) -> Measured:
    return await actor(n, traced=True)


async def session(n: int, *, traced: bool = False, words: int = 0) -> Measured:
    """Opened, and asked for `words` answers before it is left idle."""
    async with open_system() as system:
        model = ScriptedModel([say("ready")] * ((n + 1) * (words + 1)))
        await (await system.open(Idler, model=model)).ask("Are you there?")
        growth = Growth(traced=traced)
        refs = [await system.open(Idler, model=model) for _ in range(n)]
        for _ in range(words):
            for ref in refs:
                await ref.ask("Are you there?")
        model.requests.clear()
        await wait_all_tasks_blocked()
        measured = growth.each(n, 0)
        done = sum([await ref.ask("Are you there?") == "ready" for ref in refs])
    return Measured(done, measured.figures)


async def session_used(n: int) -> Measured:
    return await session(n, words=1)


async def session_traced(n: int) -> Measured:
    return await session(n, traced=True)


ACTOR = Contestant("actor", "idle actor", kind="ours")
SESSION = Contestant("session", "idle session", kind="ours", share=0.2)
SESSION_USED = Contestant("session_used", "idle session, after a run", kind="ours", share=0.2)
SCENARIO = Scenario(
    name="idle_memory",
    question="What the process grows by for each idle actor or session (a fifth as many sessions).",
    piece="piece",
    n=10_000,
    quick=100,
    rounds=3,
    unit="KB",
    fresh=True,
    contestants=(
        ACTOR,
        Contestant("actor_traced", "idle actor, traced"),
        SESSION,
        SESSION_USED,
        Contestant("session_traced", "idle session, traced", share=0.2),
        Contestant("trio_channel", "idle trio task and channel"),
        ASYNCIO,
        PYKKA.part(0.1),
        THESPIAN,
        AUTOGEN,
    ),
    budgets=(AtMost(6, row=ACTOR.title), AtMost(16, row=SESSION.title), AtMost(16, row=SESSION_USED.title)),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
