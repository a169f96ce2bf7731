"""Which stored session comes into memory, and when.

    it is written to, asked, or looked at through a ref      then, if its class is registered here
    mail that may wake it was committed                      likewise
    a timer of it falls due                                  likewise, where it was in memory before
    the system begins                                        if a run of it was in progress, or mail or a call waits

A class is registered by name, by `open_system(agents=[...])` and by every `open`. A session of another class is left alone: it
is listed, and accepts mail, for whoever runs it.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import trio

from actors._dispatch import resolve
from actors._envelope import Action, Control, DropTimer, Envelope, Priority, Receipt, SetTimer, TimerFired
from actors._errors import ActorsError, ConfigError, LeaseLost, MailboxFull, RecipientStopped, StartFailed, StoreError
from actors._exit import Failed, Status, Stopped
from actors._identity import Identity
from actors._waiters import guarded
from actors.agent._agent import Agent
from actors.agent._kept import taken_up
from actors.agent._record import Commit, Draft, State, TimerRow
from actors.store._api import Store

from ._elsewhere import Far, mail_in
from ._words import as_words

log = logging.getLogger("postroom.supervision")
AT_ONCE = 32  # sessions that are brought into memory at the same time
LOOK = 0.05  # seconds between two looks for room in a mailbox that somebody else empties


Agents = Sequence[type[Agent]]
Deps = Mapping[type[Agent], Callable[[], Any]]


class Waking:
    """Brings the stored sessions of one system to life."""

    def __init__(self, root: Any, agents: Agents, deps: Deps) -> None:
        self._root = root
        self._agents: dict[str, type[Agent]] = {}
        self._deps = deps
        self._options: dict[str, Mapping[str, Any]] = {}  # what sessions were opened with here, for when they come back
        self._under_way: set[str] = set()
        self._alarms: dict[str, Any] = {}  # of sessions that left memory with timers
        self._left_alone: set[str] = set()
        self._wondered: set[str] = set()
        self._told = ""
        self._doors = trio.CapacityLimiter(AT_ONCE)
        for agent in agents:
            self.register(agent)

    def remember(self, session: str, options: Mapping[str, Any]) -> None:
        """What a session was opened with holds when it comes back into memory, in this process."""
        if options:
            self._options[session] = options

    def options_of(self, session: str) -> Mapping[str, Any]:
        """What it was opened with here."""
        return self._options.get(session, {})

    def known(self, agent: str) -> type[Agent]:
        """The class of this name. `ConfigError` if it is not registered here."""
        found = self._agents.get(agent)
        if found is None:
            raise ConfigError(
                f"this session is one of {agent}, which is not registered here; write open_system(agents=[{agent}])"
            )
        return found

    def register(self, agent: type[Agent]) -> None:
        """Run the sessions that are kept under this class's name. `ConfigError` if another class has that name here."""
        known = self._agents.setdefault(agent.__name__, agent)
        if known is not agent and (known.__module__, known.__qualname__) != (agent.__module__, agent.__qualname__):
            raise ConfigError(
                f"two agent classes are called {agent.__name__} ({known.__module__} and {agent.__module__}), and stored sessions "
                "know theirs by name; rename one"
            )
        self._agents[agent.__name__] = agent

    @property
    def busy(self) -> bool:
        """Whether sessions are being brought into memory."""
        return bool(self._under_way)

    async def begin(self) -> None:
        """Take up what was left."""
        self._root.store.watch(self.woken, self._lost, self._root.resting.places_left)
        await self.scan()

    async def scan(self) -> None:
        """Take up what has something to do and nobody holds: its process is gone."""
        for session in await self._root.store.unfinished(self._agents):
            if session not in self._root.router.places:
                self.woken(session)

    def _lost(self, session: str) -> None:
        place = self._root.router.places.get(session)
        if place is not None and place.kind == "session":
            place.lost(LeaseLost(f"session {session} was taken over by another process"))

    def made(self, address: str, agent: type[Agent]) -> dict[str, Any]:
        """The `deps` of a session that comes to life by itself. `StartFailed` if what makes them raises."""
        if agent not in self._deps or "deps" in self._options.get(address, {}):
            return {}
        deps, error = guarded(self._deps[agent])
        if error is not None:
            raise StartFailed(path=address, error=error)
        return {"deps": deps}

    def trouble(self, error: StoreError) -> None:
        """Tell that the store does not answer, once."""
        if str(error) != self._told:
            self._told = str(error)
            log.error("%s", error)

    def wonder(self, session: str, why: ActorsError) -> None:
        """Somebody waits for a session that others have to run: perhaps nobody does."""
        if session not in self._wondered:
            self._wondered.add(session)
            log.warning("%s; what waits for it here waits until a process runs it", why, extra={"address": session})

    def woken(self, session: str) -> None:
        """Bring a session into memory, in a task of the system's."""
        exit = self._root.router.exits.get(session)
        stopped = exit is not None and not isinstance(exit, Failed)  # here, by its tree
        if session not in self._under_way and not self._root.closing and not stopped:
            self._under_way.add(session)
            self._root.call_in_root(self._wake, session, name=f"{session} (waking)")

    def alarm(self, session: str, seconds: float) -> None:
        """Bring it into memory in so many seconds: a timer of it falls due then."""
        before = self._alarms.pop(session, None)
        if before is not None:
            self._root.deadlines.drop(before)

        def due() -> None:
            del self._alarms[session]
            self.woken(session)

        self._alarms[session] = self._root.deadlines.after(seconds, due)

    async def _wake(self, session: str) -> None:
        try:
            async with self._doors, self._root.resting.room():
                place = await self.reach(session)
            if place.kind == "stored" and session not in self._left_alone:
                self._left_alone.add(session)
                log.info("%s is not taken up here: %s", session, place.why, extra={"address": session})
        except ActorsError as error:
            if not self._root.closing:
                log.error("%s could not be taken up: %s", session, error, extra={"address": session})  # noqa: TRY400  # it is worded
        finally:
            self._under_way.discard(session)

    async def reach(self, address: str) -> Any:
        """The place of a session that is kept, brought into memory if its class is known here. Raises as `Router.find`."""
        found = await self._root.store.find(address)
        if found is None:
            return self._root.router.find(address)  # raises who was perhaps meant, unless it came just now
        self._root.router.saw(address, found.status)
        if found.status is Status.STOPPED:
            raise RecipientStopped(address=address, exit=Stopped())
        agent = self._agents.get(found.agent)
        if agent is None:
            todo = f"write open_system(agents=[{found.agent}])"
            why = ConfigError(f"{address} is kept as a session of {found.agent}, which is not registered here; {todo}")
            return StoredPlace(self._root, address, why, None, elsewhere=True)
        if self._root.closing:
            return self.stored(address, ActorsError(f"{address} is not brought into memory: this system is stopping"), agent)
        options = {**self.made(address, agent), **(self._options.get(address) or taken_up(found.options))}
        try:
            await self._root.opener.wake(agent, address, options)
        except (ConfigError, LeaseLost) as why:  # it cannot run as it is written, or runs elsewhere; its mail is accepted
            return StoredPlace(self._root, address, why, agent, elsewhere=isinstance(why, LeaseLost))
        except ActorsError as why:
            if not self._root.closing:
                raise
            return self.stored(address, why, agent)
        return self._root.router.find(address)

    def stored(self, address: str, why: ActorsError, agent: type[Agent]) -> "StoredPlace":
        """What accepts the mail of a session of this class that is kept, whoever runs it next."""
        return StoredPlace(self._root, address, why, agent, elsewhere=True)


