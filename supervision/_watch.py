"""Watches: who hears of whose ends.

An edge leads from a watcher's place to the watched one, so that either end can go first. An `Ended` is ordinary mail of the
watcher, always accepted; it comes after all earlier mail of the actor that ended, and after its name is free.
"""

from typing import Any

from actors._envelope import FromActor
from actors._errors import RecipientStopped
from actors._exit import Ended, Exit
from actors._life import Life

from ._place import Place
from ._router import Router


class Watches:
    """The watches of one system."""

    def __init__(self, router: Router, running: dict[Life, Place]) -> None:
        self._router = router
        self._running = running

    def watch(self, life: Life, address: str) -> None:
        """Tell this life of every end at that address; of one that already ended for good, now."""
        life.check()
        watcher = self._running[life]
        try:
            place = self._router.find(address)
        except RecipientStopped as ended:
            _tell(watcher, Ended(address, ended.exit))
            return
        self.add(place, watcher)

    def unwatch(self, life: Life, address: str) -> None:
        """Take a watch back."""
        life.check()
        watcher = self._running[life]
        if watcher.watching is not None:
            watcher.watching.discard(address)
        self.drop(address, watcher)

    def add(self, place: Place, watcher: Place) -> None:
        """Add an edge; if the place ended meanwhile, tell it now."""
        if place.exit is not None:
            _tell(watcher, Ended(place.address, place.exit))
            return
        place.watchers = place.watchers or {}
        place.watchers[watcher.address] = watcher
        watcher.watching = watcher.watching or set()
        watcher.watching.add(place.address)

    def drop(self, address: str, watcher: Place) -> None:
        """Drop one edge."""
        place = self._router.places.get(address)
        if place is not None and place.watchers is not None:
            place.watchers.pop(watcher.address, None)

    def drop_all(self, watcher: Place) -> None:
        """A watcher's life is over: the next one watches afresh."""
        for address in watcher.watching or ():
            self.drop(address, watcher)
        watcher.watching = None

    def ended(self, place: Place, exit: Exit, *, restarting: bool) -> None:
        """Tell the watchers. A restart of a session's loop is no end."""
        if place.kind == "session" and restarting:
            return
        for watcher in tuple((place.watchers or {}).values()):
            _tell(watcher, Ended(place.address, exit, restarting))
            if not restarting and watcher.watching is not None:
                watcher.watching.discard(place.address)


def _tell(watcher: Any, ended: Ended) -> None:
    if watcher.exit is None and not watcher.mailbox.closed:
        watcher.mailbox.accept(ended, FromActor(ended.address))
