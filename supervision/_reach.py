"""Whom a model may reach for, by `mail_scope`: code that holds a ref may use it, a model names addresses.

    own        nobody else
    children   the sessions that it opened
    subtree    those, and what they opened, all the way down
    siblings   its subtree, its parent, and the other children of that parent or of its supervisor
    all        everybody

Lineage is what the store has recorded, so it is the same in every process, and never the text of an address.
"""

from collections.abc import AsyncIterator
from difflib import get_close_matches

from actors._exit import Status
from actors._limits import Scope
from actors.agent._record import State
from actors.store._api import DELETED, SessionSummary, Store

from ._place import Place

DEEPEST = 64  # a lineage that is longer is a circle
WHOM: dict[Scope, str] = {
    "own": "nobody else",
    "children": "the sessions that it opened",
    "subtree": "the sessions that it opened, and those below them",
    "siblings": "the sessions below it, its parent, and the other children of that",
}


async def out_of_reach(place: Place, state: State, session: str) -> str | None:
    """Why a model in this session may not reach for that one, in words for it; None if it may."""
    store: Store = place.runtime.store
    scope: Scope = state.limits.mail_scope  # type: ignore[assignment]  # all limits are set
    found = await store.find(session)
    allowed = found is not None and await _within(scope, place, state, found, store)
    if found is None or found.agent == DELETED:
        near = get_close_matches(session, place.runtime.router.places, n=3, cutoff=0.6) if scope == "all" else ()
        hint = f"; did you mean {', '.join(near)}?" if near else "; check its id"
        return f"there is no session {session!r}{hint}"
    if not allowed:
        return f"not permitted: mail_scope is {scope!r}, so {state.id} reaches {WHOM[scope]}, and {session} is none of these; name one of them"
    if found.status is Status.STOPPED:
        return f"session {session} has ended; nothing more will happen there"
    return None


async def _within(scope: Scope, place: Place, state: State, found: SessionSummary, store: Store) -> bool:
    if scope == "all":
        return True
    if scope == "own":
        return False
    if found.parent == state.id:
        return True
    if scope == "siblings" and (found.id == state.parent or _beside(place, state, found)):
        return True
    return scope != "children" and state.id in [above async for above in _lineage(found, store)]


def _beside(place: Place, state: State, found: SessionSummary) -> bool:
    """Whether both have one parent, or one supervisor."""
    if state.parent is not None and found.parent == state.parent:
        return True
    other = place.runtime.router.places.get(found.id)
    return other is not None and place.parent is not None and other.parent is place.parent


async def _lineage(found: SessionSummary, store: Store) -> AsyncIterator[str]:
    """Who opened it, who opened that one, and so on."""
    above: SessionSummary | None = found
    for _ in range(DEEPEST):
        if above is None or above.parent is None:
            return
        yield above.parent
        above = await store.find(above.parent)
