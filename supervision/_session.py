"""Sessions in the tree: their places. Their calls are in `_call.py`."""

import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from contextvars import copy_context
from typing import Any

import trio

from actors._actor import Actor
from actors._envelope import (
    RUNTIME_BODIES,
    Action,
    CancelAllAttached,
    Control,
    FromSession,
    FromUser,
    Priority,
    Receipt,
    Sender,
    StopRun,
    UserMessage,
)
from actors._errors import (
    Fenced,
    LeaseLost,
    NotPermitted,
    RestartIntensityExceeded,
    SendRefused,
    sentence,
)
from actors._exit import Exit, Failed, Status, Stopped
from actors._identity import Identity
from actors._life import Life
from actors._ref import StopMode
from actors._reply import ReplyToken
from actors._verdict import for_the_root
from actors.agent._agent import Config
from actors.agent._control import attached
from actors.agent._record import Commit, State, TimerRow
from actors.agent._session import Session
from actors.events import MailAccepted, Refused
from actors.models._api import Model
from actors.models._blocks import Usage
from actors.store._api import Store

from ._call import CallPlace
from ._owner import PATIENCE, OwnerPlace
from ._place import Place
from ._reach import out_of_reach
from ._session_ref import SessionRef
from ._spec import Backoff, ChildSpec
from ._words import as_words

log = logging.getLogger("postroom.supervision")


class Fence:
    """The store of an activation that is over and did not end in time: it keeps nothing."""

    durable = True

    def __init__(self, address: str) -> None:
        self._address = address

    async def commit(self, _state: State, _commit: Commit) -> None:
        """Refuse it."""
        raise Fenced(address=self._address)

    begin = commit


def _seat_of(session: str, config: Config) -> ChildSpec:
    """What a session is started by that is in no tree; its life is `SessionPlace.body`."""
    return ChildSpec(Actor, name=session.rpartition("/")[2], backoff=Backoff(), init_timeout=10 + _for_servers(config))


def _patient(spec: ChildSpec, config: Config) -> ChildSpec:
    """The spec of a tree, with the time that its MCP servers may take."""
    if not config.toolset.links:
        return spec
    return ChildSpec(
        Actor, name=spec.name, restart=spec.restart, shutdown=spec.shutdown, init_timeout=spec.init_timeout + _for_servers(config),
        significant=spec.significant, backoff=spec.backoff, limits=spec.limits,
    )  # fmt: skip


def _for_servers(config: Config) -> float:
    return PATIENCE * len(config.toolset.links)


