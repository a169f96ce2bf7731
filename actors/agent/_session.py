"""One activation of a session: carries out what the turn decides.

Every step is the same: apply the orders that came, ask the turn what to do, do it, commit. The loop waits nowhere but in its
mailbox and in the model. Calls run beside it as tasks of their own; their ends are commits that send mail.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from math import inf
from typing import Any, Protocol

import trio
from attrs import evolve

from actors import events
from actors._envelope import Control, Envelope, StopRun, ToolCallFinished
from actors._errors import ModelError
from actors._exit import Status
from actors._inherit import Inherit
from actors._life import Life
from actors._mailbox import Mailbox
from actors._outcome import Outcome
from actors._waiters import guarded_async
from actors.models._api import Request
from actors.models._blocks import Completion, TextDelta, ThinkingDelta, ToolCall
from actors.models._transcript import Validator
from actors.store._api import Store
from actors.tools._call import execute, refusal
from actors.tools._context import ToolContext

from ._actions import Act, Applied, Ask, End, Phase, RunEnd, Wait
from ._agent import Agent, Config, instructions_for
from ._answers import Answers
from ._completion import take
from ._control import apply_order, cancel, finished, recover
from ._record import CallRecord, Commit, State, ended
from ._toolbox import PROGRESS, TOOLBOX, Desk, waited
from ._turn import Turn
from ._wait import WaitFor


class Home(Protocol):
    """What a session needs of the tree around it."""

    def emit(self, kind: Callable[..., Any], /, **facts: Any) -> None:
        """Show an event."""
        ...

    def start_call(self, call: str, run: Callable[[Life], Awaitable[None]], hops: int) -> None:
        """Start a call as a child of the session, with an address and a voice of its own."""
        ...

    def cancel_call(self, call: str) -> None:
        """Cancel a call's task, if it still runs."""
        ...

    def live_calls(self) -> Collection[str]:
        """The calls whose tasks still run."""
        ...

    def progressed(self) -> None:
        """A completion was committed: failures before it no longer count."""
        ...

    def attached(self, calls: Collection[str]) -> None:
        """Note which calls the session waits for now."""
        ...

    def is_child(self, session: str) -> bool:
        """Whether that session was opened by this one."""
        ...