class StoredPlace:
    """A session that is kept and that nobody here can run: it accepts mail. `elsewhere`: others run it, or may."""

    kind = "stored"
    direct = False

    def __init__(self, root: Any, address: str, why: ActorsError, agent: type[Agent] | None, *, elsewhere: bool) -> None:
        self.elsewhere = elsewhere
        self._handlers = {} if agent is None else agent.__handlers__
        self._root = root
        self.store: Store = root.store
        self.address = address
        self.why = why

    def followed(self) -> Far:
        """Who follows what others make of it. Raises why nobody can."""
        if not self.elsewhere:
            raise self.why
        if isinstance(self.why, ConfigError):
            self._root.waking.wonder(self.address, self.why)
        return Far(self.store, self.address)

    async def order_durably(self, identity: Identity, action: Action) -> Receipt:
        """Accept an order; whoever runs the session applies it. It means what runs when it comes to be applied."""
        return await self.store.send(Draft(self.address, Control(action), identity.check().sender))

    async def admit_when_room(
        self, identity: Identity, body: object, *, id: str | None, priority: Priority, seconds: float
    ) -> Receipt:
        """Accept durably; whoever empties its mailbox is elsewhere, so room is looked for now and then."""
        until = trio.current_time() + seconds
        words = as_words(self.address, body)
        if words is None and resolve(self._handlers, type(body)) is None:
            raise TypeError(
                f"{self.address} is a session and takes str, UserMessage or AgentMessage, not {type(body).__name__}"
            )
        while True:
            draft = Draft(
                self.address,
                body if words is None else words,
                identity.check().sender,
                id,
                identity.permit(priority),
                identity.hops,
            )
            try:
                receipt = await self.store.send(draft)
            except MailboxFull:
                if trio.current_time() >= until:
                    raise
                await trio.sleep(LOOK)
            else:
                return receipt

    # -------------------------------------------------------------- timers
    async def set_timer(self, identity: Identity, row: TimerRow, _seconds: float) -> None:
        """Whoever runs the session keeps it. It counts from now."""
        sender = identity.check().sender
        await self.store.send(
            Draft(self.address, Control(SetTimer(row.id, row.due.timestamp(), row.label, row.text, row.hops)), sender)
        )

    async def cancel_timer(self, identity: Identity, timer: str) -> bool:
        """Whether it had not fired yet. Whoever runs the session is asked; if nobody does, it is taken for a moment."""
        sender = identity.check().sender
        order = Draft(self.address, Control(DropTimer(timer)), sender)
        async with self._root.opener.borrowed(self.address) as state:
            if state is not None:
                return await self._dropped(state, order, timer)
        far = Far(self.store, self.address)
        found = await far.next()
        if found is None or not _is_set(found, timer):
            return False
        seq = (await self.store.send(order)).seq
        while found is not None and found[0].control_cursor < seq and found[0].status is not Status.STOPPED:
            found = await far.next()
        return found is not None and not _has_fired(found, timer)

    async def _dropped(self, state: State, order: Draft, timer: str) -> bool:
        found = state, self.store.mailbox(self.address).unread(min(state.mail_cursor, state.control_cursor))
        if timer in state.timers:
            await self.store.commit(state, Commit(timers_gone=(timer,), loop=False))
        elif _is_set(found, timer):
            await self.store.send(order)
        else:
            return False
        return True


Found = tuple[State, Sequence[Envelope]]


def _is_set(found: Found, timer: str) -> bool:
    """Whether it has not fired: it is kept, or the order to keep it is not applied yet."""
    state, unread = found
    ordered = (each for each in unread if isinstance(each.body, Control) and each.seq > state.control_cursor)
    return timer in state.timers or any(
        isinstance(each.body.action, SetTimer) and each.body.action.timer == timer for each in ordered
    )


def _has_fired(found: Found, timer: str) -> bool:
    state, unread = found
    return any(each.id == timer and isinstance(each.body, TimerFired) for each in (*unread, *mail_in(state.items)))
