"""Sessions in the tree: their places, the places of their calls, and the refs that lead to them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from contextvars import copy_context
from math import inf
from typing import Any

import trio

from actors._actor import Actor
from actors._envelope import (
    NORMAL,
    RUNTIME_BODIES,
    Action,
    AgentMessage,
    CancelAllAttached,
    CancelCalls,
    Control,
    FromSession,
    FromToolCall,
    Pause,
    Priority,
    Receipt,
    Resume,
    StopRun,
    UserMessage,
    split_address,
)
from actors._errors import (
    AskTimeout,
    ConfigError,
    NotPermitted,
    RecipientStopped,
    RestartIntensityExceeded,
    SendRefused,
    sentence,
)
from actors._exit import Exit, Failed, Finished, Status, Stopped
from actors._identity import Identity, current
from actors._life import Life
from actors._receive import ActorMailbox
from actors._ref import ActorRef, StopMode, waiting
from actors._reply import ReplyToken
from actors.agent._agent import Config
from actors.agent._control import attached
from actors.agent._record import SessionRecord, State
from actors.agent._session import Session
from actors.events import MailAccepted, Refused
from actors.store._api import Store

from ._place import Place
from ._spec import Backoff, ChildSpec, check_name
from ._stream import Events, RunStream, session_events

_NO_MAIL = ActorMailbox("call")  # calls accept none; one box stands for all


def check_session_id(id: str) -> None:
    """ConfigError unless the id is an address of which no segment is a call's."""
    try:
        segments = split_address(id)
    except ValueError as error:
        raise ConfigError(f"a session cannot have the id {id!r}: {error}") from None
    for segment in segments:
        check_name("a session", segment)


class SessionRef(ActorRef):
    """A session's address: what an `ActorRef` does, and what a conversation needs."""

    __slots__ = ()

    def _remember(self, place: Any) -> None:
        """Every send goes through the session's rules."""

    def _session(self) -> "SessionPlace":
        place = self._place()
        if not isinstance(place, SessionPlace):
            raise NotPermitted(f"{self.address} is no session; use `system.ref({self.address!r})`")
        return place

    # -------------------------------------------------------------- asking
    async def ask(self, body: str | UserMessage, *, timeout: float | None = None) -> str:  # type: ignore[override]  # noqa: ASYNC109
        """Send, then wait for the first final answer that was given after reading it. Asks folded together share it.

        Raises:
            AskTimeout: No answer within `timeout` seconds; the message stays.
            RunFailed: The run that read it ended without an answer. A pause goes on waiting.
            SendRefused: As `send`.
        """
        return await self._within(timeout, self._answered, body, current.get().check())

    async def _answered(self, body: object, identity: Identity) -> str:
        place = self._session()
        receipt = place.admit(identity, body, id=None, priority=NORMAL, token=None)
        return await place.session.answers.to(receipt.seq)

    async def wait_answer(self, timeout: float | None = None) -> str:  # noqa: ASYNC109
        """The last answer of the run in progress or about to start, when it ends; else the last answer, at once.

        Raises `RunFailed` if that run has none, `AskTimeout` after `timeout` seconds.
        """
        session = self._session().session
        if session.busy:
            return await self._within(timeout, session.answers.of_the_run)
        await trio.lowlevel.checkpoint()
        return session.answers.at_rest(session.state.status)

    async def _within(self, seconds: float | None, fn: Callable[..., Awaitable[str]], *args: Any) -> str:
        with waiting(self._system(), self.address), trio.move_on_after(inf if seconds is None else seconds):
            return await fn(*args)
        raise AskTimeout(address=self.address, seconds=seconds)

    def stream(self, body: str | UserMessage, *, id: str | None = None) -> AbstractAsyncContextManager[RunStream]:
        """Send and follow the events of the run that reads it, from now until that run ends. `.answer` is its answer.

        Resent under its id, a message is followed from where it was first accepted, as far back as there are events.
        """
        return self._stream(body, id)

    @asynccontextmanager
    async def _stream(self, body: str | UserMessage, id: str | None) -> AsyncIterator[RunStream]:
        place = self._session()
        since = place.runtime.hub.seq
        stream = RunStream(place, await self.send(body, id=id), since)
        async with aclosing(stream.events):
            yield stream

    def events(self, since: int | None = None) -> AbstractAsyncContextManager[Events]:
        """Follow this session's events (after `since`, else from now) until the session ends."""
        runtime = self._system()
        try:
            ended = self._place() is None
        except RecipientStopped:
            ended = True
        return aclosing(session_events(runtime.hub, self.address, since, ended=ended))  # type: ignore[attr-defined]

    async def stop(self, mode: StopMode = "now") -> Exit:
        """As of any actor. A call may stop its own session: the session does not wait for it any more, and cancels it."""
        identity = current.get()
        place = self._system().router.places.get(self.address)  # type: ignore[attr-defined]
        if place is not None and identity.address in {each.address for each in (place.children or {}).values()}:
            return await place.stop(mode, identity.check())  # type: ignore[no-any-return]
        return await super().stop(mode)

    # -------------------------------------------------------------- orders
    async def pause(self) -> Receipt:
        """Stop at the next receive point until `resume`; calls go on, their results are built then."""
        return await self._order(Pause())

    async def resume(self) -> Receipt:
        """Go on after `pause`; after a failure try the round again."""
        return await self._order(Resume())

    async def stop_run(self) -> Receipt:
        """End the run in progress: its completion and calls are cancelled, every call is settled. The session stays."""
        return await self._order(StopRun())

    async def cancel_calls(self, *ids: str) -> Receipt:
        """Cancel these calls, at the session's next receive point; the run goes on."""
        return await self._order(CancelCalls(ids))

    async def cancel_attached(self) -> Receipt:
        """Cancel every call the session is attached to now; the run goes on."""
        return await self._order(CancelAllAttached())

    async def _order(self, action: Action) -> Receipt:
        await trio.lowlevel.checkpoint()
        return self._session().order(current.get().check(), action)

    # -------------------------------------------------------------- looking
    async def record(self, last: int | None = None) -> SessionRecord:
        """The session as it is stored now; with `last`, its last items only."""
        await trio.lowlevel.checkpoint()
        return self._session().state.record(last)


