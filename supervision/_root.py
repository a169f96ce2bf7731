"""The root of a system: one nursery, one router, and what follows each end."""

import logging
from collections.abc import Callable
from contextvars import copy_context
from itertools import count
from threading import get_ident
from typing import Any

import trio
from trio.lowlevel import enable_ki_protection

from actors._deadlines import Deadlines
from actors._envelope import Envelope, Receipt
from actors._errors import ActorsError, LimitExceeded
from actors._exit import Status
from actors._life import Life
from actors._limits import Limits
from actors._ref import ActorRef, check_thread, waiting
from actors._scheduled import chances
from actors.models._gate import Providers
from actors.store._api import Store

from ._dead import DeadLetter, DeadLetters
from ._hub import Hub
from ._lives import Lives
from ._opening import Opener
from ._place import Place
from ._report import report as report_hung
from ._resting import Resting
from ._router import Router
from ._session_ref import SessionRef
from ._spec import ChildSpec, Factory, Supervisor, check_actor, check_limits
from ._spending import Spending
from ._succession import Succession
from ._supervisor import SupervisorPlace
from ._waits import Waits
from ._waking import Agents, Deps, Waking
from ._watch import Watches

log = logging.getLogger("postroom.supervision")
REASON = 1000  # characters kept of why a letter is dead


