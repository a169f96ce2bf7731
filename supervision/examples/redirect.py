"""An agent is redirected while it works. Offline: its model is a script that answers what it reads in the request."""

import trio

from actors import Agent, tool
from actors.events import ToolStarted
from actors.models import Request, Said, ScriptedModel, call, say
from supervision import System, run

LOGS = {"prod": "2 warnings, no errors.", "staging": "ERROR connection refused on port 5432."}


def second_answer(request: Request) -> Said:
    """What the model does after its first tool call: it goes where the person now points."""
    wants_staging = "staging" in getattr(request.transcript[-1], "text", "")
    return call("read_log", name="staging") if wants_staging else say("The prod log has 2 warnings.")


class Investigator(Agent):
    """You investigate logs."""

    model = ScriptedModel([call("read_log", name="prod"), second_answer, say("Staging cannot reach its database.")])

    @tool
    async def read_log(self, name: str) -> str:
        """Read a log file by name.

        Args:
            name: The log's name, e.g. "prod" or "staging".
        """
        await trio.sleep(0.5)
        return LOGS.get(name, f"no log named {name}")


async def main(system: System) -> None:
    """Ask, and change one's mind when the first tool starts."""
    session = await system.open(Investigator, session="ticket-17")
    async with session.stream("Check the prod log.") as events:
        async for event in events:
            if isinstance(event, ToolStarted):
                print(f"{event.tool}({event.arguments['name']})")
                await session.send("Actually, staging.", id="web-42")  # a resend of the same id is the same message
    print(events.answer)


if __name__ == "__main__":
    run(main)
