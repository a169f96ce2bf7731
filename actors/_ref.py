"""References: how anything reaches an actor.

A ref is an address and a system. Making one never fails; sending does, and says why. It compares by address, pickles,
and survives every restart of the actor behind it, because it leads to the address's mailbox and not to a life.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Generic, Literal, Protocol, TypeVar, cast, overload

import trio
from trio.lowlevel import enable_ki_protection

from ._check import check_choice
from ._deadlines import Deadlines
from ._envelope import INTERRUPT, NORMAL, Priority, Receipt
from ._errors import ActorsError, AskRefused, AskTimeout, MailboxFull, RecipientStopped, UnknownRecipient
from ._exit import Exit, Status
from ._identity import STRANGER, Identity, current
from ._mailbox import Mailbox
from ._reply import ReplyToken

R = TypeVar("R")
StopMode = Literal["now", "drain", "kill"]
STOPS: tuple[StopMode, ...] = ("now", "drain", "kill")


class Ask(Generic[R]):
    """Optional base of a message; it types the reply.

    `class Add(Ask[int])` makes `await ref.ask(Add(2))` an int for a type checker. No behaviour.
    """


class Place(Protocol):
    """What a ref needs of the place behind its address; the tree supplies it."""

    mailbox: Mailbox
    direct: bool  # whether a ref that was admitted once may write to the mailbox itself

    @property
    def status(self) -> Status:
        """Where its actor stands."""
        ...

    def refusal(self) -> Exception | None:
        """Why it accepts no mail now, or None."""
        ...

    def admit(
        self, identity: Identity, body: object, *, id: str | None, priority: Priority, token: ReplyToken | None
    ) -> Receipt:
        """Accept one message through all rules of the tree, or refuse it."""
        ...

    async def admit_when_room(
        self, identity: Identity, body: object, *, id: str | None, priority: Priority, seconds: float
    ) -> Receipt:
        """As `admit`, waiting for room."""
        ...

    async def stop(self, mode: StopMode, by: Identity) -> Exit:
        """End its life for good."""
        ...

    async def wait(self) -> Exit:
        """Its final exit."""
        ...


class Waits(Protocol):
    """The waits-for graph of a system; the tree supplies it."""

    edges: dict[str, Any]  # those that `enter` added; the one edge that most askers have is kept in their mailbox

    def enter(self, waiter: str, target: str) -> None:
        """Add an edge; `AskCycle` if it would close a cycle."""
        ...

    def leave(self, waiter: str, target: str) -> None:
        """Take it back."""
        ...


class Runtime(Protocol):
    """What a ref needs of a system."""

    deadlines: Deadlines
    thread: int
    token: trio.lowlevel.TrioToken

    @property
    def waits(self) -> Waits:
        """The waits-for graph."""
        ...

    def place(self, address: str) -> Any:
        """The place of an address; `UnknownRecipient`, with near matches, if nobody has it."""
        ...

    async def reach(self, address: str) -> Any:
        """As `place`, also for what is only kept in a store."""
        ...

    def status_of(self, address: str) -> Status:
        """The status of an address, also of one that ended."""
        ...


def _home() -> Runtime:
    runtime: Runtime | None = current.get().runtime
    if runtime is None:
        raise ActorsError("this ref belongs to no system here: use it inside `open_system()`, or take a ref from the system")
    return runtime


def check_thread(runtime: Runtime, address: str) -> None:
    """RuntimeError in any thread but the one that the system runs in: trio's state is not for two."""
    if get_ident() != runtime.thread:
        raise RuntimeError(f"{address} was used from a foreign thread; use send_from_thread there, or a portal")


def here(ref: ActorRef, runtime: Runtime) -> str:
    """The address of a ref. ActorsError if it is a ref of another system, where the address means somebody else."""
    if ref._system() is not runtime:  # noqa: SLF001  # the ref's other half, in its own file
        raise ActorsError(
            f"{ref.address} belongs to another system; across systems refs take mail, and nothing else leads there"
        )
    return ref.address


@contextmanager
def waiting(runtime: Runtime, target: str) -> Iterator[None]:
    """Wait for `target` within the rules: refused if it would close a cycle, ended by the waiter's `max_wait`.

    Host code is bound by neither; a wait for an actor of another system by its time alone. Raises `AskCycle` at once,
    `AskTimeout` when the time is over.
    """
    identity = current.get()
    if identity.max_wait is None:
        yield
        return
    inside = identity.runtime is runtime
    if inside:
        runtime.waits.enter(identity.address, target)
    try:
        with trio.move_on_after(identity.max_wait) as scope:
            yield
    finally:
        if inside:
            runtime.waits.leave(identity.address, target)
    if scope.cancelled_caught:
        raise AskTimeout(address=target, seconds=identity.max_wait)


