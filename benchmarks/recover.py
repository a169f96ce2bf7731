"""How long until a process that starts has answered all the mail that waited in its store?

Every session was written to while nobody ran it. The clock starts before the store is opened and stops when the last one has
answered; `resting` is what a session costs a start that has nothing to do.
"""

import sys

from actors import Agent
from actors.models import Request, Said, ScriptedModel, say
from supervision import open_system

from ._cli import main
from ._disk import a_file
from ._measure import Measured, Stopwatch
from ._scenario import OURS, Scenario


class Clerk(Agent):
    """You answer."""

    model = ScriptedModel([])


def _answers(_request: Request) -> Said:
    return say("read")


async def ours(n: int) -> Measured:
    start, work = Stopwatch(), Stopwatch()
    with a_file() as path:
        store = f"sqlite:///{path}"
        async with open_system(store=store, idle_timeout=3600) as system:
            for number in range(n):
                await (await system.open(Clerk, session=f"s{number}")).stop_run()
        with start:
            async with open_system(store=store, agents=[Clerk]):
                pass
        async with open_system(store=store) as system:
            for number in range(n):
                await system.ref(f"s{number}").send("Are you there?")
        Clerk.model = ScriptedModel([_answers] * n)
        with work:
            async with open_system(store=store, agents=[Clerk], idle_timeout=3600) as system:
                await system.wait_idle(timeout=600)
                done = sum(not each.unread for each in await system.sessions())
    return Measured(done, {"woken": work.waited(n), "resting": start.waited(n)})


SCENARIO = Scenario(
    name="recover",
    question="Stored sessions with unread mail, taken up by a process that starts; by the clock on the wall.",
    piece="session",
    n=10_000,
    rounds=1,
    quick=50,
    contestants=(OURS,),
)

if __name__ == "__main__":
    sys.exit(main([SCENARIO]))