class Session:
    """The loop of a session, from its activation until its life ends."""

    def __init__(self, config: Config, state: State, store: Store, home: Home) -> None:
        self.config = config
        self.state = state
        self.store = store
        self.home = home
        self.box: Mailbox = store.mailbox(state.id)
        self.answers = Answers()
        self.agent: Agent | None = None
        self.broken: str | None = None  # why the loop was not started again: its run has failed
        self.progress: dict[str, deque[Any]] = {}
        self.started: dict[str, datetime] = {}
        self.toolbox: Collection[str] = frozenset(config.toolbox)
        self._instructions = ""
        self._validator = Validator()
        self.turn = Turn(
            config.wake_on,
            config.max_rounds,
            config.limits.max_calls,
            "wait" in self.toolbox,
            home.is_child,  # type: ignore[arg-type]
        )

    # -------------------------------------------------------------- the loop
    async def run(self, life: Life, on_ready: Callable[[Life], None]) -> None:
        """Serve the session until the life is cancelled. Raises what crashes the loop; the next life goes on from the last commit."""
        if self.agent is None:
            agent = self.config.agent()
            agent._life = life  # noqa: SLF001  # the runtime's end of the actor
            agent.deps = self.config.deps
            await agent.on_start()
            self.agent = agent
        self.agent._life = life  # noqa: SLF001
        life.actor = self.agent
        await self._recover()
        on_ready(life)
        if self.broken is not None:
            reason, self.broken = self.broken, None
            await self._fail(reason)
        while True:
            await self._step()

    async def _step(self) -> None:
        await self._orders()
        action = self.turn.next(self.state, self._mail(), trio.current_time())
        match action:
            case Wait():
                await self._wait(action)
            case Act():
                await self._act(action)
            case Ask():
                await self._ask(action)
            case End():
                await self._end(action.reason)

    def _mail(self) -> Sequence[Envelope]:
        return [envelope for envelope in self.box.unread(self.state.mail_cursor) if not isinstance(envelope.body, Control)]

    async def _recover(self) -> None:
        """What an earlier activation left: calls without a result are answered, and an unanswered user item is asked again."""
        commit = recover(self.turn, self.state, self.home.live_calls())
        if commit is not None:
            await self.store.commit(self.state, commit)

    async def _wait(self, wait: Wait) -> None:
        if self.turn.phase is Phase.ANSWERED and self.state.status is Status.RUNNING:
            await self._commit(Commit(status=Status.WAITING))
            self._emit(events.Waiting)
        attached = self.attached()
        if attached:
            self.home.attached(attached)
        try:
            await self._receive(wait)
        finally:
            if attached:
                self.home.attached(())

    async def _receive(self, wait: Wait) -> None:
        low = min(self.state.mail_cursor, self.state.control_cursor)
        if wait.until == inf:
            await self.box.receive(low, wait.match)
            return
        with trio.move_on_at(wait.until):
            await self.box.receive(low, wait.match)

    async def _end(self, reason: RunEnd) -> None:
        """The run is over."""
        status = Status.FAILED if reason == "failed" else Status.IDLE
        if self.state.status not in {status, Status.PAUSED}:
            await self._commit(Commit(status=status))
        self._emit(events.RunStopped, reason=reason)
        why = self.state.failure if reason == "failed" else f"the run ended: {reason}"
        self.answers.run_over(self.state.mail_cursor, status, why)

    # -------------------------------------------------------------- orders
    async def _orders(self) -> None:
        for envelope in self.box.unread(self.state.control_cursor):
            if isinstance(envelope.body, Control):
                await self._apply(apply_order(self.turn, self.state, envelope))

    async def _apply(self, applied: Applied) -> None:
        await self._commit(applied.commit)
        self._settled(applied.cancelled)
        if applied.stopped:
            await self._end("stopped")

    def _settled(self, outcomes: Mapping[str, Outcome]) -> None:
        """Calls whose outcome was decided here: their tasks are cancelled, their ends told."""
        for call, outcome in outcomes.items():
            self.home.cancel_call(call)
            self.started.pop(call, None)
            self._emit(events.ToolFinished, call=call, tool=self.state.calls[call].tool, outcome=outcome)

    # -------------------------------------------------------------- calls
    async def _act(self, act: Act) -> None:
        now = trio.current_time()
        desk = self._desk()
        ended_waits = {call: waited(wait, act.woken[call], desk, now) for call, wait in self.turn.waits_over(act.woken)}
        outcomes = {**act.outcomes, **ended_waits}
        if outcomes:
            await self._finish_here(outcomes)
        for call, reason in act.detached.items():
            self._emit(events.ToolDetached, call=call, reason=reason)
        await self._start(act.start)

    async def _finish_here(self, outcomes: Mapping[str, Outcome]) -> None:
        """Calls that end without a task of their own: their result tells it all, so no mail is sent."""
        rows = tuple(ended(self.state.calls[call], outcome) for call, outcome in outcomes.items())
        fetched = tuple(call for row in rows for call in _fetched(row))
        await self._commit(Commit(calls=rows, fetched=fetched))
        for row in rows:
            self._emit(events.ToolFinished, call=row.id, tool=row.tool, outcome=row.outcome)

    async def _start(self, calls: Sequence[str]) -> None:
        rows = tuple(
            evolve(row, status="started") for row in map(self.state.calls.__getitem__, calls) if row.status == "issued"
        )
        if rows:
            await self._commit(Commit(calls=rows))
        for call in calls:
            row = self.state.calls[call]
            if row.tool in self.toolbox:
                await self._system_tool(row)
            else:
                self._begin(row)

    async def _system_tool(self, row: CallRecord) -> None:
        unparsable = self.turn.asked[row.id].unparsable
        done = Outcome.failed(f"the arguments were no JSON object: {unparsable[:200]!r}") if unparsable is not None else (
            TOOLBOX[row.tool].call(self._desk(), row.arguments)
        )  # fmt: skip
        if isinstance(done, WaitFor):
            self.turn.waiting(row.id, done)
            return
        await self._cancel_asked()
        await self._finish_here({row.id: done})

    def _begin(self, row: CallRecord) -> None:
        self.started[row.id] = datetime.now(UTC)
        call = self.turn.asked[row.id]

        async def run(life: Life) -> None:
            outcome = Outcome("cancelled", error="its session stopped")
            try:
                outcome = await self._execute(call, life)
            finally:
                await self.finish_call(row.id, outcome)  # a commit, once begun, is not cancelled: `Store`

        self.home.start_call(row.id, run, row.hops)

    async def _execute(self, call: ToolCall, life: Life) -> Outcome:
        tool = self.config.tools.get(call.tool)
        refused = refusal(tool, call, [*self.config.tools, *self.toolbox])
        if refused is not None or tool is None:
            assert refused is not None
            return refused
        row = self.state.calls[call.id]

        def progress(payload: Any) -> None:
            life.check()
            self.progress.setdefault(call.id, deque(maxlen=PROGRESS)).append(payload)
            with suppress(trio.RunFinishedError):
                trio_token.run_sync_soon(self._progressed, call.id, payload)

        trio_token = trio.lowlevel.current_trio_token()
        context = ToolContext(call.id, call.tool, self.state.id, self.state.owner, row.idempotency_key, progress)
        return await execute(tool, self.agent, call, context)

    def _progressed(self, call: str, payload: Any) -> None:
        self._emit(events.ToolProgress, call=call, payload=payload)

    async def finish_call(self, call: str, outcome: Outcome) -> None:
        """A call's task is over: its outcome and the mail that tells it are one commit. Does nothing if it was settled before."""
        row = self.state.calls[call]
        if row.final:
            return
        row = ended(row, outcome)
        await self.store.commit(self.state, Commit(calls=(row,), mail=(finished(self.state, row),), loop=False))
        self.started.pop(call, None)
        self._emit(events.ToolFinished, call=call, tool=row.tool, outcome=outcome)

    def _desk(self) -> Desk:
        return Desk(
            self.state, {call.id: call for call in self.turn.open}, self.progress, self.started,
            lambda: any(isinstance(envelope.body, ToolCallFinished) for envelope in self._mail()), self._cancel_soon, self.config.limits.max_wait,  # type: ignore[arg-type]
        )  # fmt: skip

    def _cancel_soon(self, call: str, why: str) -> None:
        self._to_cancel = (call, why)

    _to_cancel: tuple[str, str] | None = None

    async def _cancel_asked(self) -> None:
        if self._to_cancel is not None:
            (call, why), self._to_cancel = self._to_cancel, None
            await self._apply(cancel(self.turn, self.state, call, why))

    # -------------------------------------------------------------- the model
    async def _ask(self, ask: Ask) -> None:
        await self._commit(ask.commit)
        if ask.begins:
            self._instructions = instructions_for(self.config, self.agent)  # type: ignore[arg-type]
            self._emit(events.RunStarted)
        if ask.nudge is not None:
            self._emit(events.Continuing, nudge=ask.nudge)
        if ask.delivered:
            self._emit(events.MailDelivered, mail=ask.delivered, round=self.state.rounds)
        self._emit(events.TurnStarted, round=self.state.rounds)
        request = self._request(wrap_up=self.turn.wrapped_up)
        self._validator.check_request(request.transcript)
        completion, error = await self._complete(request)
        if completion is not None:
            await self._take(completion)
        elif isinstance(error, ModelError) and not error.retryable:
            await self._fail(str(error))
        elif error is not None:
            raise error

    def _request(self, *, wrap_up: bool) -> Request:
        options = dict(self.config.model_options)
        choice = options.pop("tool_choice", "auto")
        return Request(self._instructions, tuple(self.state.items), self.config.schemas, "none" if wrap_up else choice, options)

    async def _complete(self, request: Request) -> tuple[Completion | None, Exception | None]:
        """A completion; or (None, why there is none); or (None, None) if the run was stopped while it was made."""
        error: Exception | None = None
        for model in self.config.models:
            with trio.CancelScope() as scope:
                watch = self.box.watch_for(self.state.control_cursor, self._stops, scope.cancel)
                try:
                    completion, error = await guarded_async(self._stream, model, request)
                finally:
                    self.box.forget(watch)
                if error is None:
                    return completion, None
            self._emit(events.Interrupted)
            if scope.cancelled_caught:
                return None, None
        return None, error

    def _stops(self, envelope: Envelope) -> bool:
        body = envelope.body
        return isinstance(body, Control) and isinstance(body.action, StopRun) and body.action.run in {None, self.state.run}

    async def _stream(self, model: Any, request: Request) -> Completion:
        completion: Completion | None = None
        async with model.stream(request) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    self._emit(events.TextDelta, text=event.text)
                elif isinstance(event, ThinkingDelta):
                    self._emit(events.ThinkingDelta, text=event.text)
                else:
                    completion = event
        if completion is None:
            raise ModelError(f"{model.name} ended its stream without a completion")
        self._model = model.name
        return completion

    async def _take(self, completion: Completion) -> None:
        done = take(self.turn, self.state, completion, trio.current_time(), self._attach, self.toolbox, self._model)
        if done.failure is not None:
            await self._fail(done.failure)
            return
        await self._commit(done.commit)
        self.home.progressed()
        self._emit(events.UsageReported, usage=completion.usage)
        for call in done.announced:
            self._emit(events.ToolStarted, call=call.id, tool=call.tool, arguments=call.arguments)
        for name, outcome in done.settled.items():
            self._emit(events.ToolFinished, call=name, tool=self.state.calls[name].tool, outcome=outcome)
        if done.answer:
            self._emit(events.Answer, text=done.answer)
            self.answers.answered(self.state.mail_cursor, done.answer)
        await self._start(done.start)

    def _attach(self, tool: str) -> float | None:
        found = self.config.tools.get(tool)
        return None if found is None or isinstance(found.attach, Inherit) else found.attach

    async def _fail(self, reason: str) -> None:
        await self._commit(self.turn.failed(reason))
        await self._end("failed")

    # -------------------------------------------------------------- looking
    @property
    def busy(self) -> bool:
        """Whether a run is in progress, or unread mail is about to start one."""
        return (
            self.turn.phase is not Phase.IDLE
            or self.turn.retrying
            or any(self.turn.may_wake(each, self.state) for each in self._mail())
        )

    def attached(self) -> tuple[str, ...]:
        """The calls it is attached to now."""
        return tuple(call.id for call in self.turn.open if call.state != "final" and call.detached is None)

    # -------------------------------------------------------------- commits and events
    async def _commit(self, commit: Commit) -> None:
        before = self.state.status
        await self.store.commit(self.state, commit)
        if self.state.status is not before:
            self._emit(events.StatusChanged, status=self.state.status)

    def _emit(self, kind: Callable[..., Any], **facts: Any) -> None:
        self.home.emit(kind, session=self.state.id, run=self.state.run, turn=self.state.turn, **facts)


def _fetched(row: CallRecord) -> tuple[str, ...]:
    """The call whose final outcome this status request has shown."""
    value = row.outcome.value if row.outcome is not None else None
    if row.tool == "get_tool_call_status" and isinstance(value, dict) and value.get("is_final"):
        return (str(value["tool_call_id"]),)
    return ()