class SessionPlace(Place):
    """The place of a session: mail goes through its rules, its life is the loop, its children are its calls."""

    __slots__ = ("backoff", "by_itself", "config", "emit", "final", "joining", "leaving", "seen", "session", "shut", "state")

    kind = "session"
    direct = False
    ref_type = SessionRef

    def __init__(
        self,
        runtime: Any,
        config: Config,
        state: State,
        store: Store,
        spec: ChildSpec | None = None,
        parent: Place | None = None,
    ) -> None:
        context = copy_context() if parent is None else parent.context.copy()
        given = _seat_of(state.id, config) if spec is None else _patient(spec, config)
        super().__init__(runtime, state.id, given, parent, context, store.mailbox(state.id))
        self.backoff = given.backoff or Backoff()
        self.config = config
        self.state = state
        self.sender = FromSession(state.id, state.agent)
        self.mailbox.capacity = config.limits.max_unread
        self.mailbox.max_hops = config.limits.max_hops
        self.mailbox.on_accept = self._accepted
        self.limits = config.limits
        self.mailbox.closed = False  # an earlier activation's end closed it
        self.emit = runtime.hub.emit
        self.session = Session(config, state, store, self)
        self.leaving, self.seen = False, 0  # memory, that is: nothing ends; up to which of its mail it had nothing to do then
        self.shut = False  # it leaves although it does not rest: what runs ends, and goes on wherever it is opened next
        self.joining = self.final = False  # somebody ends the session itself, and not only what runs for it here
        self.by_itself = False  # mail or the store woke it, and nobody opened it since

    def standing(self) -> Status:
        """The session's status; its loop's restarts do not show in it."""
        return self.status if self.status is Status.STOPPING else self.state.status

    # -------------------------------------------------------------- accepting
    def refusal(self) -> Exception | None:
        """As of any place; what leaves memory still accepts."""
        return None if self.leaving else super().refusal()

    def _accepted(self, envelope: Any) -> None:
        self.runtime.hub.emit(MailAccepted, session=self.address, run=self.state.run, envelope=envelope)

    def admit(
        self, identity: Identity, body: object, *, id: str | None, priority: Priority, token: ReplyToken | None
    ) -> Receipt:
        """Accept a person's, agent's or actor's words."""
        if token is not None:
            raise NotPermitted(f"{self.address} is a session; ask it through `system.session({self.address!r})`")
        self._check(identity, None)
        try:
            return self.mailbox.accept(self._body(body), identity.sender, id=id, priority=priority, hops=identity.hops)  # type: ignore[no-any-return]
        except SendRefused as refusal:
            self._refused(refusal)
            raise

    async def admit_when_room(
        self, identity: Identity, body: object, *, id: str | None, priority: Priority, seconds: float
    ) -> Receipt:
        """As `admit`, waiting for room."""
        until = trio.current_time() + seconds if seconds else 0.0
        if not self.passes():
            self._check(identity, None)
            try:
                return await self.mailbox.accept_when_room(  # type: ignore[no-any-return]
                    seconds, self._body(body), identity.sender, id=id, priority=priority, hops=identity.hops, permit=identity.permit
                )  # fmt: skip
            except SendRefused as refusal:
                if not self.passes():
                    self._refused(refusal)
                    raise
        left = until - trio.current_time() if seconds else 0.0
        return await self._kept_on().admit_when_room(identity, body, id=id, priority=priority, seconds=left)  # type: ignore[no-any-return]

    def passes(self) -> bool:
        """Whether it stops here and goes on elsewhere, or later: the store takes its mail meanwhile."""
        return self.session.store.durable and self.mailbox.closed and not self.final and self.started

    def _kept_on(self) -> Any:
        return self.runtime.waking.stored(self.address, LeaseLost(f"{self.address} is leaving memory here"), self.config.agent)

    def _refused(self, refusal: SendRefused) -> None:
        self.runtime.hub.emit(Refused, session=self.address, recipient=self.address, error=str(refusal))

    def _body(self, body: object) -> object:
        words = as_words(self.address, body)
        if words is not None:
            return words
        if self.session.handlers.takes(body):
            return body
        own = "".join(f", {kind.__name__}" for kind in self.config.agent.__handlers__)
        hint = "; only the runtime sends these" if isinstance(body, RUNTIME_BODIES) else ""
        raise TypeError(
            f"{self.address} is a session and takes str, UserMessage, AgentMessage{own}, not {type(body).__name__}{hint}"
        )

    def order(self, identity: Identity, action: Action) -> Receipt:
        """Accept control; what it means is stamped here, so that a replay hits nothing else."""
        return self.mailbox.accept(self._stamped(identity, action), identity.sender)  # type: ignore[no-any-return]

    async def order_durably(self, identity: Identity, action: Action) -> Receipt:
        """As `order`, where the session is kept in a store."""
        if self.passes():
            return await self._kept_on().order_durably(identity, action)  # type: ignore[no-any-return]
        return await self._kept(self._stamped(identity, action), identity.sender)

    def _stamped(self, identity: Identity, action: Action) -> Control:
        self._check(identity, None)
        if isinstance(action, StopRun):
            action = StopRun(run=self.session.turn.meant)
        elif isinstance(action, CancelAllAttached):
            action = CancelAllAttached(calls=attached(self.session.turn))
        return Control(action)

    async def _kept(self, body: object, sender: Sender) -> Receipt:
        """Accept what the runtime sends: at once in memory, durably where the session is kept."""
        if self.session.store.durable:
            return await self.mailbox.accept_when_room(0, body, sender)  # type: ignore[no-any-return]
        return self.mailbox.accept(body, sender)  # type: ignore[no-any-return]

    async def set_timer(self, identity: Identity, row: TimerRow, seconds: float) -> None:
        """`SessionRef.send_after`."""
        self._check(identity, None)
        await self.session.timers.set(row, seconds)

    async def cancel_timer(self, identity: Identity, timer: str) -> bool:
        """`SessionRef.cancel_timer`."""
        identity.check()
        return await self.session.timers.cancel(timer)

    # -------------------------------------------------------------- living
    async def body(self, lives: Any, life: Life) -> Exit:
        """The loop."""
        life.ref = SessionRef(self.address, self.runtime)
        if not self.started and self.generation > 1:
            self._renew()
        session = self.session
        try:
            if not life.scope.cancel_called:
                await session.run(life, lives.on_ready)
            elif session.agent is not None:  # it begins to end: the agent still says goodbye
                session.agent._life = life  # noqa: SLF001  # the runtime's end of the actor
                life.actor, life.ready = session.agent, True
        except LeaseLost as error:
            self.lost(error)
        finally:
            ends = self.asked is not None or self.halted is not None
            if ends and (self.shut or not self.leaving):
                with trio.CancelScope(shield=True), suppress(LeaseLost):
                    await session.close(final=self.final and not self.runtime.closing)
        return Stopped()

    def _renew(self) -> None:
        """Its group restarts: a new activation, from the last commit. Whoever waits for an answer goes on waiting."""
        old = self.session
        old.timers.close()
        self.session = Session(self.config, self.state, self.session.store, self)
        self.session.answers = old.answers
        old.store = Fence(self.address)  # type: ignore[assignment]  # all that a zombie still wants of it

    async def stop(self, mode: StopMode, by: Identity) -> Exit:
        """As of any place; and it is the session that ends: its id accepts no more mail, here or elsewhere."""
        self.final = True
        return await super().stop(mode, by)

    @property
    def alive(self) -> bool:
        """Its calls run on while the loop waits for its restart."""
        return self.life is not None or self.timer is not None

    def life_to_end(self) -> Life | None:
        """Its life. While the loop waits for its restart, one that begins only to end, and ends the calls."""
        if self.life is None and self.timer is not None:
            self.runtime.deadlines.drop(self.timer)
            self.timer = None
            return self.runtime.lives.begin(self)  # type: ignore[no-any-return]
        return self.life

    def lost(self, error: LeaseLost) -> None:
        """Another process has the session now: nothing that runs here for it goes on."""
        if not self.leaving:
            log.warning("%s", error, extra={"address": self.address})
            self.leave("another process took it over")

    def leave(self, why: str, *, shut: bool = False) -> None:
        """Leave memory: the session goes on elsewhere, or comes back. `shut`: also what does not rest."""
        self.leaving, self.shut = True, shut
        self.seen = 0 if shut else self.mailbox.last
        self.runtime.lives.request_stop(self, "now", why)

    def can_leave(self) -> bool:
        """Whether it rests, and nobody here looks at it closely."""
        at_hand = self.children or self.watchers or self.done is not None or self.config.inbox is not None or self.escalates
        ready = self.life is not None and self.life.ready and self.asked is None
        return ready and not at_hand and self.session.resting and not self.session.answers.awaited

    def drain(self) -> bool:
        """Let the run in progress, or about to start, come to its end; there is nothing to let end at rest."""
        self.session.draining = self.session.busy
        return self.session.draining

    def outlives(self, exit: Exit) -> bool:
        """A crash of the loop is no end: the calls run on, the agent is kept, the next life goes on from the last commit."""
        crashed = isinstance(exit, Failed) and for_the_root(exit.error) is None and self.started
        return crashed and self.asked is None and self.halted is None and not self.runtime.closing

    def survive(self, error: BaseException) -> bool:
        """The loop crashed too often: its run has failed, the session has not."""
        cause = error.error if isinstance(error, RestartIntensityExceeded) and error.error is not None else error
        self.session.broken, self.attempts = sentence(cause), 0
        return True

    def left(self) -> tuple[()]:
        """A session's unread mail stays with the session."""
        return ()

    def ended(self) -> None:
        """Nobody waits for an answer any more, and no timer fires."""
        if self.leaving and not self.shut and self.state.timers:
            self.runtime.waking.alarm(self.address, self.session.timers.soonest())
        self.session.timers.close()
        self.session.answers.over(self.state.status, f"the session ended: {self.exit!r}")
        self.session.store.release(self.state, self.seen)
        if self.leaving and not self.shut and self.mailbox.last > self.seen:  # it came while it left
            self.runtime.waking.woken(self.address)

    # -------------------------------------------------------------- the session's home
    def start_call(self, call: str, run: Callable[[Life], Awaitable[None]], hops: int) -> None:
        """Start a call as a child."""
        place = CallPlace(self, call, run, hops)
        self.runtime.adopt(place, self, call)
        self.runtime.lives.begin(place)

    async def start_owner(self, name: str, hold: Callable[[Callable[[], None]], Awaitable[None]]) -> None:
        """Start an owner as a child; its first start has to succeed."""
        place = OwnerPlace(self, name, hold)
        self.runtime.adopt(place, self, name)
        await self.runtime.lives.start(place)

    def cancel_call(self, call: str) -> None:
        """Cancel a call's task."""
        place = (self.children or {}).get(call)
        if place is not None:
            self.runtime.lives.request_stop(place, "now", "cancelled")

    def live_calls(self) -> Collection[str]:
        """The calls whose tasks still run."""
        return tuple(name for name, child in (self.children or {}).items() if child.kind == "call")

    def progressed(self) -> None:
        """A completion was committed: failures before it no longer count."""
        self.attempts = 0

    def spent(self, usage: Usage) -> None:
        """A request was made."""
        self.runtime.spending.add(self, usage)

    def shared(self, model: Model) -> Model:
        """The model behind its provider's gate."""
        return self.runtime.providers.shared(model)  # type: ignore[no-any-return]

    async def host_mail(self, text: str) -> int:
        """Accept what the host's inbox held."""
        return (await self._kept(UserMessage(text), FromUser(self.state.owner))).seq

    def after(self, seconds: float, fn: Callable[[], Awaitable[None]]) -> Any:
        """Run an async function later."""
        return self.runtime.deadlines.after(seconds, lambda: self.runtime.call_in_root(fn, name=f"a timer of {self.address}"))

    def forget(self, entry: Any) -> None:
        """Not any more."""
        self.runtime.deadlines.drop(entry)

    def over_budget(self) -> str | None:
        """Why a supervisor above, or the system, allows no further request."""
        return self.runtime.spending.refusal(self)  # type: ignore[no-any-return]

    def attached(self, calls: Collection[str]) -> None:
        """The calls that the session waits for now."""
        self.runtime.waits.hold(self.address, [f"{self.address}/{call}" for call in calls])

    async def out_of_reach(self, session: str) -> str | None:
        """Why a model of this session may not reach for that one; None if it may."""
        return await out_of_reach(self, self.state, session)

    def is_child(self, session: str) -> bool:
        """Whether that session was opened by this one."""
        place = self.runtime.router.places.get(session)
        return isinstance(place, SessionPlace) and place.state.parent == self.address
