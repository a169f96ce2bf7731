"""A place in the tree: what stays at an address while lives come and go.

The tree is data. A place has a parent and children, a spec, the mailbox, the current life, and in the end an exit. What
runs is in `_lives.py`; what a place may accept is decided here.
"""

from collections.abc import Sequence
from contextvars import Context
from typing import Any

import trio

from actors._deadlines import Entry
from actors._envelope import Envelope, FromActor, Priority, Receipt, Sender
from actors._errors import AskRefused, RecipientStopped
from actors._exit import Exit, Status, Stopped
from actors._identity import Identity
from actors._inherit import Inherit
from actors._life import Life
from actors._limits import MAX_WAIT, Limits
from actors._mailbox import Mailbox
from actors._receive import ActorMailbox
from actors._ref import ActorRef, StopMode
from actors._reply import ReplyToken
from actors._serve import live

from ._intensity import Window
from ._spec import Backoff, ChildSpec, Supervisor


class Place:
    """An address, and everything about it that outlives a life."""

    __slots__ = (
        "address", "asked", "attempts", "budget", "children", "cleanup_by", "context", "crash", "deliveries", "done", "escalates", "exit", "generation",
        "halted", "life", "limits",
        "mailbox", "parent", "ready", "reason", "runtime", "sender", "since", "spec", "started", "status",
        "timer", "untold", "watchers", "watching", "window",
    )  # fmt: skip

    kind = "actor"
    leaving = False  # memory: nothing ends, nobody is told
    joining = False  # it comes back to a supervisor at work: whoever brings it back hears if that fails
    backoff: Backoff | None = None  # of a session's loop
    direct = True  # a ref that was admitted once may write to the mailbox itself
    ref_type: type[ActorRef] = ActorRef

    def __init__(
        self,
        runtime: Any,
        address: str,
        spec: ChildSpec | Supervisor,
        parent: "Place | None",
        context: Context,
        mailbox: Mailbox | None = None,
    ) -> None:
        self.runtime = runtime
        self.address = address
        self.spec = spec
        self.parent = parent
        self.context = context
        self.mailbox: Any = ActorMailbox(address) if mailbox is None else mailbox
        self.sender: Sender = FromActor(address)
        self.children: dict[str, Place] | None = None
        self.status = Status.STARTING
        self.generation = 0
        self.life: Life | None = None
        self.window: Window | None = None
        self.attempts = 0  # failures in a row, for a backoff
        self.since = 0.0  # when its life became ready
        self.timer: Entry | None = None  # a restart that waits
        self.deliveries: dict[int, int] | None = None
        self.watchers: dict[str, Place] | None = None  # who hears of its ends
        self.watching: set[str] | None = None
        self.asked: StopMode | None = None  # a final stop was asked for
        self.reason = "stop"
        self.cleanup_by: float | None = None  # the one clock of a handler's cleanup and `on_stop`
        self.started = False  # was ready once
        self.ready: trio.Event | None = None
        self.done: trio.Event | None = None
        self.halted: trio.Event | None = None  # a group restart waits for this life's end
        self.budget: tuple[int, float] | None = None  # restarts and seconds, where they are its own affair
        self.limits: Limits | None = None  # what is set on it or above it
        self.escalates = False  # started as a tree: its failure is the system's
        self.crash: tuple[Exit, str] | None = None  # not logged yet, with its traceback
        self.untold: Exit | None = None  # the end of a life, while nobody has decided what follows
        self.exit: Exit | None = None

    def limit(self, limits: Limits | None) -> None:
        """Bind it to what is set on it or above it: a plain actor knows no other limits, but for `max_unread` and `max_wait`."""
        self.limits = limits
        if limits is not None and self.kind == "actor":
            if not isinstance(limits.max_unread, Inherit):
                self.mailbox.capacity = limits.max_unread
            if not isinstance(limits.max_hops, Inherit):
                self.mailbox.max_hops = limits.max_hops

    @property
    def max_wait(self) -> float:
        """Seconds any wait of its tasks may take."""
        set_here = None if self.limits is None else self.limits.max_wait
        return MAX_WAIT if set_here is None or isinstance(set_here, Inherit) else set_here

    def standing(self) -> Status:
        """Where it stands, as the tree and its ref show it."""
        if self.status is Status.IDLE and self.life is not None and self.life.mail is not None:
            return Status.RUNNING
        return self.status

    # -------------------------------------------------------------- accepting
    def refusal(self) -> Exception | None:
        """Why it accepts no mail now, or None."""
        if self.exit is not None:
            return RecipientStopped(address=self.address, exit=self.exit)
        if self.mailbox.closed:
            return RecipientStopped(address=self.address, exit=Stopped("stopping"))
        return None

    def _check(self, identity: Identity, token: ReplyToken | None) -> None:
        identity.check()
        refusal = self.refusal()
        if refusal is None:
            return
        if token is not None and isinstance(refusal, RecipientStopped):
            raise AskRefused(address=self.address, exit=refusal.exit)
        raise refusal

    def admit(
        self, identity: Identity, body: object, *, id: str | None, priority: Priority, token: ReplyToken | None
    ) -> Receipt:
        """Accept one message, or refuse it."""
        self._check(identity, token)
        receipt: Receipt = self.mailbox.accept(body, identity.sender, id=id, priority=priority, hops=identity.hops, token=token)
        return receipt

    async def admit_when_room(
        self, identity: Identity, body: object, *, id: str | None, priority: Priority, seconds: float
    ) -> Receipt:
        """As `admit`, waiting up to `seconds` for room."""
        self._check(identity, None)
        receipt: Receipt = await self.mailbox.accept_when_room(
            seconds, body, identity.sender, id=id, priority=priority, hops=identity.hops, permit=identity.permit
        )
        return receipt

    # -------------------------------------------------------------- living and ending
    @property
    def alive(self) -> bool:
        """Whether there is something to stop before it can be started again."""
        return self.life is not None

    def life_to_end(self) -> Life | None:
        """The life that a stop has to cancel, if there is one."""
        return self.life

    async def body(self, lives: Any, life: Life) -> Exit:
        """What a life of this place does."""
        assert isinstance(self.spec, ChildSpec)
        return await live(life, self.spec.factory, self.spec.args, lives.on_ready)

    def next_attempt(self, backoff: Backoff, now: float, draw: float) -> float | None:
        """Seconds until the restart after one more failure; None if it was one too many. A life that held out resets the count."""
        if self.started and self.since and now - self.since >= backoff.maximum:
            self.attempts = 0
        self.since = 0.0
        self.attempts += 1
        return None if self.attempts > backoff.max_attempts else backoff.delay(self.attempts, draw)

    def drain(self) -> bool:
        """Begin to handle what was accepted and nothing more; False if there is no such thing here."""
        if self.kind != "actor":
            return False
        self.mailbox.nudge()
        return True

    def outlives(self, exit: Exit) -> bool:  # noqa: ARG002  # a session's does
        """Whether this end of a life ends nothing but the life: children run on, no goodbye is said."""
        return False

    def survive(self, error: BaseException) -> bool:  # noqa: ARG002  # as above
        """Whether it goes on although its restarts are used up."""
        return False

    def left(self) -> Sequence[Envelope]:
        """Accepted mail that no life will handle, once the last one has ended."""
        left: Sequence[Envelope] = self.mailbox.drain()
        return left

    def ended(self) -> None:
        """It has its exit."""

    async def stop(self, mode: StopMode, by: Identity) -> Exit:
        """End it for good and wait for its exit; in its own task, which cannot wait for its own end, only ask for it."""
        self.runtime.lives.request_stop(self, mode, "stop")
        if by is not self.life and not by.revoked:
            return await self.wait()
        await trio.lowlevel.checkpoint()
        return self.exit or Stopped("stopping")

    async def end(self) -> None:
        """End it for good, from its own task, which is cancelled in here."""
        assert self.life is not None
        await self.stop("now", self.life)

    async def wait(self) -> Exit:
        """Its final exit."""
        if self.exit is None:
            if self.done is None:
                self.done = trio.Event()
            await self.done.wait()
        else:
            await trio.lowlevel.checkpoint()
        assert self.exit is not None
        return self.exit

    def __repr__(self) -> str:
        return f"<Place {self.address!r} {self.status} generation={self.generation}>"
