"""A refund that a person has to approve: the tool leaves its answer to whoever has its token. Offline.

With `store="sqlite:///refunds.db"` the person may take a month: any process on the store completes the call, and wakes its session.
"""

from actors import Agent, Outcome, ToolContext, tool
from actors.models import ScriptedModel, call, say
from supervision import System, run

DESK: list[tuple[str, int]] = []  # what waits for a person: a token, and what it is about


class Till(Agent):
    """You give customers their money back."""

    model = ScriptedModel([call("refund", euros=40), say("I have asked my manager."), say("The 40 euros are on their way.")])

    @tool
    async def refund(self, euros: int, context: ToolContext) -> str | Outcome:
        """Give money back. More than 10 euros need a person's yes."""
        if euros <= 10:
            return "paid"
        DESK.append((context.continuation, euros))
        return Outcome.deferred(f"a person has to approve {euros} euros")


async def main(system: System) -> None:
    """Ask for a refund, go on, and hear of it when the person has decided."""
    session = await system.open(Till, session="customer-8")
    print(await session.ask("I want my 40 euros back."))
    for token, euros in DESK:  # the person's, or a payment provider's webhook
        await system.complete(token, Outcome.completed(f"approved and paid: {euros} euros"))
    print(await session.wait_answer())


if __name__ == "__main__":
    run(main)
