"""A busy tree that is killed: agents with tools, calls of every kind, agents writing to agents, users who keep their receipts.

All that happens outside the store is written to a diary, line by line, before and after it happens: what a user meant to send
and the receipt for it, what a tool did, which calls were deferred, and how their host answered. A kill of the process loses no line, so the diary is what the store is held against.
"""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import trio
from attrs import define, field

from actors import (
    Agent,
    AgentMessage,
    ContinuationResult,
    LeaseLost,
    Limits,
    Outcome,
    Store,
    StoreError,
    ToolContext,
    UnknownToken,
    UserItem,
    tool,
)
from actors.models import Capabilities, Completion, Request, Text, ToolCall, Usage
from supervision import System, open_system

SESSIONS = {"foreman": "Foreman", "digger-0": "Digger", "digger-1": "Digger"}
USERS = 3


class Diary:
    """Lines on disk, one write each."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)

    def note(self, **facts: Any) -> None:
        """Write one line."""
        os.write(self._file, json.dumps(facts).encode() + b"\n")


def lines(path: Path) -> list[dict[str, Any]]:
    """What is in a diary."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@define
class World:
    """What one life of the village shares."""

    diary: Diary
    random: Random
    model: Any = field(default=None)


class Rote:
    """A model that does the same for the same transcript."""

    name = "rote:1"
    capabilities = Capabilities()

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[Completion]]:
        """Answer what was said last."""

        async def events() -> AsyncIterator[Completion]:
            await trio.sleep(0.001)
            blocks = self._blocks(request)
            yield Completion(blocks, Usage(1, 10, 10), "calls" if isinstance(blocks[-1], ToolCall) else "end")

        made = events()
        try:
            yield made
        finally:
            await made.aclose()  # type: ignore[attr-defined]

    def _blocks(self, request: Request) -> list[Text | ToolCall]:
        last = request.transcript[-1]
        names = [each.name for each in request.tools]
        if not isinstance(last, UserItem) or request.tool_choice == "none":
            return [Text("done")]
        if all(isinstance(each.body, ContinuationResult) for each in last.mail):
            return [Text("good")]
        number = len(request.transcript)
        if "tell" in names:
            to = f"digger-{number % 2}"
            return [ToolCall("", "tell", {"to": to, "text": f"dig at {number}"}), ToolCall("", "note", {"text": f"{number}"})]
        tools = ("dig", "note", "survey")[number % 3 :] + (("permit",) if number % 5 < 2 else ())
        return [ToolCall("", name, {"text": f"{number}"}) for name in tools]


class Digger(Agent):
    """Digs."""

    model = Rote()
    max_rounds = 1_000_000
    limits = Limits(max_unread=64)
    deps: World

    async def _work(self, context: ToolContext, most: float) -> str:
        self.deps.diary.note(what="effect", tool=context.tool, key=context.idempotency_key)
        await trio.sleep(self.deps.random.uniform(0, most))
        return f"{context.tool} {context.call}"

    @tool
    async def dig(self, context: ToolContext, text: str) -> str:
        """Dig, once."""
        return await self._work(context, 0.01) + text

    @tool(idempotent=True)
    async def note(self, context: ToolContext, text: str) -> str:
        """Note; twice does no harm."""
        return await self._work(context, 0.005) + text

    @tool(attach=0)
    async def survey(self, context: ToolContext, text: str) -> str:
        """Survey, in the background."""
        return await self._work(context, 0.03) + text

    @tool
    async def permit(self, context: ToolContext, text: str) -> Outcome:
        """Ask the host for a permit, once."""
        await self._work(context, 0.005)
        self.deps.diary.note(what="asked", key=context.idempotency_key, token=context.continuation)
        return Outcome.deferred(f"the host has to permit {text}")


class Foreman(Digger):
    """Tells others to dig."""

    @tool(idempotent=True)
    async def tell(self, context: ToolContext, to: str, text: str) -> str:
        """Tell a digger; under the call's own id, so twice is once."""
        self.deps.diary.note(what="effect", tool=context.tool, key=context.idempotency_key)
        receipt = await self.find(to).send(AgentMessage(text), id=context.idempotency_key.replace("/", ":"))
        return f"told as {receipt.seq}"


AGENTS: dict[str, type[Agent]] = {"Foreman": Foreman, "Digger": Digger}


