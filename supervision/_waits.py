"""Who waits for whom, so that a wait which would never end is refused before it begins.

An actor that waits inside a handler handles nothing else. If what it waits for waits, directly or through others, for the
actor itself, nobody can go on: such a wait is refused at once, with the path. Every wait that an actor's or a call's
task makes is an edge from its address to the one it waits for: an ask, a spawn until ready, a stop, `ref.wait`,
`wait_answer`, a send for room; and a session has one to each call it is attached to. Edges are counted, because one
handler may wait twice for the same actor in two tasks. Host code handles no messages, so nobody can wait for it in turn and it
adds none. Across processes there is no such graph; there the deadlines end what hangs.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from actors._errors import AskCycle


class Waits:
    """The waits-for graph of one system.

    Nearly every waiter asks one actor, at a time when nobody else waits in another way: that edge stands in the asker's own
    mailbox, where `ask` writes it. `edges` has all others, each with its count; `held` what a session holds of them to its calls.
    """

    __slots__ = ("_places", "edges", "held")

    def __init__(self, places: Mapping[str, Any]) -> None:
        self._places = places
        self.edges: dict[str, dict[str, int]] = {}
        self.held: dict[str, tuple[str, ...]] = {}

    def enter(self, waiter: str, target: str) -> None:
        """Add an edge.

        Raises:
            AskCycle: It would close a cycle; nothing was added. `path` begins and ends with the waiter.
        """
        if target == waiter:
            raise AskCycle(path=(waiter, target))
        back = self._path(target, waiter)
        if back is not None:
            raise AskCycle(path=(waiter, *back))
        mine = self.edges.setdefault(waiter, {})
        mine[target] = mine.get(target, 0) + 1

    def leave(self, waiter: str, target: str) -> None:
        """Take one edge back."""
        mine = self.edges[waiter]
        _less(mine, target)
        if not mine:
            del self.edges[waiter]

    def hold(self, waiter: str, targets: Iterable[str]) -> None:
        """Set the edges of a waiter that is never refused: a session, which waits in its mailbox and can always be reached."""
        mine = self.edges.setdefault(waiter, {})
        for target in self.held.pop(waiter, ()):
            _less(mine, target)
        held = tuple(dict.fromkeys(targets))
        for target in held:
            mine[target] = mine.get(target, 0) + 1
        if held:
            self.held[waiter] = held
        if not mine:
            del self.edges[waiter]

    def targets(self, waiter: str) -> tuple[str, ...]:
        """Whom an address waits for now."""
        place = self._places.get(waiter)
        asked = None if place is None else place.mailbox.awaits
        return (*(() if asked is None else (asked,)), *self.edges.get(waiter, ()))

    def listing(self) -> list[tuple[str, tuple[str, ...]]]:
        """Every waiter and whom it waits for."""
        waiters = dict.fromkeys((*self._places, *self.edges))
        return [(waiter, targets) for waiter in waiters if (targets := self.targets(waiter))]

    def _path(self, start: str, goal: str) -> tuple[str, ...] | None:
        """A shortest way along the edges, both ends included."""
        came: dict[str, str | None] = {start: None}
        front = [start]
        while front:
            reached: list[str] = []
            for address in front:
                for target in self.targets(address):
                    if target not in came:
                        came[target] = address
                        reached.append(target)
                        if target == goal:
                            return _back(came, goal)
            front = reached
        return None

    def __len__(self) -> int:
        asks = sum(place.mailbox.awaits is not None for place in self._places.values())
        return asks + sum(sum(mine.values()) for mine in self.edges.values())


def _less(mine: dict[str, int], target: str) -> None:
    mine[target] -= 1
    if not mine[target]:
        del mine[target]


def _back(came: dict[str, str | None], goal: str) -> tuple[str, ...]:
    path: list[str] = []
    step: str | None = goal
    while step is not None:
        path.append(step)
        step = came[step]
    return tuple(reversed(path))
