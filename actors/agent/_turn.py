"""The turn of a session: a pure machine that says what to do next. `_session.py` does it.

Theory
======

A session waits on nothing but its mailbox. A call that ends, an interrupt, a person's words and an order all arrive as mail,
so every wait is one `receive` with a predicate and a deadline, made at one of these points:

    point   when                          blocks   mail that ends it
    R1      before every model request    no       (all unread is folded)
    R2      idle, or waiting for          yes      what may wake the session; while it waits for
            detached calls                         detached calls, the end of one
    R3a     attached to calls             yes      interrupts, the end of an attached call; the attach deadlines
    R3b     in `wait`                     yes      any mail, interrupts first; the named calls; its deadline
    R4      during a completion, with     yes      interrupts: the completion is cancelled, nothing of it is kept
            `interrupt_completions`

Control (pause, resume, stop, cancel) is read at every point, first, in order, by a cursor of its own.

What a status does with mail:

    status            mail is      and ends the wait when
    ready, idle       accepted     its kind is in `wake_on`
    running           accepted     as its point says; it is folded at the next R1
    waiting           accepted     as idle, or it is the end of a detached call
    paused            accepted     it is `Resume`; any that came after the pause, with `resume_on_any_mail`
    failed            accepted     it is a person's, or `Resume`: the round is tried again
    stopped           refused      never

The phases of a run, and what leads from one to the next:

    IDLE      -- mail that may wake it -->  MODEL
    MODEL     -- a completion with calls -->  CALLS     without -->  ANSWERED     empty -->  MODEL, with mail or a nudge
    CALLS     -- each call is final, detached or deferred -->  MODEL, with one result per call
    ANSWERED  -- unread mail that may wake it, or a detached call's end -->  MODEL     nothing, no call running -->  IDLE
    any       -- StopRun -->  IDLE     a refusal by the provider -->  IDLE, failed

Every call of a completion gets exactly one result on every path; `_settle.py` says which when a call did not end by itself. After `max_rounds` requests since a person last spoke comes one more, told to wrap up, and then the run ends.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from math import inf

from attrs import define, evolve, field

from actors._envelope import (
    INTERRUPT,
    Control,
    Envelope,
    FromUser,
    ended_call,
)
from actors._exit import Status
from actors._limits import WakeKind
from actors._outcome import Outcome
from actors.models._blocks import ToolCall
from actors.models._items import Item, Nudge, Placeholder, Result, ResultsItem, UserItem

from ._actions import Act, Action, Ask, End, Match, OpenCall, Phase, Point, Switches, Unpause, Wait
from ._fold import Fold, fold, shown, wakes
from ._record import UNSPENT, CallRecord, Commit, State
from ._settle import Began, failed, settled
from ._slots import detachable, in_background, startable
from ._wait import WaitFor, WokenBy, woken


@define(eq=False)
class Turn:
    """The machine. Its methods decide and change only itself; what they return is for the loop to carry out."""

    wake_on: Collection[WakeKind]
    max_rounds: int = 10
    max_calls: int = 4
    max_detached: float = inf
    max_hops: float = inf
    switches: Switches = field(factory=Switches)
    runtime: Collection[str] = ()  # the names of its system tools
    attach: Callable[[str], float | None] = field(default=lambda _tool: None)  # how long a tool's calls are waited for
    is_child: Callable[[str], bool] = field(default=lambda _session: False)
    handled: Match = field(default=lambda _envelope: False)  # whether it waits for a handler of the agent's own
    handles: Callable[[object], bool] = field(default=lambda _body: False)  # whether one takes it: the model never sees it
    phase: Phase = Phase.IDLE
    open: list[OpenCall] = field(factory=list)
    asked: dict[str, ToolCall] = field(factory=dict)  # what each open call was asked, until it has its result
    began: dict[str, Began] = field(factory=dict)  # the calls that run now
    run: int = 0  # the run in progress, else the last one
    wrapped_up: bool = False  # the request in progress, or the last one, was told to wrap up
    nudging: bool = False
    retrying: bool = False  # `Resume` after a failure
    again: bool = False  # the next request was made before and got no answer
    boundary: bool = False  # the model is done, or said nothing: a host's inbox is read before what follows
    hosts: set[int] = field(factory=set)  # the mail of this run that came from there
    extended: int = 0  # how often such mail restarted this run's count of rounds

    # -------------------------------------------------------------- next
    def next(self, state: State, mail: Sequence[Envelope], now: float) -> Action:
        """What to do, given the unread conversational mail. Ask again after every action."""
        if state.status is Status.PAUSED:
            return self._paused(state, mail)
        if self.phase is Phase.CALLS:
            failed = state.status is Status.FAILED
            return self._failed_with_calls(state, mail) if failed else self._with_calls(state, mail, now)
        if self.phase is Phase.MODEL:
            return self._ask(state, mail)
        return self._at_rest(state, mail)

    def _paused(self, state: State, mail: Sequence[Envelope]) -> Action:
        control = _new_control(state)
        if not self.switches.resume_on_any_mail:
            return Wait(Point.R2, control)

        def ends_it(envelope: Envelope) -> bool:
            return envelope.seq > state.paused_at and not self.handles(envelope.body) and shown(envelope, state.placeholders)

        if any(map(ends_it, mail)):
            return Unpause(self.resumed(state))
        return Wait(Point.R2, lambda envelope: control(envelope) or ends_it(envelope))

    def resumed(self, state: State) -> Commit:
        """A pause is over: back to what it was."""
        running = self.phase is not Phase.IDLE
        return Commit(status=Status.RUNNING if running else Status.IDLE if state.run else Status.READY)

    def _at_rest(self, state: State, mail: Sequence[Envelope]) -> Action:
        """IDLE and ANSWERED: go on if something unread may wake the session; else wait, or end the run."""
        if self.retrying or any(self.may_wake(envelope, state) for envelope in mail):
            return self._ask(state, mail)
        if self.phase is Phase.ANSWERED and (self.wrapped_up or not _detached_running(state)):
            self.phase = Phase.IDLE
            return End("limit" if self.wrapped_up else "answered")
        control = _new_control(state)
        ends = set(state.placeholders) & state.live.keys() if self.phase is Phase.ANSWERED else ()

        def match(envelope: Envelope) -> bool:
            return control(envelope) or self.handled(envelope) or self.may_wake(envelope, state) or ended_call(envelope) in ends

        return Wait(Point.R2, match)

    def may_wake(self, envelope: Envelope, state: State) -> bool:
        """Whether this unread envelope begins a run, or keeps one going."""
        if isinstance(envelope.body, Control) or self.handles(envelope.body) or envelope.hops > self.max_hops:
            return False  # what came too far is kept, and read with what wakes it
        if state.status is Status.FAILED:
            return isinstance(envelope.sender, FromUser) and envelope.seq > max(state.floor, state.mail_cursor)
        if self.wrapped_up and self.phase is Phase.ANSWERED:
            return False  # the run is over; what is unread begins the next one
        return wakes(envelope, state, self.wake_on, self.is_child)

    def _failed_with_calls(self, state: State, mail: Sequence[Envelope]) -> Action:
        """The loop was given up while calls were open. They stay open until somebody has it tried again."""
        if any(self.may_wake(envelope, state) for envelope in mail):
            return Unpause(Commit(status=Status.RUNNING))
        control = _new_control(state)
        return Wait(Point.R2, lambda envelope: control(envelope) or self.handled(envelope) or self.may_wake(envelope, state))

    # -------------------------------------------------------------- calls
    def _with_calls(self, state: State, mail: Sequence[Envelope], now: float) -> Action:
        for call in self.open:
            if state.calls[call.id].over:
                call.state = "final"
        act = self._preempt(state, mail, now) or self._wake_waits(state, mail, now) or self._advance(state, now)
        if act:
            return act
        if all(call.state == "final" or call.detached for call in self.open):
            return self._ask(state, mail)
        return self._attached(state)

    def _preempt(self, state: State, mail: Sequence[Envelope], now: float) -> Act | None:
        """An interrupt: what runs is detached, what is queued never starts, a `wait` is over."""
        if not any(envelope.priority is INTERRUPT for envelope in mail):
            return None
        mine = [call for call in self.open if call.state != "final" and not call.runtime and call.detached is None]
        queued = {call.id: settled(state.calls[call.id], "an interrupt came first") for call in mine if call.state == "queued"}
        running = [call for call in mine if call.state == "running"]
        detached, refused = self._detached(state, running, lambda _call: "interrupted", now)
        waits = {call.id: WokenBy("interrupt") for call in self._waiting()}
        return self._apply(Act(outcomes={**queued, **refused}, detached=detached, woken=waits))

    def _wake_waits(self, state: State, mail: Sequence[Envelope], now: float) -> Act | None:
        """The waits whose condition holds; if mail ended one, its attached siblings detach."""
        ended_by: dict[str, WokenBy] = {}
        for call in self._waiting():
            assert call.wait is not None
            by = woken(call.wait, state, mail, now)
            if by is not None:
                ended_by[call.id] = by
        if not ended_by:
            return None
        siblings = [call for call in self.open if call.state == "running" and not call.runtime and call.detached is None]
        by_mail = any(by.what == "mail" for by in ended_by.values())
        detached, refused = self._detached(state, siblings if by_mail else (), lambda _call: "mail", now)
        return self._apply(Act(woken=ended_by, detached=detached, outcomes=refused))

    def _advance(self, state: State, now: float) -> Act:
        """Start what has a slot; detach what has been attached for long enough."""
        start = self._startable(state)
        late = [
            call
            for call in self.open
            if call.state != "final" and call.until <= now and not call.runtime and call.detached is None
        ]
        late = [call for call in late if call.id not in start]
        detached, refused = self._detached(
            state,
            late,
            lambda call: f"still {'queued' if call.state == 'queued' else 'running'} after {call.attach or 0:g}s",
            now,
        )
        unstarted = tuple(call.id for call in late if call.state == "queued" and call.id in detached)
        return self._apply(Act(start=start + unstarted, detached=detached, outcomes=refused))

    def _startable(self, state: State) -> tuple[str, ...]:
        return startable(self.open, state, self.max_calls, self.max_detached)

    def _detached(
        self, state: State, calls: Sequence[OpenCall], why: Callable[[OpenCall], str], now: float
    ) -> tuple[dict[str, str], dict[str, Outcome]]:
        """Which of these go on detached, and why; the others fail, for there is no more room in the background."""
        if not calls:
            return {}, {}
        stay = detachable(calls, self.open, state, self.max_detached)
        there = ", ".join(in_background(self.open, state))
        told = (
            f"{there} run in the background, as many as may; wait for one or cancel one"
            if there
            else "none may run in the background"
        )
        refused = {each.id: failed(self.began.get(each.id), told, now) for each in calls if each not in stay}
        return {each.id: why(each) for each in stay}, refused

    def _apply(self, act: Act) -> Act:
        for call in self.open:
            if call.id in act.start:
                call.state = "running"
            if call.id in act.outcomes or call.id in act.woken:
                call.state = "final"
            if call.id in act.detached:
                call.detached = act.detached[call.id]
        return act

    def _waiting(self) -> list[OpenCall]:
        return [call for call in self.open if call.wait is not None and call.state == "running"]

    def _attached(self, state: State) -> Wait:
        waiting = self._waiting()
        running = {call.id for call in self.open if call.state == "running" and call.detached is None}
        control = _new_control(state)

        def match(envelope: Envelope) -> bool:
            if isinstance(envelope.body, Control):
                return control(envelope)
            if envelope.seq <= state.mail_cursor or self.handles(envelope.body):
                return False
            if envelope.priority is INTERRUPT:
                return True
            if ended_call(envelope) in running:
                return True
            return any(woken(call.wait, state, (envelope,), -inf) is not None for call in waiting if call.wait is not None)

        attached = [call.until for call in self.open if call.state != "final" and not call.runtime and call.detached is None]
        waits = [call.wait.until for call in waiting if call.wait is not None]
        return Wait(Point.R3B if waiting else Point.R3A, match, min([*attached, *waits], default=inf))

    # -------------------------------------------------------------- asking
    def results(self, state: State) -> tuple[Result, ...]:
        """One result per open call, in call order: its outcome if it is final, else a placeholder."""
        return tuple(self._result(call, state.calls[call.id]) for call in self.open)

    def _result(self, call: OpenCall, row: CallRecord) -> Result:
        if row.outcome is not None:
            return Result(call.id, call.tool, row.outcome)
        status, why = ("deferred", row.reason) if row.deferred else ("running", call.detached or "interrupted")
        return Result(call.id, call.tool, Placeholder(status, why, can_wait="wait" in self.runtime))  # type: ignore[arg-type]

    def _ask(self, state: State, mail: Sequence[Envelope]) -> Ask:
        """R1: fold the unread mail behind the results, and ask; C0 or C2."""
        results = self.results(state)
        placed = {result.call for result in results if isinstance(result.outcome, Placeholder)}
        folded = fold(state, mail, state.placeholders | placed)
        if self.phase is Phase.IDLE:
            self.hosts.clear()
            self.extended = 0
        extended = self.extended
        spent = 0 if self._restarts(folded) else state.rounds - self.again
        self.wrapped_up = spent >= self.max_rounds
        nudge: Nudge | None = "wrap_up" if self.wrapped_up else "continuation" if self.nudging and not folded.mail else None
        begins = self.phase is Phase.IDLE
        self.run = state.run + begins
        item = _user_item(state, folded, nudge)
        amends = item is not None and not results and (state.unanswered or self._beside_results(state))
        if results and item is not None and self.switches.mail_in_tool_result:
            results, item = (*results[:-1], evolve(results[-1], mail=item)), None
        append: tuple[Item, ...] = (ResultsItem(results),) if results else ()
        commit = Commit(
            append=append if amends or item is None else (*append, item),
            amend=item if amends else None,
            mail_cursor=folded.cursor,
            control_cursor=max(state.control_cursor, folded.cursor),  # control up to here was applied before this fold
            status=Status.RUNNING,
            run=self.run,
            turn=state.turn + 1,
            rounds=spent + 1,
            hops=_hops(state, folded, begins=begins),
            spent=UNSPENT if begins else None,
        )
        self.open = []
        self.nudging = self.retrying = self.again = self.boundary = False
        self.phase = Phase.MODEL
        exhausted = self.extended == self.max_rounds + 1 and not extended > self.max_rounds
        return Ask(commit, folded.mail, nudge, begins, exhausted)

    def _beside_results(self, state: State) -> bool:
        """Whether mail goes into results that have no answer yet: they were told in a request that was cut, or to nobody."""
        return self.switches.mail_in_tool_result and bool(state.items) and isinstance(state.items[-1], ResultsItem)

    def _restarts(self, folded: Fold) -> bool:
        """Whether the count of rounds begins anew: a person spoke. A host's inbox may do that `max_rounds` times a run."""
        if not folded.person or any(isinstance(each.sender, FromUser) and each.seq not in self.hosts for each in folded.mail):
            return folded.person
        self.extended += 1
        return self.extended <= self.max_rounds

    def at_boundary(self, state: State) -> bool:
        """Whether a host's inbox is to be read now: behind a tool round, an empty turn, or a would-be final answer."""
        going_on = self.boundary or (self.phase is Phase.CALLS and state.status is not Status.FAILED)
        return going_on and self.between_rounds(state)

    def between_rounds(self, state: State) -> bool:
        """Whether no call is attached, and there is no pause."""
        if state.status is Status.PAUSED:
            return False
        return self.phase is not Phase.CALLS or all(state.calls[each.id].over or each.detached for each in self.open)

    def failed(self, reason: str) -> Commit:
        """The model will not answer: the run ends; a person's mail or `Resume` tries the round again."""
        if self.phase is not Phase.CALLS:  # else they have no results yet, and no user item may stand behind them
            self.rest()
        return Commit(status=Status.FAILED, failure=reason)

    def rest(self) -> None:
        """There is no run any more."""
        self.phase = Phase.IDLE
        self.open = []
        self.nudging = self.retrying = self.again = self.boundary = False

    # -------------------------------------------------------------- what the loop asks and tells it
    @property
    def meant(self) -> int:
        """The run that a `StopRun` of this moment means: the one in progress, else the next."""
        return self.run + (self.phase is Phase.IDLE)

    def started_now(self, state: State) -> tuple[str, ...]:
        """The calls of a fresh completion that have a slot."""
        start = self._startable(state)
        self._apply(Act(start=start))
        return start

    def waiting(self, call: str, wait: WaitFor, began: Began) -> None:
        """A system tool waits for this; the turn says when it is over."""
        self.began[call] = began
        next(each for each in self.open if each.id == call).wait = wait

    def waits_over(self, woken: Mapping[str, WokenBy]) -> list[tuple[str, WaitFor]]:
        """The waits that an `Act` ended."""
        return [(call.id, call.wait) for call in self.open if call.id in woken and call.wait is not None]


# ------------------------------------------------------------------ small parts
def _hops(state: State, folded: Fold, *, begins: bool) -> int:
    """The hops that this run's mail carries: none after a person spoke, else one more than the mail it came from."""
    if folded.person:
        return 0
    mine = [envelope.hops if ended_call(envelope) is not None else envelope.hops + 1 for envelope in folded.mail]
    return max([*mine, 0 if begins else state.hops])


def _user_item(state: State, folded: Fold, nudge: Nudge | None) -> UserItem | None:
    if not folded.mail and nudge is None:
        return None
    told = (state.stopped, *folded.mail) if state.stopped is not None else folded.mail
    return UserItem(told, nudge, folded.already_read, folded.waiting, folded.cuts, folded.tools)


def _new_control(state: State) -> Match:
    return lambda envelope: isinstance(envelope.body, Control) and envelope.seq > state.control_cursor


def _detached_running(state: State) -> bool:
    return not state.placeholders.isdisjoint(state.live)