def unpickled(cls: type[ActorRef], address: str) -> ActorRef:
    """A ref as it comes out of a pickle: it belongs to the system of the task that uses it."""
    return cls(address)


class ActorRef:
    """An actor's address in a system. Cheap to make and to keep; usable from any task of the system's trio run."""

    __slots__ = ("__weakref__", "_address", "_box", "_runtime", "_thread")  # fmt: skip

    def __init__(self, address: str, runtime: Runtime | None = None) -> None:
        self._address = address
        self._runtime = runtime
        self._box: Mailbox | None = None  # once a send went through all checks, and only where there are no others
        self._thread = 0

    @property
    def address(self) -> str:
        """Its path, such as `counter` or `supervisor/worker`."""
        return self._address

    @property
    def status(self) -> Status:
        """Where its actor stands now. Raises `UnknownRecipient` for an address that nobody ever had."""
        return self._system().status_of(self._address)

    def _system(self) -> Runtime:
        if self._runtime is None:
            self._runtime = _home()
        return self._runtime

    def _place(self) -> Place:
        system = self._system()
        check_thread(system, self._address)
        place: Place = system.place(self._address)
        return place

    # -------------------------------------------------------------- sending
    @enable_ki_protection
    def send_nowait(self, body: object, *, id: str | None = None, interrupt: bool = False) -> Receipt:
        """Accept `body` into the mailbox now, or refuse it now; the receipt says where it stands.

        Messages of one sender arrive in order. From a foreign thread use `send_from_thread`.

        Args:
            body: For an actor any object; for a session `str`, `UserMessage`, `AgentMessage`.
            id: Your idempotency key, 1 to 64 of `A-Z a-z 0-9 . _ : -`: a resend returns the first receipt.
            interrupt: Handle it before older normal mail.

        Raises:
            MailboxFull: No room (`send(..., wait=)` waits for it). As with every refusal, nothing was kept.
            IdConflict: You used `id` for another body.
            UnknownRecipient: Nobody has this address; the error names near ones.
            RecipientStopped: It ended for good.
            RuntimeError: This is not the thread that the system runs in.
            Fenced: The life that sends has ended.
            trio.WouldBlock: The recipient is stored durably; use `send`.
        """
        box = self._box
        identity = current.get()
        if (
            box is None or box.closed or id is not None or interrupt or identity.home is not self._runtime
            or get_ident() != self._thread
        ):  # fmt: skip
            place = self._place()
            priority = INTERRUPT if interrupt else NORMAL
            receipt = place.admit(identity.within(self._system()), body, id=id, priority=priority, token=None)
            self._remember(place)
            return receipt
        return box.post(body, identity.sender, identity.hops)

    def _remember(self, place: Place) -> None:
        if place.direct:
            self._box = place.mailbox
            self._thread = get_ident()

    async def send(self, body: object, *, id: str | None = None, interrupt: bool = False, wait: float = 0.0) -> Receipt:
        """As `send_nowait`, and durable where the recipient is when it returns; waits up to `wait` seconds for room.

        Cancelled while it waits for room: nothing was kept. Cancelled later it may have been accepted: resend with its id.
        """
        priority = INTERRUPT if interrupt else NORMAL
        identity = current.get().within(self._system())
        try:
            place: Place | None = self._place()
        except UnknownRecipient:
            place = None  # perhaps it is only kept in a store; what follows is no part of this handling
        if place is None:
            place = cast("Place", await self._system().reach(self._address))
        try:
            return await place.admit_when_room(identity, body, id=id, priority=priority, seconds=0)
        except MailboxFull:
            if wait <= 0:
                raise
        with waiting(self._system(), self._address):  # only now: where there is room, two may write to each other at once
            return await place.admit_when_room(identity, body, id=id, priority=priority, seconds=wait)

    async def interrupt(self, body: object, *, id: str | None = None) -> Receipt:
        """`send` with interrupt priority."""
        return await self.send(body, id=id, interrupt=True)

    def send_from_thread(self, body: object, *, id: str | None = None, interrupt: bool = False, wait: float = 0.0) -> Receipt:
        """As `send`, from any thread but trio's own; blocks the thread until the message is accepted or refused.

        The sender is who started the thread, if trio did (`trio.to_thread.run_sync` in a handler or tool); a raw thread is
        `system (thread)`. Messages of one thread arrive in order. Raises also `RuntimeError` in the trio thread, and
        `trio.RunFinishedError` after the run.
        """
        runtime = self._system()

        async def deliver() -> Receipt:
            return await self.send(body, id=id, interrupt=interrupt, wait=wait)

        return trio.from_thread.run(deliver, trio_token=runtime.token)

    # -------------------------------------------------------------- asking
    @overload
    async def ask(self, body: Ask[R], *, timeout: float | None = 5.0) -> R: ...  # noqa: ASYNC109  # the wait is the token's
    @overload
    async def ask(self, body: object, *, timeout: float | None = 5.0) -> Any: ...  # noqa: ASYNC109
    @enable_ki_protection
    async def ask(self, body: object, *, timeout: float | None = 5.0) -> Any:  # noqa: ASYNC109
        """Send `body` and wait for the handler's answer, at most `timeout` seconds (None: as long as it takes).

        The actor is never harmed by an asker that gives up: a message not yet begun is skipped, a late answer dropped.

        Raises:
            AskTimeout: No answer in time.
            ActorCrashed: The handler raised; the text includes the causes.
            ActorStopped: The actor ended, or is stopping, before it answered.
            Unhandled: It has no handler for this type.
            Rejected: Its handler raised `Reject`.
            SendRefused: As `send_nowait`.
        """
        identity = current.get()
        runtime = self._runtime if self._runtime is not None else self._system()
        limit = identity.max_wait
        if identity.home is not runtime or get_ident() != runtime.thread:
            check_thread(runtime, self._address)
            identity = identity.within(runtime)
            if limit is not None and identity is STRANGER:  # an actor of another system: only its time bounds the wait
                return await self._asked(identity, body, limit if timeout is None else min(timeout, limit), runtime)
            limit = identity.max_wait
        if limit is None:
            return await self._asked(identity, body, timeout, runtime)
        if timeout is None or timeout > limit:
            timeout = limit
        mine, box, waits = identity.box, self._box, runtime.waits
        if mine is None or mine.awaits is not None or box is None or box.awaits is not None or box is mine or waits.edges:
            return await self._asked_within(waits, identity, body, timeout, runtime)
        mine.awaits = self._address  # whom it asks waits for nobody: this edge closes nothing
        try:
            return await self._asked(identity, body, timeout, runtime)
        finally:
            mine.awaits = None

    async def _asked_within(self, waits: Waits, identity: Identity, body: object, seconds: float, runtime: Runtime) -> Any:
        waits.enter(identity.address, self._address)  # before anything is accepted
        try:
            return await self._asked(identity, body, seconds, runtime)
        finally:
            waits.leave(identity.address, self._address)

    def _asked(self, identity: Identity, body: object, timeout: float | None, runtime: Runtime) -> Awaitable[Any]:
        """Send the message with a reply token; what is returned waits for the answer."""
        box = self._box
        token = ReplyToken(self._address, timeout, runtime.deadlines)
        if box is None or box.closed or identity is STRANGER:
            place = self._living()
            if isinstance(place, Exit):
                raise AskRefused(address=self._address, exit=place)
            place.admit(identity, body, id=None, priority=NORMAL, token=token)
            self._remember(place)
        else:
            box.post(body, identity.sender, identity.hops, token)
        return token.park()

    # -------------------------------------------------------------- ending
    async def stop(self, mode: StopMode = "now") -> Exit:
        """End the actor for good and wait for its exit.

        `now` cancels the handler in progress; `drain` accepts nothing new and handles what was accepted, for at most the
        actor's `shutdown` seconds (a supervisor has no mail: its children stop now, in reverse); `kill` revokes its generation at once and runs no `on_stop`. Children are stopped, in reverse.
        An actor that stops itself is marked and its handler ends there. Cancelling the wait does not take the stop back.
        """
        check_choice("stop", "mode", mode, STOPS)
        identity = current.get().within(self._system())
        place = self._living()
        if isinstance(place, Exit):
            await trio.lowlevel.checkpoint()
            return place
        if identity.address == self._address:
            return await place.stop(mode, identity)
        with waiting(self._system(), self._address):
            return await place.stop(mode, identity)

    async def wait(self) -> Exit:
        """The actor's final exit, once it has one; at once if it ended before."""
        place = self._living()
        if isinstance(place, Exit):
            await trio.lowlevel.checkpoint()
            return place
        with waiting(self._system(), self._address):
            return await place.wait()

    def _living(self) -> Place | Exit:
        try:
            return self._place()
        except RecipientStopped as ended:
            return ended.exit

    # -------------------------------------------------------------- identity
    def __eq__(self, other: object) -> bool:
        return self._address == other._address if isinstance(other, ActorRef) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._address)

    def __reduce__(self) -> tuple[Callable[..., ActorRef], tuple[type[ActorRef], str]]:
        return unpickled, (type(self), self._address)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._address!r}>"
