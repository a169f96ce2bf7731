"""Opening sessions: a new one, the stored one, or the one that is live.

    the id is          open gives
    nobody's           a new session, kept in the store
    in the store       that session, taken up where it was left
    live here          the same ref; the options of whoever opened it first hold
    a tree's           that child of the tree, also where it left memory meanwhile; the options of its spec hold
    stopped for good   RecipientStopped
    another agent's    ConfigError

Two who open one id at once get one session: the second waits for the first, and tries itself if that failed. A tree that starts
takes over a session of its own that mail, or the store, has woken before: what runs of it is shut down and goes on in the tree.
"""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from itertools import count
from secrets import token_hex
from typing import Any

import trio
from attrs import evolve, frozen

from actors._check import check_type
from actors._envelope import split_address
from actors._errors import ConfigError, LeaseLost, RecipientStopped, StoreError
from actors._exit import Status, Stopped
from actors.agent._agent import Agent, check_options, configure
from actors.agent._kept import kept, taken_up
from actors.agent._record import Commit, State
from actors.store._api import SessionSummary
from actors.store._copy import Copy
from actors.tools._context import new_token

from ._place import Place
from ._session import SessionPlace
from ._session_ref import SessionRef
from ._spec import ChildSpec, check_name, check_owner

TRIES = 3


@frozen
class Wish:
    """What is to be opened. `seat`: its spec in a tree, and its supervisor there."""

    agent: type[Agent]
    id: str
    options: Mapping[str, Any]
    owner: str | None = None
    parent: str | None = None
    copy: Copy | None = None
    by_itself: bool = False
    seat: tuple[ChildSpec, Place | None] | None = None