# ------------------------------------------------------------------ users
async def _send(system: System, world: World, message: dict[str, Any]) -> None:
    while True:
        try:
            receipt = await system.session(message["to"]).send(message["text"], id=message["id"], wait=60)
        except StoreError:  # the database is gone, and nobody knows whether it had this; under its id it is sent again
            await trio.sleep(0.05)
        else:
            break
    world.diary.note(what="receipt", seq=receipt.seq, duplicate=receipt.duplicate, **message)


async def _user(system: System, world: World, name: str, past: list[dict[str, Any]], messages: int) -> None:
    """Send again what has no receipt, then new words, as fast as they are accepted."""
    mine = [line for line in past if line.get("user") == name]
    told = {line["id"] for line in mine if line["what"] == "receipt"}
    meant = {line["id"]: line for line in mine if line["what"] == "intent"}
    for id, line in meant.items():
        if id not in told:
            await _send(system, world, {key: line[key] for key in ("user", "id", "to", "text")})
    for number in range(len(meant), len(meant) + messages):
        to = world.random.choice(list(SESSIONS))
        message = {"user": name, "id": f"{name}-{number}", "to": to, "text": f"words {number} of {name}"}
        world.diary.note(what="intent", **message)
        await _send(system, world, message)


# ------------------------------------------------------------------ their host
@define
class Host:
    """Answers deferred calls, whichever process runs their sessions, as it reads in the diary that they were asked for."""

    system: System
    diary: Path
    world: World
    read: int = 0  # of the diary, in bytes
    answered: set[str] = field(factory=set)
    tries: dict[tuple[str, str], int] = field(factory=dict)

    async def run(self) -> None:
        """Until the end of this life."""
        while True:
            await self.look()
            await trio.sleep(0.01)

    async def look(self) -> bool:
        """Answer what is asked for; whether anything was answered. A call that a kill cut off before it was deferred is unknown for ever."""
        for line in self._news():
            if line["what"] == "answered":
                self.answered.add(line["key"])
            elif line["what"] == "asked":
                self.tries[line["key"], line["token"]] = 20
        before = len(self.answered)
        for (key, token), tries in list(self.tries.items()):
            if key in self.answered or not tries:
                del self.tries[key, token]
                continue
            await self._answer(key, token)
        return len(self.answered) > before

    async def _answer(self, key: str, token: str) -> None:
        with suppress(StoreError):  # as when users send; what was unknown so often was never deferred
            try:
                receipt = await self.system.complete(token, Outcome.completed(f"permitted {key}"))
            except UnknownToken:
                self.tries[key, token] -= 1
                return
            self.answered.add(key)
            self.world.diary.note(what="answered", key=key, token=token, seq=receipt.seq, duplicate=receipt.duplicate)

    def _news(self) -> list[dict[str, Any]]:
        with self.diary.open("rb") as file:
            file.seek(self.read)
            whole, _, _ = file.read().rpartition(b"\n")
        self.read += len(whole) + 1 if whole else 0
        return [json.loads(line) for line in whole.splitlines()]


async def live(store: str | Store, diary: Path, seed: int, messages: int, who: str = "user") -> None:
    """One life of the village. With `messages` it goes on until it is killed; without, until everything is at rest.

    Where another process runs a session, its users are heard there.
    """
    world = World(Diary(diary), Random(seed))
    deps: dict[type[Agent], Any] = dict.fromkeys(AGENTS.values(), lambda: world)
    async with open_system(store=store, agents=list(AGENTS.values()), deps=deps) as system:
        for session, agent in SESSIONS.items():
            parent = None if session == "foreman" else "foreman"
            with suppress(LeaseLost):
                await system.open(AGENTS[agent], session=session, parent=parent, deps=world)
        past = lines(diary)
        host = Host(system, diary, world)
        async with trio.open_nursery() as nursery:
            if messages:
                nursery.start_soon(host.run)
            names = (
                {f"{who}{number}" for number in range(USERS)} if messages else {line["user"] for line in past if "user" in line}
            )
            for name in sorted(names):
                nursery.start_soon(_user, system, world, name, past, messages)
        if messages:
            await trio.sleep_forever()
        await _ask_again(system, world, past)
        await system.wait_idle(timeout=60)
        while await host.look():
            await system.wait_idle(timeout=60)


async def _ask_again(system: System, world: World, past: list[dict[str, Any]]) -> None:
    """A resend finds the first receipt, whoever accepted it and whenever."""
    for line in [each for each in past if each["what"] == "receipt"][-20:]:
        receipt = await system.session(line["to"]).send(line["text"], id=line["id"])
        world.diary.note(what="resent", id=line["id"], same=receipt.duplicate and receipt.seq == line["seq"])