class Root:
    """What all parts of a system share. The public face is `System`."""

    def __init__(
        self,
        name: str,
        store: Store,
        limits: Limits | None,
        hard_deadline: float = 30.0,
        *,
        agents: Agents = (),
        deps: Deps | None = None,
        idle_timeout: float = 60.0,
        max_live: int | None = None,
        retention: float | None = None,
        providers: Providers | None = None,
    ) -> None:
        self.name = name
        self.hard_deadline = hard_deadline
        self.on_hung: Callable[[str], None] = lambda text: log.critical("%s does not stop\n%s", name, text)
        self.store = store
        self.limits = limits
        self.deadlines = Deadlines()
        self.router = Router()
        self.waits = Waits(self.router.places)
        self.spending = Spending(limits)
        self.providers = providers or Providers(None, None)
        self.hub = Hub()
        self.lives = Lives(self)
        self.opener = Opener(self)
        self.open = self.opener.open
        self.waking = Waking(self, agents, deps or {})
        self.resting = Resting(self, idle_timeout, max_live, retention)
        self.watches = Watches(self.router, self.lives.running)
        self.succession = Succession(self)
        self.dead_letters = DeadLetters(self._resend)
        self.nursery: trio.Nursery
        self.token: trio.lowlevel.TrioToken
        self.thread = get_ident()
        self.over = False
        self.body_scope = trio.CancelScope()
        self.closing = False
        self.trees: list[Place] = []
        self.escalated: list[BaseException] = []
        self.late_replies = 0
        self.restarts = 0
        self.crashes = 0
        self.tasks = 0
        self.random = chances()  # jitter
        self._idle: trio.Event | None = None
        self._names = count(1).__next__

    # -------------------------------------------------------------- what refs and lives ask for
    def place(self, address: str) -> Place:
        """The place of an address. Raises as `Router.find`; `ActorsError` after the system's block was left."""
        if self.over and address not in self.router.exits:
            raise ActorsError(f"the system {self.name!r} is over; use refs inside its block")
        return self.router.find(address)

    async def reach(self, address: str) -> Any:
        """As `place`, also for a session that is only kept in the store, which is brought into memory."""
        return await self.waking.reach(address)

    def status_of(self, address: str) -> Status:
        """The status of an address."""
        return self.router.status(address)

    def ref(self, address: str) -> ActorRef:
        """A ref; making one never fails."""
        place = self.router.places.get(address)
        if place is None:
            return (SessionRef if address in self.router.asleep else ActorRef)(address, self)
        return place.ref_type(address, self)

    @enable_ki_protection
    def dead_letter(self, envelope: Envelope, recipient: str, reason: str) -> None:
        """Keep mail that nobody will handle."""
        if len(reason) > REASON:
            reason = f"{reason[: REASON - 3]}..."
        self.dead_letters.add(DeadLetter(envelope, recipient, reason))
        self.hub.dead_letter(recipient, envelope, reason)

    async def _resend(self, letter: DeadLetter) -> Receipt:
        self.check_here()
        place = self.router.find(letter.recipient)
        refusal = place.refusal()
        if refusal is not None:
            raise refusal
        old = letter.envelope
        how = {"priority": old.priority, "hops": old.hops, "trace": old.trace}
        if place.kind == "session" and self.store.durable:
            return await place.mailbox.accept_when_room(0, old.body, old.sender, **how)  # type: ignore[no-any-return]
        receipt: Receipt = place.mailbox.accept(old.body, old.sender, **how)
        return receipt

    # -------------------------------------------------------------- seats
    def check_here(self) -> None:
        """RuntimeError in a foreign thread."""
        check_thread(self, f"the system {self.name!r}")

    def admit_new(self) -> None:
        """`ActorsError` if the system is stopping or over: what starts now would never be stopped."""
        self.check_here()
        if self.closing:
            where = "over; use it inside its block" if self.over else "stopping and starts nothing new"
            raise ActorsError(f"the system {self.name!r} is {where}")

    @enable_ki_protection
    def seat(self, spec: ChildSpec | Supervisor, parent: Place | None) -> Place:
        """Make the place of a child; it has its address from here on."""
        address = spec.name if parent is None else f"{parent.address}/{spec.name}"
        if parent is None:
            check_limits(address, self.limits, spec)  # those of a tree were held against each other when it was written
        context = parent.context.copy() if isinstance(parent, SupervisorPlace) else copy_context()
        place = (SupervisorPlace if isinstance(spec, Supervisor) else Place)(self, address, spec, parent, context)
        place.limit(self.limits_of(spec, parent))
        self.adopt(place, parent, spec.name)
        return place

    async def take_seat(self, spec: ChildSpec | Supervisor, parent: Place | None) -> Place:
        """As `seat`, also for a session, which is looked for in the store. Raises as `open` does."""
        if isinstance(spec, ChildSpec) and spec.agent is not None:
            if parent is None:
                check_limits(spec.name, self.limits, spec)
            return await self.opener.seat(spec, parent)
        return self.seat(spec, parent)

    def limits_of(self, spec: ChildSpec | Supervisor, parent: Place | None) -> Limits | None:
        """What is set above a place, narrowed by what is set on it."""
        above = self.limits if parent is None else parent.limits
        if spec.limits is None:
            return above
        return spec.limits if above is None else above.narrow(spec.limits)

    @enable_ki_protection
    def adopt(self, place: Place, parent: Place | None, name: str) -> None:
        """Give a place its address and its parent."""
        self.router.add(place)
        if parent is not None:
            if parent.children is None:
                parent.children = {}
            parent.children[name] = place

    def new_name(self) -> str:
        """A name for a child that was given none."""
        return f"actor-{self._names()}"

    def watch(self, life: Life, address: str) -> None:
        """`Actor.watch`."""
        self.watches.watch(life, address)

    def unwatch(self, life: Life, address: str) -> None:
        """`Actor.unwatch`."""
        self.watches.unwatch(life, address)

    async def spawn_child(
        self, life: Life, factory: Factory, args: tuple[Any, ...], *, name: str | None, **how: Any
    ) -> ActorRef:
        """`Actor.spawn`: a child of the place whose life this is, and a watch on it."""
        life.check()
        if life.over or life.scope.cancel_called:
            raise ActorsError(f"{life.address} is stopping and starts no more children")
        check_actor(life.address, factory)
        parent = self.lives.running[life]
        most = None if parent.limits is None else parent.limits.max_children
        if isinstance(most, int) and len(parent.children or ()) >= most:
            raise LimitExceeded(f"{parent.address} has {most} live children, as many as max_children allows; stop one first")
        place = self.seat(ChildSpec(factory, *args, name=self.new_name() if name is None else name, **how), parent)
        with waiting(self, place.address):
            await self.lives.start(place)
        self.watches.add(place, parent)
        return self.ref(place.address)

    def is_child(self, life: Life, address: str) -> bool:
        """Whether an address was spawned by this life."""
        head, _, tail = address.rpartition("/")
        return head == life.address and bool(tail)

    # -------------------------------------------------------------- escalation and the end
    def to_the_root(self, error: BaseException | None) -> None:
        """A KeyboardInterrupt or SystemExit from a child: the system stops in order and raises it."""
        if error is None:
            return
        self.escalate(error)
        if self.closing and isinstance(error, KeyboardInterrupt):  # it landed in somebody's cleanup
            self.cancel_everything()

    @enable_ki_protection
    def escalate(self, error: BaseException) -> None:
        """Cancel the body; leaving it stops the trees in order and raises this."""
        if all(error is not each for each in self.escalated):
            self.escalated.append(error)
        self.body_scope.cancel()

    def task_ended(self) -> None:
        """One task of the root nursery is over."""
        self.tasks -= 1
        if self.tasks == 0 and self._idle is not None:
            self._idle.set()

    async def stop_everything(self) -> None:
        """Stop what was spawned, all at once; then the trees, in reverse; then wait for the last task."""
        self.closing = True
        entry = self.deadlines.after(self.hard_deadline, lambda: self.on_hung(report_hung(self)))
        spawned = [place for place in self.router.places.values() if place.parent is None and place not in self.trees]
        await self.lives.stop_all(spawned, "the system stops")
        for tree in reversed(tuple(self.trees)):
            await self.lives.stop_all([tree], "the system stops")
        if self.tasks:
            self._idle = trio.Event()
            await self._idle.wait()
        self.deadlines.drop(entry)

    @enable_ki_protection
    def cancel_everything(self) -> None:
        """A second Ctrl-C: every life is cancelled at once, cleanup included."""
        self.lives.hurry()

    def call_in_root(self, fn: Callable[..., Any], *args: Any, name: str) -> None:
        """Run an async function as a task of the root nursery that counts as one of the system's."""
        self.tasks += 1
        self.nursery.start_soon(self._counted, fn, args, name=name)

    async def _counted(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
        try:
            await fn(*args)
        finally:
            self.task_ended()
