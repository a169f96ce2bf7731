"""The calls of a session: how each begins, what it shows while it runs, and how its end is kept.

A call ends once. Two may want to end it: its task, which returns, and an order that cuts it short. Both decide and commit inside
`ending`, one by one, so that whoever comes second finds the outcome there.

A call whose execution comes to `deferred` has ended its task and not itself: its row has the token with which somebody answers it,
and an order wakes whoever waits for it here. Its end is the mail of that answer.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Protocol

import trio
from attrs import evolve

from actors import events
from actors._envelope import CallDeferred, ContinuationResult, Control, Envelope, FromToolCall, ended_call
from actors._errors import LeaseLost, StoreError, VersionConflict
from actors._life import Life
from actors._outcome import Outcome
from actors._waiters import OneByOne
from actors.models._api import Model
from actors.models._blocks import ToolCall, Usage
from actors.store._answer import Overtaken
from actors.store._api import Store
from actors.tools._call import execute, in_thread, unknown
from actors.tools._context import ToolContext, token_of

from ._actions import Applied
from ._agent import Agent, Config
from ._control import finished
from ._progress import Progress
from ._record import NOTHING, CallRecord, Commit, Draft, State, deferred, ended
from ._settle import Began
from ._turn import Turn

log = logging.getLogger("postroom.agent")
HEARD = 30.0  # seconds in which an answer that another process kept is here
AGAIN = 1.0  # seconds until an end that the store refused is tried again


class Home(Protocol):
    """What a session needs of the tree around it."""

    def emit(self, kind: Callable[..., Any], /, **facts: Any) -> None:
        """Show an event."""
        ...

    def start_call(self, call: str, run: Callable[[Life], Awaitable[None]], hops: int) -> None:
        """Start a call as a child of the session, with an address and a voice of its own."""
        ...

    async def start_owner(self, name: str, hold: Callable[[Callable[[], None]], Awaitable[None]]) -> None:
        """Start what keeps something that the session's tools use, below the session, and wait until it says that it is ready.

        It is begun again whenever it ends. Raises `StartFailed` if its first start failed.
        """
        ...

    def cancel_call(self, call: str) -> None:
        """Cancel a call's task, if it still runs."""
        ...

    async def end(self) -> None:
        """End the session for good; it is cancelled in here."""
        ...

    def live_calls(self) -> Collection[str]:
        """The calls whose tasks still run."""
        ...

    def progressed(self) -> None:
        """A completion was committed: failures before it no longer count."""
        ...

    def lost(self, error: LeaseLost) -> None:
        """Somebody else has the session now: whatever runs for it here has to end, and keeps nothing."""
        ...

    def spent(self, usage: Usage) -> None:
        """A request was made; those above the session may bound what their subtree spends."""
        ...

    def shared(self, model: Model) -> Model:
        """The model, asked as often as the system may ask its provider, its usage with its cost."""
        ...

    async def host_mail(self, text: str) -> int:
        """Accept what a host's inbox held as the owner's words; its place in the mailbox."""
        ...

    def after(self, seconds: float, fn: Callable[[], Awaitable[None]]) -> Any:
        """Run an async function later, in a task of the system's."""
        ...

    def forget(self, entry: Any) -> None:
        """Not any more."""
        ...

    def over_budget(self) -> str | None:
        """Why those above the session allow no further request; None if they do."""
        ...

    async def out_of_reach(self, session: str) -> str | None:
        """Why a model of this session may not reach for that one; None if it may."""
        ...

    def attached(self, calls: Collection[str]) -> None:
        """Note which calls the session waits for now."""
        ...

    def is_child(self, session: str) -> bool:
        """Whether that session was opened by this one."""
        ...


def now_beginning(*, thread: bool = False) -> Began:
    """A call begins now."""
    return Began(datetime.now(UTC), trio.current_time(), thread)