class Opener:
    """Opens the sessions of one system."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._under_way: dict[str, trio.Event] = {}
        self._names = count(1).__next__

    async def open(
        self, agent: type[Agent], session: str | None, owner: str | None, parent: str | None, options: Mapping[str, Any],
        copy: Copy | None = None,
    ) -> SessionRef:  # fmt: skip
        """`System.open`; with a `copy`, a new session that begins as that."""
        given: object = agent
        if not (isinstance(given, type) and issubclass(given, Agent)):
            raise ConfigError(f"open takes an Agent class, not {agent!r}; spawn starts plain actors")
        check_options(agent, options)
        check_owner("a session", owner)
        id = await self._new_id(agent) if session is None else session
        _check_id(id)
        await self._alone(id)
        place = self._root.router.places.get(id)
        if place is not None and copy is None:
            _check_live(place, agent).by_itself = False
            return SessionRef(id, self._root)
        if copy is not None and (place is not None or await self._root.store.find(id) is not None):
            raise ConfigError(f"there is a session {id} already; give the copy another id, session=...")
        with self._opening(id):
            await self._begin(Wish(agent, id, options, owner, parent, copy))
        return SessionRef(id, self._root)

    async def wake(self, agent: type[Agent], id: str, options: Mapping[str, Any]) -> None:
        """As `open`, of a session that is kept, and that nobody asked for by opening it."""
        await self._alone(id)
        if id not in self._root.router.places:
            with self._opening(id):
                await self._begin(Wish(agent, id, options, by_itself=True))

    async def seat(self, spec: ChildSpec, parent: Place | None) -> SessionPlace:
        """The place of a tree's session, which has not started yet: a new one, or the one that is kept."""
        agent, id = spec.agent, spec.name if parent is None else f"{parent.address}/{spec.name}"
        assert agent is not None
        await self._alone(id)
        while (place := self._root.router.places.get(id)) is not None:
            if not isinstance(place, SessionPlace) or not place.by_itself or place.config.agent is not agent:
                raise ConfigError(f"{id} is already there; choose another name, or stop it first")
            place.leave("its tree starts", shut=True)
            await place.wait()
            await self._alone(id)
        with self._opening(id):
            return await self._placed(Wish(agent, id, spec.given, (spec.options or {}).get("owner"), seat=(spec, parent)))

    @asynccontextmanager
    async def borrowed(self, id: str) -> AsyncIterator[State | None]:
        """The state of a session that nobody runs, for a commit or two; None if another process has it."""
        await self._alone(id)
        if id in self._root.router.places:
            yield None
            return
        with self._opening(id), ExitStack() as stack:
            try:
                state: State | None = await self._root.store.load(id)
            except LeaseLost:
                state = None
            if state is not None:
                stack.callback(self._root.store.release, state)
            yield state

    async def _alone(self, id: str) -> None:
        while id in self._under_way:
            await self._under_way[id].wait()

    @contextmanager
    def _opening(self, id: str) -> Iterator[None]:
        done = self._under_way[id] = trio.Event()
        try:
            yield
        finally:
            del self._under_way[id]
            done.set()

    async def _begin(self, wish: "Wish") -> None:
        seat = self._seat_in_tree(wish)
        if seat is None:
            await self._root.lives.start(await self._placed(wish))
            return
        place = await self._placed(evolve(wish, options=seat[0].given, seat=seat))
        place.joining = True
        seat[1].stopped.discard(seat[0].name)
        await self._root.lives.start(place)
        place.joining = False

    def _seat_in_tree(self, wish: "Wish") -> "tuple[ChildSpec, Any] | None":
        """The spec and the supervisor of a tree's session that is not in memory, where that tree is at work."""
        head, _, name = wish.id.rpartition("/")
        parent = self._root.router.places.get(head)
        if parent is None or parent.kind != "supervisor" or parent.status is not Status.IDLE or parent.asked is not None:
            return None
        specs = (each for each in parent.spec.children if isinstance(each, ChildSpec))
        return next(((each, parent) for each in specs if each.name == name and each.agent is wish.agent), None)

    async def _placed(self, wish: "Wish") -> SessionPlace:
        root, id = self._root, wish.id
        found: SessionSummary | None = await root.store.find(id)
        options: Mapping[str, Any] = wish.options
        if found is not None and not kept(options):
            options = {**taken_up(found.options), **options}
        spec, parent = wish.seat or (None, None)
        limits = root.limits
        if spec is not None:
            limits = root.limits_of(spec, parent)
            options = {**({} if "deps" in options else root.waking.made(id, wish.agent)), **options}
        config = configure(wish.agent, options, limits)
        root.waking.register(wish.agent)
        root.waking.remember(id, wish.options)
        new = State(
            id, wish.agent.__name__, wish.parent, wish.owner, limits=config.limits, options=kept(options), seal=new_token()
        )
        state = await self._stored(found, wish.agent, new)
        with ExitStack() as stack:
            stack.callback(root.store.release, state)
            root.admit_new()
            if wish.copy is not None:
                await root.store.commit(state, wish.copy.commit(id))
            if state.limits != config.limits or state.options != new.options:
                await root.store.commit(state, Commit(limits=config.limits, options=new.options, loop=False))
                root.admit_new()
            place = SessionPlace(root, config, state, root.store, spec, parent)
            place.by_itself = wish.by_itself
            root.adopt(place, parent, id if spec is None else spec.name)
            stack.pop_all()  # from here on it is let go when its place has ended
        return place

    async def _stored(self, found: SessionSummary | None, agent: type[Agent], new: State) -> State:
        """The session that was found under this id; else `new`, which is kept from now on."""
        store, id = self._root.store, new.id
        if found is None:
            await store.create(new)
            return new
        if found.status is Status.STOPPED:
            raise RecipientStopped(address=id, exit=Stopped())
        if found.agent != agent.__name__:
            raise ConfigError(f"session {id} is kept as {found.agent}'s, not {agent.__name__}'s; choose another id")
        state: State | None = await store.load(id)
        if state is None:
            raise StoreError(f"session {id} was deleted while it was opened; choose another id")
        return state

    async def _new_id(self, agent: type[Agent]) -> str:
        """A short id that no session has, here or in the store."""
        word = re.sub(r"[^a-z0-9._-]", "", agent.__name__.lower())[:40] or "session"
        tries = 0
        while True:
            tries += 1  # a store may hold thousands of such names: counting through them would take seconds
            id = f"{word}-{self._names() if tries <= TRIES else token_hex(4)}"
            if (
                id not in self._root.router.places
                and id not in self._root.router.exits
                and await self._root.store.find(id) is None
            ):
                return id


def _check_live(place: Place, agent: type[Agent]) -> SessionPlace:
    if not isinstance(place, SessionPlace):
        what = "an actor" if place.kind == "actor" else f"a {place.kind}"
        raise ConfigError(f"{place.address} is {what} already; choose another id")
    if place.config.agent is not agent:
        raise ConfigError(f"{place.address} is a session of {place.config.agent.__name__} already; choose another id")
    refusal = place.refusal()
    if refusal is not None:
        raise refusal
    return place


def _check_id(id: str) -> None:
    """ConfigError unless the id is an address of which no segment is a call's."""
    check_type("open", "session", id, str, "its id")
    try:
        segments = split_address(id)
    except ValueError as error:
        raise ConfigError(f"a session cannot have the id {id!r}: {error}") from None
    for segment in segments:
        check_name("a session", segment)
