"""A crowd of sessions that write to each other, for as many worker processes as a test starts.

Members are paired: `m-0` with `m-1`, and so on. Who hears `chain 7` tells its partner `chain 6`, until `chain 0`. Beside it each
makes a mark, once. All that happens outside of the store is a line of the log: which process did what under which key.

    python crowd.py URL LEASE       a worker with a lease so short that a test can wait for its end
"""

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from actors import Agent, AgentMessage, AssistantItem, Limits, ResultsItem, ToolContext, UserMessage, tool
from actors.models import Capabilities, Completion, Request, Text, ToolCall, Usage
from actors.store.postgres import PostgresStore
from supervision import System, run
from supervision._elsewhere import mail_in

LOG = "CROWD_LOG"


class Rote:
    """A model that does the same for the same transcript, after a moment."""

    name = "rote:1"
    capabilities = Capabilities()

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[Completion]]:
        """Answer what was said last."""

        async def events() -> AsyncIterator[Completion]:
            await trio.sleep(0.005)
            blocks = asked_for(request)
            yield Completion(blocks, Usage(1, 1, 1), "calls" if isinstance(blocks[-1], ToolCall) else "end")

        made = events()
        try:
            yield made
        finally:
            await made.aclose()  # type: ignore[attr-defined]


def asked_for(request: Request) -> list[Text | ToolCall]:
    """A call for each word that was heard and not passed on, and one that makes a mark."""
    said = request.transcript
    asked = {call.id: call for item in said if isinstance(item, AssistantItem) for call in item.calls}
    ends = [result for item in said if isinstance(item, ResultsItem) for result in item.results]
    told = {
        asked[end.call].arguments.get("text") for end in ends if getattr(end.outcome, "status", "") in {"completed", "running"}
    }
    heard = [mail.body.text.split() for mail in mail_in(said) if isinstance(mail.body, UserMessage | AgentMessage)]
    words = [f"{chain} {int(left) - 1}" for chain, left in heard if int(left)]
    calls = [ToolCall("", "tell", {"text": text}) for text in words if text not in told]
    return [*calls, ToolCall("", "mark", {})] if calls and request.tool_choice != "none" else [Text("done")]


class Member(Agent):
    """Tells its partner."""

    model = Rote()
    max_rounds = 1_000_000
    limits = Limits(max_hops=1_000_000, wake_on=("user", "tool", "parent", "child", "peer"))
    deps: str

    @tool(idempotent=True)
    async def tell(self, context: ToolContext, text: str) -> str:
        """Tell the partner, under an id that says what is told: twice is once."""
        note(self.deps, tool=context.tool, key=context.idempotency_key)
        id = text.replace(" ", "-")
        receipt = await self.find(partner(context.session)).send(AgentMessage(text), id=id, wait=30)
        return f"told as {receipt.seq}"

    @tool
    async def mark(self, context: ToolContext) -> str:
        """Make a mark, once."""
        note(self.deps, tool=context.tool, key=context.idempotency_key)
        return "marked"


deps = {Member: lambda: os.environ[LOG]}


def partner(session: str) -> str:
    """Whom a member writes to."""
    return f"m-{int(session.removeprefix('m-')) ^ 1}"


def note(log: str, **facts: Any) -> None:
    """Write one line, whole."""
    with open(log, "ab", buffering=0) as file:  # noqa: PTH123  # append, at once
        file.write(json.dumps({"process": os.getpid(), **facts}).encode() + b"\n")


async def work(_system: System) -> None:
    """Say that it is there, and be there."""
    print("works", flush=True)  # noqa: T201
    await trio.sleep_forever()


if __name__ == "__main__":
    run(work, store=PostgresStore(sys.argv[1], float(sys.argv[2])), agents=[Member], deps=deps)