class Calls:
    """The running calls of one session. `show` emits an event."""

    def __init__(self, config: Config, state: State, store: Store, turn: Turn, home: Home, show: Callable[..., None]) -> None:
        self.agent: Agent | None = None
        self.noted = Progress(lambda call, payload: show(events.ToolProgress, call=call, payload=payload))
        self.progress = self.noted.notes
        self.ending = OneByOne()
        self.left = False  # the process ends: what is cut off now was settled, or begins again when the session is taken up
        self._config = config
        self._state = state
        self._store = store
        self._turn = turn
        self._home = home
        self._show = show

    def begin(self, row: CallRecord, call: ToolCall) -> None:
        """Start a call's task."""
        tool = self._config.tools.get(row.tool)
        self._turn.began[row.id] = now_beginning(thread=tool is not None and in_thread(tool))

        async def run(life: Life) -> None:
            cut_off = outcome = Outcome("cancelled", error="its session ended")
            context = self._context(row, call, life)
            try:
                outcome = await self._execute(call, context)
            finally:
                if outcome is not cut_off or not self.left:
                    await self._finish(row.id, outcome, context.continuation)

        self._home.start_call(row.id, run, row.hops)

    async def _execute(self, call: ToolCall, context: ToolContext) -> Outcome:
        tool = self._config.tools.get(call.tool)
        if tool is None:
            return unknown(call, [schema.name for schema in self._config.schemas])
        return await execute(tool, self.agent, call, context)

    def _context(self, row: CallRecord, call: ToolCall, life: Life) -> ToolContext:
        run = trio.lowlevel.current_trio_token()

        def progress(payload: Any) -> None:
            life.check()
            self.noted.keep(call.id, payload)
            if trio.lowlevel.in_trio_run():
                self._progressed(call.id, payload, life)
                return
            with suppress(trio.RunFinishedError):
                run.run_sync_soon(self._progressed, call.id, payload, life)

        token = token_of(self._state.seal, call.id)
        return ToolContext(call.id, call.tool, self._state.id, self._state.owner, row.idempotency_key, progress, token)

    def _progressed(self, call: str, payload: Any, life: Life) -> None:
        if call in self._state.live:
            self.noted.tell(call, payload, life.runtime.deadlines)

    async def _finish(self, call: str, outcome: Outcome, token: str) -> None:
        """A call's task is over: its outcome, or that it is deferred, and the mail that tells it are one commit. Nothing, if it was settled before."""
        row = await self._kept(call, outcome, token)
        if row is None:
            return
        self._turn.began.pop(call, None)
        self.noted.ended(call)
        if row.deferred:
            self._show(events.ToolDetached, call=call, reason=f"deferred: {row.reason}")
        else:
            self._show(events.ToolFinished, call=call, tool=row.tool, outcome=outcome)

    async def _kept(self, call: str, outcome: Outcome, token: str) -> CallRecord | None:
        """Commit the end of a call's task; None if the call had one. What it did is not lost because the disk is full: that is tried again.

        A try that failed may turn out to have been kept: then the end is this one.
        """
        made: CallRecord | None = None
        while True:
            try:
                async with self.ending:
                    row = self._state.live.get(call)
                    if row is None:
                        known = self._state.calls[call]
                        before_its_answer = evolve(known, status="deferred", outcome=None)
                        return made if made in (known, before_its_answer) else None
                    made = ended(row, outcome) if outcome.status != "deferred" else deferred(row, outcome.error or "", token)
                    await self._store.commit(self._state, Commit(calls=(made,), mail=(_told(self._state, made),), loop=False))
                    return made
            except LeaseLost as error:
                self._home.lost(error)
                return None
            except VersionConflict:
                continue  # an earlier commit was kept after all, perhaps this one
            except StoreError as error:
                log.error("the end of %s could not be kept yet: %s", call, error, extra={"address": self._state.id})  # noqa: TRY400
            await trio.sleep(AGAIN)

    async def carry_out(
        self, decide: Callable[[], tuple[bool, Applied]], commit: Callable[[Commit], Awaitable[None]]
    ) -> tuple[bool, Applied]:
        """Decide, and commit it; what `decide` said. If a deferred call that it would end was answered meanwhile, decide anew once that is known."""
        while True:
            async with self.ending:
                waiting = set(self._state.deferred)
                was, applied = decide()
                try:
                    if applied.commit != NOTHING:
                        await commit(applied.commit)
                except Overtaken as error:
                    conflict = error
                else:
                    if applied.rests:
                        self._turn.rest()
                    return was, applied
            await self._heard({row.id for row in applied.commit.calls if row.id in waiting}, conflict)

    async def _heard(self, calls: set[str], conflict: Overtaken) -> None:
        """Wait until the answer to one of these is here. It is kept, so it comes; `conflict` if it does not."""
        low = min(self._state.mail_cursor, self._state.control_cursor)
        with trio.move_on_after(HEARD) as scope:
            await self._store.mailbox(self._state.id).receive(low, lambda _envelope: not calls <= self._state.deferred.keys())
        if scope.cancelled_caught:
            raise conflict

    def answered(self, mail: Sequence[Envelope]) -> None:
        """These were folded: deferred calls among them have their end now."""
        for envelope in mail:
            if isinstance(envelope.body, ContinuationResult) and (call := ended_call(envelope)) in self._state.calls:
                self._show(events.ToolFinished, call=call, tool=self._state.calls[call].tool, outcome=envelope.body.outcome)

    def settled(self, outcomes: Mapping[str, Outcome]) -> None:
        """Calls whose outcome was decided elsewhere, and is kept: their tasks, if they have one, are cancelled, their ends shown."""
        for call, outcome in outcomes.items():
            if self._turn.began.pop(call, None) is not None:
                self._home.cancel_call(call)
            self.noted.ended(call)
            self._show(events.ToolFinished, call=call, tool=self._state.calls[call].tool, outcome=outcome)

    def announce(self, calls: Sequence[ToolCall]) -> None:
        """Show the calls that the model asked for."""
        for call in calls:
            self._show(events.ToolStarted, call=call.id, tool=call.tool, arguments=call.arguments)

    def forget_told(self) -> None:
        """Drop the progress of calls whose outcome the model was told."""
        self.noted.forget(self._state.live, self._state.placeholders)


def _told(state: State, row: CallRecord) -> Draft:
    """The mail that goes with the end of a call's task."""
    if row.deferred:
        return Draft(state.id, Control(CallDeferred(row.id)), FromToolCall(state.id, row.id))
    return finished(state, row)
