"""Sessions on a stage: an agent with a tool of every kind, a script for its model, a clock that jumps.

    async with scene(call("work", seconds=3), say("done")) as here:
        await here.session.ask("go")
        assert here.results(1) == ["worked"]

The model is strict: it refuses a request that a provider would refuse. A test that would hang fails when its time is over.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
import trio
from attrs import define, field
from trio.testing import wait_all_tasks_blocked

from actors import Agent, CallRecord, Envelope, Mailbox, ResultsItem, SessionRecord, ToolContext, UserItem, tool
from actors.events import AnyEvent
from actors.models import Request, Scripted, ScriptedModel
from supervision import SessionRef, System, open_system

LONG = 1_000_000.0  # virtual seconds no test needs


virtual_time = pytest.mark.virtual_time
real_time = pytest.mark.real_time


@define
class Diary:
    """What the tools saw: who began, ended, was cancelled, and how many ran at once at most."""

    began: list[str] = field(factory=list)
    ended: list[str] = field(factory=list)
    cancelled: list[str] = field(factory=list)
    running: int = 0
    peak: int = 0
    host: list[str] = field(factory=list)  # what the host's inbox holds

    def reader(self, _agent: str) -> Callable[[], list[str]]:
        """As a host's inbox."""
        return self._drain

    def _drain(self) -> list[str]:
        found, self.host = self.host, []
        return found

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        """Note a call for as long as it runs."""
        self.began.append(name)
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            yield
        except trio.Cancelled:
            self.cancelled.append(name)
            raise
        else:
            self.ended.append(name)
        finally:
            self.running -= 1


class Worker(Agent):
    """You work."""

    deps: Diary

    @tool
    async def work(self, context: ToolContext, seconds: float = 0, text: str = "worked") -> str:
        """Work; the agent waits for it."""
        with self.deps.call(context.call):
            await trio.sleep(seconds)
            return text

    @tool(attach=10)
    async def patient(self, context: ToolContext, seconds: float = 0, text: str = "worked") -> str:
        """Work; the agent waits for ten seconds."""
        return await self.work(context, seconds, text)

    @tool(attach=0)
    async def background(self, context: ToolContext, seconds: float = 0, text: str = "worked") -> str:
        """Work; the agent does not wait."""
        return await self.work(context, seconds, text)

    @tool
    async def broken(self, text: str) -> str:
        """Fail."""
        raise ValueError(text)


@define
class Scene:
    """A system with one session, its scripted model, and everything that was seen."""

    system: System
    session: SessionRef
    model: ScriptedModel
    diary: Diary
    seen: list[AnyEvent] = field(factory=list)

    @property
    def asked(self) -> int:
        """How many requests the model got."""
        return len(self.model.requests)

    def request(self, number: int) -> Request:
        """The model's request of this number, from 0."""
        return self.model.requests[number]

    def words(self, number: int) -> str:
        """What the last user item of this request says."""
        return [item for item in self.request(number).transcript if isinstance(item, UserItem)][-1].text

    def results(self, number: int) -> list[str]:
        """What the last results of this request say, in order."""
        return [result.text for result in self.last_results(number)]

    def outcomes(self, number: int) -> list[str]:
        """The status of each of the last results of this request."""
        return [result.outcome.status for result in self.last_results(number)]

    def last_results(self, number: int) -> tuple[Any, ...]:
        """The last results of this request."""
        return [item for item in self.request(number).transcript if isinstance(item, ResultsItem)][-1].results

    def events(self, *kinds: str) -> list[Any]:
        """The session's events of these kinds, in order; all of them if none is named."""
        return [event for event in self.seen if event.session == self.session.address and (not kinds or event.kind in kinds)]

    def kinds(self, *without: str) -> list[str]:
        """The kinds of the session's events, in order."""
        return [event.kind for event in self.events() if event.kind not in without]

    async def calls(self) -> dict[str, CallRecord]:
        """The ledger."""
        return {row.id: row for row in (await self.session.record()).calls}

    async def record(self) -> SessionRecord:
        """The session as it is kept."""
        return await self.session.record()

    def status(self) -> str:
        """The session's status, as a word."""
        return self.session.status.value

    async def settled(self) -> None:
        """Let everybody do what can be done now, without any time passing."""
        await wait_all_tasks_blocked()

    async def idle(self) -> None:
        """Wait until nothing runs."""
        await self.system.wait_idle()

    @property
    def box(self) -> Mailbox:
        """The session's mailbox."""
        box: Mailbox = self.session._session().mailbox
        return box

    def unread(self) -> list[Envelope]:
        """What the session has not read yet."""
        state = self.session._session().state
        return list(self.box.unread(state.mail_cursor))


@asynccontextmanager
async def scene(*script: Scripted, agent: type[Agent] = Worker, store: Any = None, **options: Any) -> AsyncIterator[Scene]:
    """A system with one session, `s`, whose model plays this script."""
    model, diary = ScriptedModel(script), options.pop("deps", None) or Diary()
    with trio.fail_after(LONG):
        async with open_system(store=store) as system:
            seen: list[AnyEvent] = []
            system.listen(seen.append)
            session = await system.open(agent, session="s", **{"model": model, "deps": diary, **options})
            yield Scene(system, session, model, diary, seen)
