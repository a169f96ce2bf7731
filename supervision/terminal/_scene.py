"""Who plays in `postroom demo`: an agent whose model follows a script, its tools, and a plain actor that crashes."""

import trio
from attrs import frozen

from actors import Actor, Agent, Ask, handle, tool
from actors.models import Request, Said, ScriptedModel, call, calls, say

LOGS = {"prod": "2 warnings, no errors", "staging": "ERROR connection refused on port 5432"}
TASK = "Check the prod log."
REDIRECT = "Actually, look at staging. And run the tests there."


@frozen
class Add(Ask[int]):
    """Add to the total; the answer is the new one."""

    amount: int


@frozen
class Break:
    """Fail."""


class Counter(Actor):
    """Counts what it is told, and breaks when it is told to."""

    def __init__(self) -> None:
        self.total = 0

    @handle
    def add(self, message: Add) -> int:
        """Add, and answer with the total."""
        self.total += message.amount
        return self.total

    @handle
    def fail(self, _: Break) -> None:
        """Raise."""
        raise RuntimeError("the counter is broken")


class Investigator(Agent):
    """You investigate logs."""

    @tool
    async def read_log(self, name: str) -> str:
        """Read a log file.

        Args:
            name: The log's name, "prod" or "staging".
        """
        await trio.sleep(1.2)
        return LOGS[name]

    @tool(attach=0.8)
    async def run_tests(self) -> str:
        """Run the test suite; slow, so that it goes on in the background after a moment."""
        await trio.sleep(3)
        return "41 tests passed, 1 failed: test_connects"


def redirected(request: Request) -> Said:
    """The second answer: it depends on whether the person's second message is in the request."""
    told = request.transcript[-1]
    if "staging" in getattr(told, "text", ""):
        return calls(say("All right, staging instead."), call("read_log", name="staging"), call("run_tests"))
    return say("The prod log has 2 warnings and no errors.")


def scripted() -> ScriptedModel:
    """A model that plays this scene once."""
    return ScriptedModel([
        call("read_log", name="prod"),
        redirected,
        say("Staging refuses connections on port 5432. The tests still run; I will tell you when they end."),
        say("The tests ended as expected: 41 pass, and test_connects fails because the port is closed."),
    ])  # fmt: skip
