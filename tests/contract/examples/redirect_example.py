"""The second example of the public face: a session that is written to while it works."""

from investigator_example import Investigator

from actors.events import ToolStarted
from supervision import System, run


async def main(system: System) -> None:
    """Open a session, ask, and change one's mind when its first tool starts."""
    session = await system.open(Investigator, session="ticket-17")
    async with session.stream("Check the prod log.") as events:
        async for event in events:
            if isinstance(event, ToolStarted):
                await session.send("Actually, staging.", id="web-42")
    print(events.answer)


if __name__ == "__main__":
    run(main, store="sqlite:///agents.db")
