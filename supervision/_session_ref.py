"""What a session's ref does: what an actor's does, and what a conversation needs."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from secrets import token_hex
from typing import Any, TypeVar, overload

import trio
from trio.lowlevel import enable_ki_protection

from actors._check import check_choice, check_number, check_type, require
from actors._envelope import (
    NORMAL,
    Action,
    CancelAllAttached,
    CancelCalls,
    EndSession,
    Pause,
    Receipt,
    Resume,
    StopRun,
    UserMessage,
)
from actors._errors import AskTimeout, LeaseLost, NotPermitted, RecipientStopped, RunFailed, UnknownRecipient
from actors._exit import Exit, Status, Stopped
from actors._identity import Identity, current
from actors._ref import STOPS, ActorRef, StopMode, waiting
from actors._text import check_text
from actors.agent._kept import taken_up
from actors.agent._record import SessionRecord, State
from actors.agent._shape import MisshapenError, Shape
from actors.agent._timers import timer
from actors.store._copy import copied, write

from ._elsewhere import Far, FarStream
from ._stream import Events, RunStream, session_events

T = TypeVar("T")
HAND_OVER = 0.05  # seconds between two looks whether an owner has let go
LATEST = 100 * 366 * 24 * 3600.0  # seconds


class SessionRef(ActorRef):
    """A session's address: what an `ActorRef` does, and what a conversation needs."""

    __slots__ = ()

    def _remember(self, place: Any) -> None:
        """Every send goes through the session's rules."""

    def _session(self) -> Any:
        place: Any = self._place()
        if place.kind != "session":
            raise NotPermitted(f"{self.address} is no session; use `system.ref({self.address!r})`")
        return place

    async def _here(self) -> Any:
        """Its place, brought into memory if it is only kept. Raises why that cannot be."""
        place = await self._anywhere()
        if place.kind == "stored":
            raise place.why
        return place

    async def _anywhere(self) -> Any:
        """As `_here`, or the place of a session that runs elsewhere or not at all."""
        with suppress(UnknownRecipient):
            here = self._session()
            if not here.leaving:
                return here
            await here.wait()
        place: Any = await self._system().reach(self.address)
        return place if place.kind == "stored" else self._session()

    def _far(self, place: Any) -> Far | None:
        """Who follows it through the store, if it runs elsewhere. Raises why it runs nowhere."""
        far: Far | None = place.followed() if place.kind == "stored" else None
        return far

    # -------------------------------------------------------------- where it is
    @property
    def status(self) -> Status:
        """Where it stands now; if it is not in memory here, where it stood when it was last looked at here.

        Raises `trio.WouldBlock` if that was never: `(await ref.record()).status` looks in the store.
        """
        try:
            return super().status
        except UnknownRecipient:
            self._if_it_is_kept("record()).status`, which looks there")
            raise

    @enable_ki_protection
    def send_nowait(self, body: object, *, id: str | None = None, interrupt: bool = False) -> Receipt:
        """As of any actor; `trio.WouldBlock` for a session that is stored durably, in memory or not."""
        try:
            return super().send_nowait(body, id=id, interrupt=interrupt)
        except UnknownRecipient:
            self._if_it_is_kept("send(...))`")
            raise

    def _if_it_is_kept(self, write: str) -> None:
        system: Any = self._system()
        if system.store.durable:
            raise trio.WouldBlock(f"{self.address} is not in memory here and may be in the store; write `(await ref.{write}")

    # -------------------------------------------------------------- asking
    @overload  # type: ignore[override]
    async def ask(self, body: str | UserMessage, *, timeout: float | None = None) -> str: ...  # noqa: ASYNC109
    @overload
    async def ask(self, body: str | UserMessage, *, schema: type[T], timeout: float | None = None) -> T: ...  # noqa: ASYNC109
    async def ask(self, body: str | UserMessage, *, schema: Any = None, timeout: float | None = None) -> Any:  # noqa: ASYNC109
        """Send, then wait for the first final answer that was given after reading it. Asks folded together share it.

        With a `schema` (an attrs class, dataclass, TypedDict or pydantic model; whatever a tool takes), the model is told to
        answer in that shape, and the answer is returned as a value of it. One that does not fit is asked for once more.

        Raises:
            AskTimeout: No answer within `timeout` seconds; the message stays.
            RunFailed: The run that read it ended without an answer, or twice with one that does not fit `schema`; the reason says
                what is wrong with it. A pause goes on waiting.
            SendRefused: As `send`.
            ConfigError: A model cannot be told of this `schema`.
        """
        identity = current.get().check()
        if schema is None:
            return await self._within(timeout, self._answered, body, identity)
        return await self._within(timeout, self._shaped, body, Shape(schema), identity)

    async def _shaped(self, body: str | UserMessage, shape: Shape[T], identity: Identity) -> T:
        place = await self._anywhere()
        session = None if place.kind == "stored" else place.session
        if session is not None:
            session.shaping += 1
        try:
            words = await self._answered(shape.asked(body), identity)
            try:
                return shape.read(words)
            except MisshapenError as wrong:
                words = await self._answered(shape.repair(wrong), identity)
            return shape.read(words)
        except MisshapenError as wrong:
            reason = f"its answer does not fit {shape.name}, also when asked again: {wrong}"
            raise RunFailed(status=Status.IDLE if session is None else session.state.status, reason=reason) from None
        finally:
            if session is not None:
                session.shaping -= 1

    async def _answered(self, body: object, identity: Identity) -> str:
        place = await self._anywhere()
        far = self._far(place)
        if far is not None:
            receipt = await place.admit_when_room(identity, body, id=None, priority=NORMAL, seconds=0)
            return await far.answer(receipt.seq)
        if place.session.store.durable:
            receipt = await place.admit_when_room(identity, body, id=None, priority=NORMAL, seconds=0)
        else:
            receipt = place.admit(identity, body, id=None, priority=NORMAL, token=None)
        answer: str = await place.session.answers.to(receipt.seq)
        return answer

    async def wait_answer(self, timeout: float | None = None) -> str:  # noqa: ASYNC109
        """The last answer of the run in progress or about to start, when it ends; else the last answer, at once.

        Raises `RunFailed` if that run has none, `AskTimeout` after `timeout` seconds.
        """
        place = await self._anywhere()
        far = self._far(place)
        if far is not None:
            return await self._within(timeout, far.answer_of_the_run)
        session = place.session
        if session.busy:
            return await self._within(timeout, session.answers.of_the_run)
        await trio.lowlevel.checkpoint()
        answer: str = session.answers.at_rest(session.state.status)
        return answer

    async def _within(self, seconds: float | None, fn: Callable[..., Awaitable[T]], *args: Any) -> T:
        if seconds is None:
            with waiting(self._system(), self.address):
                return await fn(*args)
        with waiting(self._system(), self.address), trio.move_on_after(seconds):
            return await fn(*args)
        raise AskTimeout(address=self.address, seconds=seconds)

    def stream(self, body: str | UserMessage, *, id: str | None = None) -> AbstractAsyncContextManager[RunStream | FarStream]:
        """Send and follow the events of the run that reads it, from now until that run ends. `.answer` is its answer.

        Resent under its id, a message is followed from where it was first accepted, as far back as there are events. Where another
        process runs the session, it is followed through the store: mail delivered, calls begun and ended, answers, status, ends of
        runs, a moment late; what only its owner knows (pieces of an answer, progress) is not told here.
        """
        return self._stream(body, id)

    @asynccontextmanager
    async def _stream(self, body: str | UserMessage, id: str | None) -> AsyncIterator[RunStream | FarStream]:
        place = await self._anywhere()
        far = self._far(place)
        if far is not None:
            before = await far.next()
            receipt = await self.send(body, id=id)
            if before is not None:
                there = FarStream(far, before[0], receipt.seq, duplicate=receipt.duplicate)
                async with aclosing(there.events):
                    yield there
                return
        since = place.runtime.hub.seq
        stream = RunStream(place, await self.send(body, id=id), since)
        async with aclosing(stream.events):
            yield stream

    def events(self, since: int | None = None) -> AbstractAsyncContextManager[Events]:
        """Follow this session's events (after `since`, else from now) until the session ends.

        One that is not in memory here is followed through the store, from now on; see `stream` for what that tells.
        """
        runtime = self._system()
        try:
            ended = self._place() is None
        except RecipientStopped:
            ended = True
        except UnknownRecipient:
            if not runtime.store.durable:  # type: ignore[attr-defined]
                raise
            return self._events_elsewhere()
        return aclosing(session_events(runtime.hub, self.address, since, ended=ended))  # type: ignore[attr-defined]

    @asynccontextmanager
    async def _events_elsewhere(self) -> AsyncIterator[Events]:
        system: Any = self._system()
        far = Far(system.store, self.address)
        before = await far.next()
        if before is None:
            system.place(self.address)  # raises who was perhaps meant
            raise UnknownRecipient(address=self.address)
        async with aclosing(far.events(before[0])) as events:
            yield events

    async def stop(self, mode: StopMode = "now") -> Exit:
        """As of any actor, wherever the session runs; one that another process runs is not killed but stopped.

        A call may stop its own session: the session does not wait for it any more, and cancels it.
        """
        identity = current.get()
        if self._within_me(identity):
            return await self._session().stop(mode, identity.check())  # type: ignore[no-any-return]
        with suppress(RecipientStopped):
            place = await self._anywhere()
            if place.kind == "stored":
                check_choice("stop", "mode", mode, STOPS)
                return await self._within(None, self._stop_there, place, mode, identity.check())
        return await super().stop(mode)

    async def _stop_there(self, place: Any, mode: StopMode, identity: Identity) -> Exit:
        far: Far = place.followed()
        if mode == "drain":
            with suppress(RunFailed):
                await far.answer_of_the_run()
        await place.order_durably(identity, EndSession())
        await far.over()
        return Stopped("stop")

    def _within_me(self, identity: Identity) -> bool:
        """Whether it is one of the session's own calls that acts."""
        place = self._system().router.places.get(self.address)  # type: ignore[attr-defined]
        return place is not None and identity.address in {each.address for each in (place.children or {}).values()}

    async def delete(self) -> None:
        """End the session for good, and delete all there is of it. Its id stays taken: late mail is refused, nothing revives it.

        One that another process runs is stopped there first. A call, or a handler, that deletes its own session is cancelled in here.

        Raises `UnknownRecipient` if there is none of that id.
        """
        system: Any = self._system()
        identity = current.get().check()
        if identity.address == self.address or self._within_me(identity):
            system.call_in_root(self._erase, name=f"{self.address} (deleting)")
            await trio.sleep_forever()
        if self.address not in system.router.places and await system.store.find(self.address) is None:
            system.place(self.address)  # raises who was perhaps meant
        await self._erase()

    async def _erase(self) -> None:
        system: Any = self._system()
        place = system.router.places.get(self.address)
        if place is not None:
            await place.stop("now", current.get())
            await place.wait()
        while True:
            try:
                await system.store.delete(self.address)
            except LeaseLost:  # its owner stops it, and lets go of it then
                await self.stop()
                await trio.sleep(HAND_OVER)
            else:
                return

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
        for id in ids:
            check_type("cancel_calls", "an id", id, str, "ids of calls, such as 'call_3f'")
        return await self._order(CancelCalls(ids))

    async def cancel_attached(self) -> Receipt:
        """Cancel every call the session is attached to now; the run goes on."""
        return await self._order(CancelAllAttached())

    async def _order(self, action: Action) -> Receipt:
        await trio.lowlevel.checkpoint()
        place = await self._anywhere()
        identity = current.get().check()
        durable = place.kind == "stored" or place.session.store.durable
        receipt: Receipt = await place.order_durably(identity, action) if durable else place.order(identity, action)
        return receipt

    # -------------------------------------------------------------- timers
    async def send_after(self, seconds: float, text: str, *, label: str | None = None) -> str:
        """Tell the session something in so many seconds, as a `TimerFired`; the id of the timer. It is kept with the session.

        Without a label it is called by its id. A mailbox that is full then makes it wait.

        Raises `ConfigError` if `seconds` is no time, `CodecError` if what it says is no text, and as `send` does.
        """
        identity = current.get().check()
        check_number("send_after", "seconds", seconds, 0, unit="a number of seconds")
        require(seconds <= LATEST, "send_after", f"seconds={seconds!r}", "a time within a hundred years")
        check_type("send_after", "text", text, str, "what the session is to be told")
        check_type("send_after", "label", label, str | None, "what to call it, or None")
        for words in (text, label):
            check_text("a timer", words)
        row = timer(f"timer-{token_hex(4)}", seconds, text, label, identity.hops)
        await (await self._anywhere()).set_timer(identity, row, seconds)
        return row.id

    async def cancel_timer(self, timer: str) -> bool:
        """Whether it had not fired yet; it never will. Where another process runs the session, that one has to say so."""
        cancelled: bool = await (await self._anywhere()).cancel_timer(current.get().check(), timer)
        return cancelled

    # -------------------------------------------------------------- looking
    async def record(self, last: int | None = None) -> SessionRecord:
        """The session as it is stored now, also when it has ended; with `last`, its last items only."""
        return (await self._kept()).record(last)

    async def _kept(self) -> State:
        """Its state, without bringing it into memory."""
        await trio.lowlevel.checkpoint()
        system: Any = self._system()
        if self.address not in system.router.places:
            found = await system.store.look(self.address)
            if found is not None:
                if system.store.durable:
                    system.router.saw(self.address, found[0].status)
                return found[0]  # type: ignore[no-any-return]
        return (await self._here()).state  # type: ignore[no-any-return]

    # -------------------------------------------------------------- copies
    async def export(self) -> str:
        """The session as JSON, for `System.import_session`: transcript and ledger, not its unread mail and timers.

        One that has ended can be exported too. Raises `CodecError` if it holds mail of a class that has no JSON.
        """
        return write(copied(await self._kept()))

    async def fork(self, at: int | None = None, *, session: str | None = None) -> "SessionRef":
        """Open a copy that goes on from the item at this place (from 0; None: the last), with a fresh mailbox.

        What was in progress goes on in the original alone: calls without an end are `orphaned` in the copy. Any process can make one.

        Raises `ConfigError` if there is no such item, if its class is not registered here, or if somebody has the id `session`.
        """
        root: Any = self._system()
        state = await self._kept()
        agent, options = root.waking.known(state.agent), root.waking.options_of(self.address) or taken_up(state.options)
        ref: SessionRef = await root.open(agent, session, state.owner, state.parent, options, copied(state, at))
        return ref
