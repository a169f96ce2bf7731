"""Opening sessions: a new one, the stored one, or the one that is live.

    the id is          open gives
    nobody's           a new session, kept in the store
    in the store       that session, taken up where it was left
    live here          the same ref; the options of whoever opened it first hold
    stopped for good   RecipientStopped
    another agent's    ConfigError

Two who open one id at once get one session: the second waits for the first, and tries itself if that failed.
"""

import re
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import count
from secrets import token_hex
from typing import Any

import trio

from actors._errors import ConfigError, RecipientStopped, StoreError
from actors._exit import Status, Stopped
from actors.agent._agent import Agent, check_options, configure
from actors.agent._record import Commit, State
from actors.store._api import SessionSummary
from actors.store._copy import Copy

from ._place import Place
from ._session import SessionPlace, check_session_id
from ._session_ref import SessionRef

TRIES = 3


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
        id = await self._new_id(agent) if session is None else session
        check_session_id(id)
        while id in self._under_way:
            await self._under_way[id].wait()
        place = self._root.router.places.get(id)
        if place is not None and copy is None:
            _check_live(place, agent)
            return SessionRef(id, self._root)
        if copy is not None and (place is not None or await self._root.store.find(id) is not None):
            raise ConfigError(f"there is a session {id} already; give the copy another id, session=...")
        done = self._under_way[id] = trio.Event()
        try:
            await self._begin(agent, id, owner, parent, options, copy)
        finally:
            del self._under_way[id]
            done.set()
        return SessionRef(id, self._root)

    async def _begin(
        self, agent: type[Agent], id: str, owner: str | None, parent: str | None, options: Mapping[str, Any], copy: Copy | None
    ) -> None:
        config = configure(agent, options, self._root.limits)
        self._root.waking.register(agent)
        self._root.waking.remember(id, options)
        state = await self._stored(id, agent, State(id, agent.__name__, parent, owner, limits=config.limits))
        with ExitStack() as stack:
            stack.callback(self._root.store.release, state)
            self._root.admit_new()
            if copy is not None:
                await self._root.store.commit(state, copy.commit(id))
            if state.limits != config.limits:
                await self._root.store.commit(state, Commit(limits=config.limits, loop=False))
                self._root.admit_new()
            place = SessionPlace(self._root, config, state, self._root.store, None)
            self._root.adopt(place, None, id)
            stack.pop_all()  # from here on it is let go when its place has ended
        await self._root.lives.start(place)

    async def _stored(self, id: str, agent: type[Agent], new: State) -> State:
        """The session that is kept under this id; else `new`, which is kept from now on."""
        store = self._root.store
        found: SessionSummary | None = await store.find(id)
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


def _check_live(place: Place, agent: type[Agent]) -> None:
    if not isinstance(place, SessionPlace):
        what = "an actor" if place.kind == "actor" else f"a {place.kind}"
        raise ConfigError(f"{place.address} is {what} already; choose another id")
    if place.config.agent is not agent:
        raise ConfigError(f"{place.address} is a session of {place.config.agent.__name__} already; choose another id")
    refusal = place.refusal()
    if refusal is not None:
        raise refusal
