"""The root of a system: one nursery, one router, and what follows each end."""

import logging
from collections.abc import Callable, Mapping
from contextvars import copy_context
from functools import partial
from itertools import count
from math import inf
from random import Random
from threading import get_ident
from typing import Any

import trio
from trio.lowlevel import enable_ki_protection

from actors._deadlines import Deadlines
from actors._envelope import Envelope, FromActor, Receipt
from actors._errors import ActorsError, ActorStopped, ConfigError, LimitExceeded, RecipientStopped, RestartIntensityExceeded
from actors._exit import Ended, Exit, Failed, Status, Stopped
from actors._life import Life
from actors._limits import Limits
from actors._ref import ActorRef, waiting
from actors.agent._agent import Agent, configure
from actors.agent._record import State
from actors.store._api import Store

from ._dead import DeadLetter, DeadLetters
from ._hub import Hub
from ._intensity import Window
from ._lives import Lives
from ._place import Place
from ._report import report as report_hung
from ._router import Router
from ._session import SessionPlace, SessionRef, check_session_id
from ._spec import Backoff, ChildSpec, Factory, Supervisor
from ._strategy import RESTARTS
from ._supervisor import SupervisorPlace, report
from ._waits import Waits

log = logging.getLogger("postroom.supervision")


class Root:
    """What all parts of a system share. The public face is `System`."""

    def __init__(self, name: str, store: Store, limits: Limits | None, hard_deadline: float = 30.0) -> None:
        self.name = name
        self.hard_deadline = hard_deadline
        self.on_hung: Callable[[str], None] = lambda text: log.critical("%s does not stop\n%s", name, text)
        self.store = store
        self.limits = limits
        self.deadlines = Deadlines()
        self.waits = Waits()
        self.router = Router()
        self.hub = Hub()
        self.lives = Lives(self)
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
        self.context = copy_context()
        self.random = Random()  # noqa: S311  # jitter, no secret
        self._idle: trio.Event | None = None
        self._names = count(1).__next__

    # -------------------------------------------------------------- what refs and lives ask for
    def place(self, address: str) -> Place:
        """The place of an address. Raises as `Router.find`; `ActorsError` after the system's block was left."""
        if self.over and address not in self.router.exits:
            raise ActorsError(f"the system {self.name!r} is over; use refs inside its block")
        return self.router.find(address)

    def status_of(self, address: str) -> Status:
        """The status of an address."""
        return self.router.status(address)

    def ref(self, address: str) -> ActorRef:
        """A ref; making one never fails."""
        place = self.router.places.get(address)
        return (ActorRef if place is None else place.ref_type)(address, self)

    @enable_ki_protection
    def dead_letter(self, envelope: Envelope, recipient: str, reason: str) -> None:
        """Keep mail that nobody will handle."""
        self.dead_letters.add(DeadLetter(envelope, recipient, reason))
        self.hub.dead_letter(recipient, envelope, reason)

    async def _resend(self, letter: DeadLetter) -> Receipt:
        await trio.lowlevel.checkpoint()
        place = self.router.find(letter.recipient)
        refusal = place.refusal()
        if refusal is not None:
            raise refusal
        old = letter.envelope
        return place.mailbox.accept(old.body, old.sender, priority=old.priority, hops=old.hops, trace=old.trace)

    # -------------------------------------------------------------- seats
    @enable_ki_protection
    def seat(self, spec: ChildSpec | Supervisor, parent: Place | None) -> Place:
        """Make the place of a child; it has its address from here on."""
        address = spec.name if parent is None else f"{parent.address}/{spec.name}"
        context = (self.context if parent is None else parent.context).copy() if isinstance(parent, SupervisorPlace) else copy_context()
        place = (SupervisorPlace if isinstance(spec, Supervisor) else Place)(self, address, spec, parent, context)
        place.limit(self._limits_of(spec, parent))
        self.adopt(place, parent, spec.name)
        return place

    def _limits_of(self, spec: ChildSpec | Supervisor, parent: Place | None) -> Limits | None:
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

    async def spawn_child(self, life: Life, factory: Factory, args: tuple[Any, ...], *, name: str | None, **how: Any) -> ActorRef:
        """`Actor.spawn`: a child of the place whose life this is, and a watch on it."""
        life.check()
        parent = self.lives.running[life]
        most = None if parent.limits is None else parent.limits.max_children
        if isinstance(most, int) and len(parent.children or ()) >= most:
            raise LimitExceeded(f"{parent.address} has {most} live children, as many as max_children allows; stop one first")
        place = self.seat(ChildSpec(factory, *args, name=name or self.new_name(), **how), parent)
        self._add_watch(place, parent)
        with waiting(self, place.address):
            await self.lives.start(place)
        return self.ref(place.address)

    def is_child(self, life: Life, address: str) -> bool:
        """Whether an address was spawned by this life."""
        head, _, tail = address.rpartition("/")
        return head == life.address and bool(tail)

    # -------------------------------------------------------------- sessions
    async def open(
        self, agent: type[Agent], session: str | None, owner: str | None, parent: str | None, options: Mapping[str, Any]
    ) -> SessionRef:
        """`System.open`."""
        if not (isinstance(agent, type) and issubclass(agent, Agent)):
            raise ConfigError(f"open takes an Agent class, not {agent!r}; spawn starts plain actors")
        id = session or f"{agent.__name__.lower()}-{self._names()}"
        check_session_id(id)
        config = configure(agent, options, self.limits)
        place = self.router.places.get(id)
        if place is None:
            place = SessionPlace(self, config, await self._stored(id, agent, owner, parent), self.store, None)
            self.adopt(place, None, id)
            await self.lives.start(place)
        elif not isinstance(place, SessionPlace) or place.config.agent is not agent:
            what = f"a session of {place.config.agent.__name__}" if isinstance(place, SessionPlace) else f"a {place.kind}"
            raise ConfigError(f"{id} is {what} already; choose another id")
        return SessionRef(id, self)

    async def _stored(self, id: str, agent: type[Agent], owner: str | None, parent: str | None) -> State:
        state = await self.store.load(id)
        if state is None:
            state = State(id, agent.__name__, parent, owner)
            await self.store.create(state)
        elif state.status is Status.STOPPED:
            raise RecipientStopped(address=id, exit=Stopped())
        elif state.agent != agent.__name__:
            raise ConfigError(f"session {id} is kept as {state.agent}'s, not {agent.__name__}'s; choose another id")
        return state

    # -------------------------------------------------------------- watches
    def watch(self, life: Life, address: str) -> None:
        """Tell this life of every end at that address; of one that already ended for good, now."""
        watcher = self.lives.running[life.check()]  # type: ignore[index]
        try:
            place = self.router.find(address)
        except RecipientStopped as ended:
            self._tell(watcher, Ended(address, ended.exit))
            return
        self._add_watch(place, watcher)

    def _add_watch(self, place: Place, watcher: Place) -> None:
        place.watchers = place.watchers or {}
        place.watchers[watcher.address] = watcher
        watcher.watching = watcher.watching or set()
        watcher.watching.add(place.address)

    def unwatch(self, life: Life, address: str) -> None:
        """Take a watch back."""
        watcher = self.lives.running[life.check()]  # type: ignore[index]
        if watcher.watching is not None:
            watcher.watching.discard(address)
        self.forget_watch(address, watcher)

    def forget_watch(self, address: str, watcher: Place) -> None:
        """Drop one edge."""
        place = self.router.places.get(address)
        if place is not None and place.watchers is not None:
            place.watchers.pop(watcher.address, None)

    def _tell(self, watcher: Place, ended: Ended) -> None:
        if watcher.exit is None and not watcher.mailbox.closed:
            watcher.mailbox.accept(ended, FromActor(ended.address))

    def _tell_watchers(self, place: Place, exit: Exit, *, restarting: bool) -> None:
        if place.kind == "session" and restarting:
            return  # a restart of its loop is no end
        for watcher in tuple((place.watchers or {}).values()):
            self._tell(watcher, Ended(place.address, exit, restarting))
            if not restarting and watcher.watching is not None:
                watcher.watching.discard(place.address)

    # -------------------------------------------------------------- what follows an end
    @enable_ki_protection
    def after(self, place: Place, life: Life, exit: Exit, traceback: str) -> None:
        """Steps 7 to 9 for a buried life: the place ends, waits for its supervisor, or begins again."""
        if place.asked is not None or self.closing:
            self._log_crash(place, exit, traceback, "it was being stopped")
            self.finish(place, exit)
        elif place.halted is not None:
            place.status = Status.RESTARTING
            self._tell_watchers(place, exit, restarting=True)
            place.halted.set()
        elif not place.started and place.ready is not None and life.generation == 1:
            self.finish(place, exit)  # its starter raises what happened
        elif isinstance(place.parent, SupervisorPlace):
            self._log_crash(place, exit, traceback, f"{place.parent.address} decides")
            place.status = Status.RESTARTING
            self._tell_watchers(place, exit, restarting=RESTARTS[place.spec.restart][exit.normal])
            if place.ready is not None:
                place.ready.set()
            report(place.parent, place, exit)
        else:
            self._alone(place, exit, traceback)

    def _alone(self, place: Place, exit: Exit, traceback: str) -> None:
        """A place whose restarts are its own affair: spawned, or started as a tree of one."""
        if for_nobody(exit) or not RESTARTS[place.spec.restart][exit.normal] or isinstance(place, SupervisorPlace):
            self._log_crash(place, exit, traceback, "it is not restarted")
            self.finish(place, exit)
            return
        if place.spec.backoff is not None:
            self._alone_later(place, exit, traceback, place.spec.backoff)
            return
        window = place.window = place.window or Window(*self.budget(place))
        if window.allows(trio.current_time()):
            nth = len(window.times)
            self._log_crash(place, exit, traceback, f"restart {nth} of at most {window.max_restarts} within {window.within:g} s")
            self._tell_watchers(place, exit, restarting=True)
            self.lives.begin(place)
            return
        self._give_up(place, exit, traceback, window.max_restarts, window.within)

    def _alone_later(self, place: Place, exit: Exit, traceback: str, backoff: Backoff) -> None:
        """As `_alone`, with a delay before each restart and a count of failures in a row."""
        delay = place.next_attempt(backoff, trio.current_time(), self.random.uniform(-1, 1))
        if delay is None:
            self._give_up(place, exit, traceback, backoff.max_attempts, inf)
            return
        self._log_crash(place, exit, traceback, f"restart {place.attempts} of at most {backoff.max_attempts} in {delay:.3g} s")
        place.status = Status.RESTARTING
        self._tell_watchers(place, exit, restarting=True)
        place.timer = self.deadlines.after(delay, partial(self._begin_again, place))

    def _begin_again(self, place: Place) -> None:
        place.timer = None
        if place.exit is None and place.life is None:
            self.lives.begin(place)

    def _give_up(self, place: Place, exit: Exit, traceback: str, restarts: int, within: float) -> None:
        error = exit.error if isinstance(exit, Failed) else None
        spent = RestartIntensityExceeded(address=place.address, child=place.address, restarts=restarts, within=within, error=error)
        self._log_crash(place, exit, traceback, f"no more than {restarts} restarts: it has failed")
        if place.survive(spent):
            self.lives.begin(place)
        else:
            self.finish(place, Failed(spent))

    @staticmethod
    def budget(place: Place) -> tuple[int, float]:
        """Restarts and seconds of a place with a budget of its own."""
        return place.budget or (3, 5.0)

    def _log_crash(self, place: Place, exit: Exit, traceback: str, follows: str) -> None:
        if isinstance(exit, Failed):
            self.crashes += 1
            facts = {"address": place.address, "exit": repr(exit), "attempt": place.generation, "follows": follows}
            log.error("%s crashed in life %d: %r; %s\n%s", place.address, place.generation, exit.error, follows, traceback, extra=facts)

    @enable_ki_protection
    def finish(self, place: Place, exit: Exit) -> None:
        """The end for good: refuse mail, free the name, fail and dead-letter what is left, tell the watchers."""
        if place.exit is not None:
            return
        place.exit = exit
        if place.timer is not None:
            self.deadlines.drop(place.timer)
        place.status = Status.FAILED if isinstance(exit, Failed) else Status.STOPPED
        place.mailbox.close(lambda: RecipientStopped(address=place.address, exit=exit))
        self.router.remove(place, exit)
        name = place.address.rpartition("/")[2]
        if place.parent is not None and place.parent.children is not None and place.parent.children.get(name) is place:
            del place.parent.children[name]
        if place in self.trees:
            self.trees.remove(place)
        for envelope in place.left():
            if envelope.token is None:
                self.dead_letter(envelope, place.address, f"never handled: its actor ended ({exit!r})")
            else:
                envelope.token.fail(ActorStopped(address=place.address, exit=exit))
        place.ended()
        for event in (place.ready, place.done, place.halted):
            if event is not None:
                event.set()
        self._tell_watchers(place, exit, restarting=False)
        if place.kind != "call":
            self.hub.ended(place.address, exit)
        if place.parent is None and place.escalates and isinstance(exit, Failed) and place.started:
            self.escalate(exit.error)

    @enable_ki_protection
    def fail_asks(self, place: Place, exit: Exit, skip: Envelope | None) -> None:
        """Fail the asks that wait in the mailbox of a place that is stopping; what is being handled may still answer."""
        for envelope in place.mailbox.unread(place.mailbox.cursor):
            if envelope.token is not None and envelope is not skip:
                envelope.token.fail(ActorStopped(address=place.address, exit=exit))

    # -------------------------------------------------------------- escalation and the end
    def to_the_root(self, error: BaseException | None) -> None:
        """A KeyboardInterrupt or SystemExit from a child: the system stops in order and raises it."""
        if error is not None:
            self.escalate(error)

    @enable_ki_protection
    def escalate(self, error: BaseException) -> None:
        """Cancel the body; leaving it stops the trees in order and raises this."""
        if error not in self.escalated:
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
        for place in spawned:
            self.lives.request_stop(place, "now", "the system stops")
        for place in spawned:
            await place.wait()
        for tree in reversed(tuple(self.trees)):
            self.lives.request_stop(tree, "now", "the system stops")
            await tree.wait()
        if self.tasks:
            self._idle = trio.Event()
            await self._idle.wait()
        self.deadlines.drop(entry)

    @enable_ki_protection
    def cancel_everything(self) -> None:
        """A second Ctrl-C: every life is cancelled at once."""
        for life in tuple(self.lives.running):
            life.scope.cancel()

    def call_in_root(self, fn: Callable[..., Any], *args: Any, name: str) -> None:
        """Run an async function as a task of the root nursery that counts as one of the system's."""
        self.tasks += 1
        self.nursery.start_soon(self._counted, fn, args, name=name)

    async def _counted(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
        try:
            await fn(*args)
        finally:
            self.task_ended()


def for_nobody(exit: Exit) -> bool:
    """Whether it is an end that no restart may answer: a KeyboardInterrupt or SystemExit."""
    return isinstance(exit, Failed) and isinstance(exit.error, KeyboardInterrupt | SystemExit)


