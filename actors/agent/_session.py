"""One activation of a session: carries out what the turn decides.

Every step is the same: apply the orders that came, ask the turn what to do, do it, commit. The loop waits nowhere but in its
mailbox and in the model. Calls run beside it as tasks of their own (`_calls.py`); their ends are commits that send mail.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from typing import Any

import trio
from attrs import evolve
from msgspec.structs import replace

from actors import events
from actors._envelope import INTERRUPT, Control, EndSession, Envelope, StopRun, ended_call
from actors._errors import ConfigError, LimitExceeded, MailboxFull, ModelError, TranscriptInvalid
from actors._exit import Status
from actors._inherit import Inherit
from actors._life import Life
from actors._mailbox import Mailbox
from actors._outcome import Outcome
from actors._waiters import unprotected, unprotected_async
from actors.store._api import Store
from actors.tools._call import unparsable

from ._actions import Act, Applied, Ask, End, Phase, RunEnd, Unpause, Wait
from ._agent import Agent, Config
from ._answers import Answers
from ._asking import Answered, Asking, final
from ._calls import Calls, Home, now_beginning
from ._completion import take
from ._control import apply_order, attached, cancel, close, going_on, lost_detached, recover, resumes, shutdown
from ._handlers import Handlers
from ._inbox import Drain
from ._record import EMPTY, CallRecord, Commit, State, ended
from ._refused import to_hide
from ._requests import Requests
from ._timers import Timers
from ._toolbox import NO_EFFECTS, TOOLBOX, Desk, Effects, shown_by, waited
from ._turn import Turn
from ._wait import WaitFor

log = logging.getLogger("postroom.agent")


class Session:
    """The loop of a session, from its activation until its life ends."""

    def __init__(self, config: Config, state: State, store: Store, home: Home) -> None:
        self.config = config
        self.state = state
        self.store = store
        self.home = home
        self.box: Mailbox = store.mailbox(state.id)
        self.answers = Answers(state.last_answer)
        self.agent: Agent | None = None
        self.broken: str | None = None  # why the loop was not started again: its run has failed
        self.toolbox: Collection[str] = frozenset(config.toolbox)
        self.handlers = Handlers(config.agent.__handlers__, state, self.box)
        self.turn = Turn(
            config.wake_on,
            config.max_rounds,
            config.limits.max_calls,  # type: ignore[arg-type]  # all limits are set
            config.limits.max_detached,  # type: ignore[arg-type]
            config.limits.max_hops,  # type: ignore[arg-type]
            config.switches,
            self.toolbox,
            self._attach,
            home.is_child,
            self.handlers.due,
            self.handlers.takes,
        )
        self.calls = Calls(config, state, store, self.turn, home, self._emit)
        self._asking = Asking([home.shared(model) for model in config.models], self.box, self._emit)
        self._requests = Requests(config, state, home, self._emit)
        self.timers = Timers(state, store, home)
        self._effects = Effects()
        self._drain: Drain | None = None  # of the run in progress
        self.shaping = 0  # how many wait for an answer of a given shape
        self.draining = False  # a stop waits until what was accepted is answered
        self.drained = False

    # -------------------------------------------------------------- the loop
    async def run(self, life: Life, on_ready: Callable[[Life], None]) -> None:
        """Serve the session until the life is cancelled. Raises what crashes the loop; the next life goes on from the last commit."""
        if self.agent is None:
            self.agent = await self._born(life)
        life.actor = self.agent
        self.agent._life = life  # noqa: SLF001  # the runtime's end of the actor
        now = trio.current_time()
        await self._apply(partial(recover, self.turn, self.state, self.home.live_calls(), now, self._repeats))
        self._begin_again()
        self.timers.arm_all()
        on_ready(life)
        if self.broken is not None:
            reason, self.broken = self.broken, None
            await self._fail(reason)
        while not self.drained:
            await self._step()

    async def _born(self, life: Life) -> Agent:
        agent: Agent = unprotected(self.config.agent)
        agent._life = life  # noqa: SLF001
        agent.deps = self.config.deps
        for link in self.config.toolset.links:
            await self.home.start_owner(f"mcp-{link.server.name}", link.hold)
        await unprotected_async(agent.on_start)
        self.calls.agent = agent
        return agent

    async def _step(self) -> None:
        await self._orders()
        if self._drain is not None and self.turn.at_boundary(self.state):
            await self._drain_inbox(self._drain)
            await self._orders()  # a fold moves the cursors over all that lies before it: nothing may come in between
        while self.turn.between_rounds(self.state) and (envelope := self.handlers.next()) is not None:
            await self.handlers.handle(self.agent._life, envelope, self._commit)  # type: ignore[union-attr, arg-type]  # noqa: SLF001
            await self._orders()
        action = self.turn.next(self.state, self._mail(), trio.current_time())
        match action:
            case Wait():
                await self._wait(action)
            case Act():
                await self._act(action)
            case Ask():
                await self._ask(action)
            case Unpause():
                await self._commit(action.commit)
            case End():
                await self._end(action.reason)

    async def _drain_inbox(self, drain: Drain) -> None:
        """Take what the host has, where there is room for it. From the drain to the accept nothing can come between."""
        self.turn.boundary = False
        if self.shaping or self.box.statistics().unread >= self.box.capacity:
            return
        text = drain.text()
        if text:
            with trio.CancelScope(shield=True), suppress(MailboxFull):  # others were faster: it is held until there is room
                self.turn.hosts.add(await self.home.host_mail(text))
                drain.accepted()

    def _read_inbox(self, ask: Ask) -> None:
        """Each run has a reader of its own."""
        if self.config.inbox is not None and (ask.begins or self._drain is None):
            self._drain = Drain(self.config.inbox, self.config.agent.__name__, self._drain)
        if ask.exhausted:
            told = "%s: its inbox has restarted the count of rounds %d times, as often as it may in a run"
            log.warning(told, self.state.id, self.config.max_rounds)

    def _mail(self) -> Sequence[Envelope]:
        """What is unread and the model's to read."""
        unread = self.box.unread(self.state.mail_cursor)
        if self.box.orders(self.state.mail_cursor):
            unread = [envelope for envelope in unread if not isinstance(envelope.body, Control)]
        handled = self.config.agent.__handlers__
        return [envelope for envelope in unread if not self.handlers.takes(envelope.body)] if handled else unread

    async def _wait(self, wait: Wait) -> None:
        if self.draining and not self.running and self.state.status is not Status.PAUSED:
            self.drained = True
            return
        if self.turn.phase is Phase.ANSWERED and self.state.status is Status.RUNNING:
            await self._commit(Commit(status=Status.WAITING))
            self._emit(events.Waiting)
        held = attached(self.turn)
        if held:
            self.home.attached(held)
        try:
            await self._receive(wait)
        finally:
            if held:
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
        if self.state.status is not status and self.state.status is not Status.STOPPED:
            await self._commit(Commit(status=status))
        self._emit(events.RunStopped, reason=reason)
        why = self.state.failure if reason == "failed" else f"the run ended: {reason}"
        self.answers.run_over(max(self.state.mail_cursor, self.state.floor), self.state.status, why)

    async def close(self, *, final: bool) -> None:
        """This activation is over. `final`: so is the session; else the system stops, and what is kept can be opened again."""
        now = trio.current_time()
        self.calls.left = self.store.durable and not final
        decide = close if final else partial(shutdown, kept=self.store.durable, repeats=self._repeats)
        await self._apply(partial(decide, self.turn, self.state, now))

    # -------------------------------------------------------------- orders
    async def _orders(self) -> None:
        """Apply all there are, those too that come meanwhile: a fold moves the cursor of control over what lies before it."""
        while orders := self.box.orders(self.state.control_cursor):
            if isinstance(orders[0].body.action, EndSession):
                await self.home.end()
            await self._apply(partial(apply_order, self.turn, self.state, orders[0], trio.current_time()))
            if len(orders) == 1:
                self.timers.follow()

    async def _apply(self, decide: Callable[[], Applied]) -> None:
        about_to_run, applied = await self.calls.carry_out(lambda: (self.busy, decide()), self._commit)
        self.calls.settled(applied.cancelled)
        if applied.stopped:
            await self._end("stopped")
        elif applied.commit.floor is not None and about_to_run and not self.busy:
            self.answers.run_over(applied.commit.floor, self.state.status, "the run was stopped before it began")

    # -------------------------------------------------------------- calls
    async def _act(self, act: Act) -> None:
        now = trio.current_time()
        ended_waits = {call: waited(wait, act.woken[call], self._desk(), now) for call, wait in self.turn.waits_over(act.woken)}
        outcomes = {**act.outcomes, **ended_waits}
        if outcomes:
            await self._finish_here(outcomes)
        for call, reason in act.detached.items():
            self._emit(events.ToolDetached, call=call, reason=reason)
        await self._start(act.start)

    async def _finish_here(self, outcomes: Mapping[str, Outcome], effects: Effects = NO_EFFECTS) -> None:
        """Calls that the turn ends, and what they changed: their result tells it all, so no mail is sent.

        One whose task has ended meanwhile keeps the outcome that it has.
        """
        async with self.calls.ending:
            outcomes = {call: outcome for call, outcome in outcomes.items() if call in self.state.live}
            rows = tuple(ended(self.state.calls[call], outcome) for call, outcome in outcomes.items())
            fetched = tuple(call for row in rows for call in shown_by(row) if call in self.state.placeholders)
            await self._commit(effects.commit(rows, fetched))
        self.timers.disarm(*effects.timers_gone)
        for row, seconds in effects.timers:
            self.timers.arm(row, seconds)
        self.calls.settled(outcomes)

    async def _start(self, calls: Sequence[str]) -> None:
        rows = tuple(evolve(row, status="started") for row in map(self.state.live.__getitem__, calls) if row.status == "issued")
        if rows:
            await self._commit(Commit(calls=rows))
        for call in calls:
            row = self.state.live.get(call)
            if row is None:
                continue  # a `cancel_tool_call` before it in this very turn ended it
            if row.tool in self.toolbox:
                await self._system_tool(row)
            else:
                self.calls.begin(row, self.turn.asked[call])

    async def _system_tool(self, row: CallRecord) -> None:
        async with self.timers.one():
            await self._served(row)

    async def _served(self, row: CallRecord) -> None:
        done = unparsable(self.turn.asked[row.id]) or await TOOLBOX[row.tool].serve(
            self._desk(row.id), row.arguments, self.home
        )
        if isinstance(done, WaitFor):
            self.turn.waiting(row.id, done, now_beginning())
            return
        effects, self._effects = self._effects, Effects()
        if effects.cancel is not None:
            await self._apply(partial(cancel, self.turn, self.state, *effects.cancel, trio.current_time()))
        await self._finish_here({row.id: done}, effects)

    def _desk(self, call: str = "") -> Desk:
        return Desk(
            self.state, {call.id: call for call in self.turn.open}, self.calls.progress, self.turn.began,
            lambda: any(ended_call(envelope) is not None for envelope in self._mail()), self._effects, self.config.limits.max_wait, call,  # type: ignore[arg-type]
        )  # fmt: skip

    def _repeats(self, tool: str) -> bool:
        """Whether its calls may be started twice: system tools change nothing but this session, others say so themselves."""
        found = self.config.tools.get(tool)
        return tool in self.toolbox or (found is not None and found.idempotent)

    def _begin_again(self) -> None:
        """Detached calls that were lost and may be started twice."""
        for call in lost_detached(self.turn, self.state, self.home.live_calls()):
            self.calls.begin(self.state.live[call.id], call)

    # -------------------------------------------------------------- the model
    async def _ask(self, ask: Ask) -> None:
        folded = [envelope for envelope in self._mail() if envelope.seq <= (ask.commit.mail_cursor or 0)]
        await self._commit(ask.commit, ahead=True)
        self.calls.forget_told()
        if ask.begins:
            self._emit(events.RunStarted)
        self.calls.answered(folded)
        self._read_inbox(ask)
        if ask.nudge is not None:
            self._emit(events.Continuing, nudge=ask.nudge)
        if ask.delivered:
            self._emit(events.MailDelivered, mail=ask.delivered, round=self.state.rounds)
        self._emit(events.TurnStarted, round=self.state.rounds)
        try:
            await self.config.toolset.settled()
            request = self._requests.next(self.agent, begins=ask.begins, wrapped_up=self.turn.wrapped_up)  # type: ignore[arg-type]  # it is born
        except (ConfigError, LimitExceeded, TranscriptInvalid) as error:
            await self._fail(str(error))
            return
        answer = await self._asking.ask(request, min(self.state.mail_cursor, self.state.control_cursor), self._cuts)
        if isinstance(answer, Answered):
            await self._take(answer)
            return
        if answer.error is None or answer.streamed:
            self._requests.cut(answer.streamed)
        if answer.error is not None:
            await self._unanswered(answer.error)

    async def _unanswered(self, error: Exception) -> None:
        """What a retry cannot cure ends the run; anything else crashes the loop, which is started again with a delay."""
        if not (isinstance(error, ModelError) and final(error)):
            raise error
        await self._fail(str(error), to_hide(self.state, error))

    def _cuts(self, envelope: Envelope) -> bool:
        """R4: what cancels the completion in progress. The loop looks at it next."""
        body = envelope.body
        if isinstance(body, Control):
            action, unread = body.action, envelope.seq > self.state.control_cursor
            stops = isinstance(action, StopRun) and action.run in {None, self.turn.meant}
            return unread and (stops or isinstance(action, EndSession))
        unread = envelope.seq > self.state.mail_cursor and not self.handlers.takes(body)
        return unread and envelope.priority is INTERRUPT and self.config.switches.interrupt_completions

    async def _take(self, answer: Answered) -> None:
        self._requests.answered(answer.completion.usage)
        done = take(self.turn, self.state, answer.completion, answer.model, trio.current_time(), self._requests.spent)
        if done.failure is not None:
            await self._fail(done.failure)
            return
        await self._commit(done.commit)
        self._requests.kept()
        self.home.progressed()
        self.calls.announce(done.announced)
        self.calls.settled(done.settled)
        if done.answer:
            self._emit(events.Answer, text=done.answer)
            self.answers.answered(self.state.mail_cursor, done.answer)
        await self._start(done.start)

    def _attach(self, tool: str) -> float | None:
        found = self.config.tools.get(tool)
        return None if found is None or isinstance(found.attach, Inherit) else found.attach

    async def _fail(self, reason: str, refused: Mapping[str, str] = EMPTY) -> None:
        await self._commit(replace(self.turn.failed(reason), refused=refused))
        await self._end("failed")

    # -------------------------------------------------------------- looking
    @property
    def busy(self) -> bool:
        """Whether a run is in progress, or unread mail is about to start one."""
        return (
            self.running
            or self.turn.retrying
            or (self.state.status is Status.FAILED and any(map(resumes, self.box.unread(self.state.control_cursor))))
            or any(self.turn.may_wake(each, self.state) for each in self._mail())
        )

    @property
    def running(self) -> bool:
        """Whether a run is in progress, its last commit included."""
        return going_on(self.turn, self.state) or self.state.status in {Status.RUNNING, Status.WAITING}

    @property
    def resting(self) -> bool:
        """Whether nothing happens until somebody says something: no run, or a pause, and no order to be applied."""
        return (
            not self.box.orders(self.state.control_cursor)
            and (self.state.status is Status.PAUSED or self.handlers.next() is None)
            and (not self.busy or self.state.status is Status.PAUSED)
        )

    # -------------------------------------------------------------- commits and events
    async def _commit(self, commit: Commit, *, ahead: bool = False) -> None:
        before = self.state.status
        await (self.store.begin if ahead else self.store.commit)(self.state, commit)
        if self.state.status is not before:
            self._emit(events.StatusChanged, status=self.state.status)

    def _emit(self, kind: Callable[..., Any], **facts: Any) -> None:
        self.home.emit(kind, session=self.state.id, run=self.state.run, turn=self.state.turn, **facts)
