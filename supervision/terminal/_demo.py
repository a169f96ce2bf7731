"""`postroom demo`: offline and in some ten seconds, what this project is for.

A plain actor crashes and is restarted; an agent is redirected while it works; a slow call goes on in the background and
comes back as mail; and the tree shows who lives where.
"""

import logging

import trio
from attrs import define
from rich.rule import Rule

from actors import ActorCrashed
from actors.events import ToolDetached, ToolStarted
from supervision._runner import run
from supervision._session_ref import SessionRef
from supervision._system import System

from ._scene import REDIRECT, TASK, Add, Break, Counter, Investigator, scripted
from ._screen import Notes, Screen

PAUSE = 0.6  # seconds a reader gets between two things


@define(eq=False)
class Demo:
    """The scene's director."""

    system: System
    screen: Screen

    async def play(self) -> int:
        """All of it; the exit code."""
        await self._title("An actor crashes and is restarted")
        await self._counter()
        await self._title("An agent is redirected while it works; a slow call goes on in the background")
        await self._agent()
        self.screen.note('\nNext: `postroom run module:Agent "task"` with an agent of your own, and `postroom --help`.')
        return 0

    async def _title(self, text: str) -> None:
        self.screen.end_line()
        self.screen.console.print()
        self.screen.console.print(Rule(text, align="left"))
        await trio.sleep(PAUSE)

    async def _counter(self) -> None:
        counter = await self.system.spawn(Counter, name="counter")
        self._tell("counter.ask(Add(2))", await counter.ask(Add(2)))
        self._tell("counter.ask(Add(3))", await counter.ask(Add(3)))
        await trio.sleep(PAUSE)
        try:
            await counter.ask(Break())
        except ActorCrashed as crash:
            self._tell("counter.ask(Break())", crash)
        await trio.sleep(PAUSE)
        self._tell("counter.ask(Add(1)), same address, a fresh life", await counter.ask(Add(1)))
        await trio.sleep(PAUSE)

    def _tell(self, asked: str, answer: object) -> None:
        self.screen.line(f"{asked}  ->  {answer}")

    async def _agent(self) -> None:
        session = await self.system.open(Investigator, session="incident", model=scripted())
        async with session.stream(TASK) as events:
            async for event in events:
                self.screen.show(event)
                match event:
                    case ToolStarted(tool="read_log", arguments={"name": "prod"}):
                        await self._redirect(session)
                    case ToolDetached():
                        self._tree()
                    case _:
                        pass

    async def _redirect(self, session: SessionRef) -> None:
        await trio.sleep(PAUSE)
        self.screen.note(f"you, while it works: {REDIRECT}")
        await session.send(REDIRECT)

    def _tree(self) -> None:
        self.screen.line()
        self.screen.line(str(self.system.tree()))
        self.screen.line()


def demo() -> int:
    """Play the demo; the exit code."""
    screen = Screen()
    logging.getLogger().addHandler(Notes(screen.note, tracebacks=False))

    async def play(system: System) -> int:
        return await Demo(system, screen).play()

    return run(play)