class SessionPlace(Place):
    """The place of a session: mail goes through its rules, its life is the loop, its children are its calls."""

    __slots__ = ("config", "session", "state")

    kind = "session"
    direct = False
    ref_type = SessionRef

    def __init__(self, runtime: Any, config: Config, state: State, store: Store, parent: Place | None) -> None:
        spec = ChildSpec(Actor, name=state.id.rpartition("/")[2], backoff=Backoff())  # what lives here is the loop, see `body`
        super().__init__(runtime, state.id, spec, parent, copy_context(), store.mailbox(state.id))
        self.config = config
        self.state = state
        self.sender = FromSession(state.id, state.agent)
        self.mailbox.capacity = config.limits.max_unread
        self.mailbox.max_hops = config.limits.max_hops
        self.mailbox.on_accept = self._accepted
        self.limits = config.limits
        self.mailbox.closed = False  # an earlier activation's end closed it
        self.session = Session(config, state, store, self)

    def standing(self) -> Status:
        """The session's status; its loop's restarts do not show in it."""
        return self.status if self.status is Status.STOPPING else self.state.status

    # -------------------------------------------------------------- accepting
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
            receipt: Receipt = self.mailbox.accept(
                self._body(body), identity.sender, id=id, priority=priority, hops=identity.hops
            )
        except SendRefused as refusal:
            self._refused(refusal)
            raise
        return receipt

    async def admit_when_room(
        self, identity: Identity, body: object, *, id: str | None, priority: Priority, seconds: float
    ) -> Receipt:
        """As `admit`, waiting for room."""
        self._check(identity, None)
        try:
            receipt: Receipt = await self.mailbox.accept_when_room(
                seconds, self._body(body), identity.sender, id=id, priority=priority, hops=identity.hops, permit=identity.permit
            )
        except SendRefused as refusal:
            self._refused(refusal)
            raise
        return receipt

    def _refused(self, refusal: SendRefused) -> None:
        self.runtime.hub.emit(Refused, session=self.address, recipient=self.address, error=str(refusal))

    def _body(self, body: object) -> UserMessage | AgentMessage:
        if isinstance(body, str):
            body = UserMessage(body)
        if isinstance(body, UserMessage | AgentMessage):
            if not body.text.strip() and not getattr(body, "media", ()):
                raise ConfigError(f"an empty message to {self.address} was refused; write some words, or attach media")
            return body
        hint = "; only the runtime sends these" if isinstance(body, RUNTIME_BODIES) else ""
        raise TypeError(
            f"{self.address} is a session and takes str, UserMessage or AgentMessage, not {type(body).__name__}{hint}"
        )

    def order(self, identity: Identity, action: Action) -> Receipt:
        """Accept control; what it means is stamped here, so that a replay hits nothing else."""
        self._check(identity, None)
        if isinstance(action, StopRun):
            action = StopRun(run=self.session.turn.meant)
        elif isinstance(action, CancelAllAttached):
            action = CancelAllAttached(calls=attached(self.session.turn))
        return self.mailbox.accept(Control(action), identity.sender)  # type: ignore[no-any-return]

    # -------------------------------------------------------------- living
    async def body(self, lives: Any, life: Life) -> Exit:
        """The loop."""
        life.ref = SessionRef(self.address, self.runtime)
        try:
            await self.session.run(life, lives.on_ready)
        finally:
            if self.asked is not None:
                with trio.CancelScope(shield=True):
                    await self.session.close(final=not self.runtime.closing)
        return Stopped()

    def drain(self) -> bool:
        """Let the run in progress, or about to start, come to its end; there is nothing to let end at rest."""
        self.session.draining = self.session.busy
        return self.session.draining

    def outlives(self, exit: Exit) -> bool:
        """A crash of the loop is no end: the calls run on, the agent is kept, the next life goes on from the last commit."""
        return isinstance(exit, Failed) and self.started and self.asked is None and not self.runtime.closing

    def survive(self, error: BaseException) -> bool:
        """The loop crashed too often: its run has failed, the session has not."""
        cause = error.error if isinstance(error, RestartIntensityExceeded) and error.error is not None else error
        self.session.broken = sentence(cause)
        self.attempts = 0
        return True

    def left(self) -> tuple[()]:
        """A session's unread mail stays with the session."""
        return ()

    def ended(self) -> None:
        """Nobody waits for an answer any more."""
        self.session.answers.over(self.state.status, f"the session ended: {self.exit!r}")

    # -------------------------------------------------------------- the session's home
    def emit(self, kind: Callable[..., Any], /, **facts: Any) -> None:
        """Show an event."""
        self.runtime.hub.emit(kind, **facts)

    def start_call(self, call: str, run: Callable[[Life], Awaitable[None]], hops: int) -> None:
        """Start a call as a child."""
        place = CallPlace(self, call, run, hops)
        self.runtime.adopt(place, self, call)
        self.runtime.lives.begin(place)

    def cancel_call(self, call: str) -> None:
        """Cancel a call's task."""
        place = (self.children or {}).get(call)
        if place is not None:
            self.runtime.lives.request_stop(place, "now", "cancelled")

    def live_calls(self) -> Collection[str]:
        """The calls whose tasks still run."""
        return tuple(self.children or ())

    def progressed(self) -> None:
        """A completion was committed: failures before it no longer count."""
        self.attempts = 0

    def attached(self, calls: Collection[str]) -> None:
        """The calls that the session waits for now."""
        self.runtime.waits.hold(self.address, [f"{self.address}/{call}" for call in calls])

    def is_child(self, session: str) -> bool:
        """Whether that session was opened by this one."""
        place = self.runtime.router.places.get(session)
        return isinstance(place, SessionPlace) and place.state.parent == self.address


_CALL_SPEC = ChildSpec(lambda: None, name="call", restart="temporary", init_timeout=float("inf"))  # type: ignore[arg-type]


class CallPlace(Place):
    """The place of a tool call: a temporary child of its session, with an address and a voice."""

    __slots__ = ("hops", "name", "run")

    kind = "call"
    direct = False

    def __init__(self, session: SessionPlace, call: str, run: Callable[[Life], Awaitable[None]], hops: int) -> None:
        super().__init__(session.runtime, f"{session.address}/{call}", _CALL_SPEC, session, session.context, _NO_MAIL)
        self.sender = FromToolCall(session.address, call)
        self.name = call
        self.run = run
        self.hops = hops
        self.limits = session.limits

    def standing(self) -> Status:
        """A call runs from the start."""
        return Status.RUNNING if self.status is Status.IDLE else self.status

    async def body(self, lives: Any, life: Life) -> Exit:
        """Run the tool."""
        lives.on_ready(life)
        life.hops = self.hops
        await self.run(life)
        return Finished()

    def refusal(self) -> Exception | None:
        """A call reads no mail."""
        return NotPermitted(f"{self.address} is a tool call and reads no mail; write to its session")
