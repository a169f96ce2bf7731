"""An agent whose tools leave their answers to somebody else, and what tests ask of it."""

from typing import Any

import msgspec
import pytest
import trio
from scenes import Diary, Scene, Worker, scene

from actors import AlreadyCompleted, Outcome, Receipt, ToolContext, tool
from actors.models import Scripted

TOOLBOX = ("wait", "get_tool_call_status", "list_running_tool_calls", "cancel_tool_call")
PAID = Outcome.completed("paid 5")
WHY = "a person has to say yes"


class Till(Worker):
    """You give money back."""

    deps: Diary

    @tool
    async def refund(self, context: ToolContext, seconds: float = 0) -> str | Outcome:
        """Give it back, once somebody has said yes. Their tokens are in the diary."""
        await trio.sleep(seconds)
        self.deps.host.append(context.continuation)
        return Outcome.deferred(WHY)

    @tool(attach=0)
    async def refund_later(self, context: ToolContext, seconds: float = 5) -> str | Outcome:
        """As `refund`, in the background."""
        return await self.refund(context, seconds)

    @tool
    def refund_in_a_thread(self, context: ToolContext) -> Outcome:
        """As `refund`."""
        self.deps.host.append(context.continuation)
        return Outcome.deferred(WHY)

    @tool
    async def refund_step_by_step(self, context: ToolContext) -> Any:
        """As `refund`, with progress."""
        yield "asked the bank"
        yield self.refund_in_a_thread(context)


def at_the_till(*script: Scripted, **options: Any) -> Any:
    """A scene with this agent, which has the system tools for calls."""
    return scene(*script, agent=Till, **{"toolbox": TOOLBOX, **options})


async def paid(here: Scene, outcome: Outcome = PAID, call: str = "call_1") -> Receipt:
    """Somebody answers, and everybody has heard it."""
    receipt = await here.system.complete(await token_of(here, call), outcome)
    await here.idle()
    return receipt


async def token_of(here: Scene, call: str = "call_1") -> str:
    """As the ledger has it."""
    return str((await here.calls())[call].token)


def told(here: Scene, number: int, place: int = -1) -> Any:
    """What a result of this request told, as JSON."""
    return msgspec.json.decode(here.results(number)[place])


async def void(here: Scene, why: str, call: str = "call_1") -> None:
    """Whoever answers now hears why it is too late."""
    with pytest.raises(AlreadyCompleted, match=rf"s/{call} cannot be answered any more: it is cancelled \({why}\)"):
        await here.system.complete(await token_of(here, call), PAID)
