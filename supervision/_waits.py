"""Who waits for whom, so that a wait which would never end is refused before it begins.

An actor that waits inside a handler handles nothing else. If what it waits for waits, directly or through others, for the
actor itself, nobody can go on: such a wait is refused at once, with the path. Every wait that an actor's or a call's
task makes is an edge from its address to the one it waits for: an ask, a spawn until ready, a stop, `ref.wait`,
`wait_answer`, a send for room; and a session has one to each call it is attached to. Edges are counted, because one
handler may wait twice for the same actor in two tasks. Host code handles no messages, so nobody can wait for it in turn and it
adds none. Across processes there is no such graph; there the deadlines end what hangs.
"""

from collections.abc import Iterable

from actors._errors import AskCycle


class Waits:
    """The waits-for graph of one system."""

    __slots__ = ("_edges",)

    def __init__(self) -> None:
        self._edges: dict[str, dict[str, int]] = {}

    def enter(self, waiter: str, target: str) -> None:
        """Add an edge.

        Raises:
            AskCycle: It would close a cycle; nothing was added. `path` begins and ends with the waiter.
        """
        edges = self._edges
        if target == waiter:
            raise AskCycle(path=(waiter, target))
        if target in edges:
            back = self._path(target, waiter)
            if back is not None:
                raise AskCycle(path=(waiter, *back))
        mine = edges.get(waiter)
        if mine is None:
            edges[waiter] = {target: 1}
        else:
            mine[target] = mine.get(target, 0) + 1

    def leave(self, waiter: str, target: str) -> None:
        """Take one edge back."""
        mine = self._edges[waiter]
        if mine[target] > 1:
            mine[target] -= 1
        elif len(mine) > 1:
            del mine[target]
        else:
            del self._edges[waiter]

    def hold(self, waiter: str, targets: Iterable[str]) -> None:
        """Set the edges of a waiter that is never refused: a session, which waits in its mailbox and can always be reached."""
        edges = dict.fromkeys(targets, 1)
        if edges:
            self._edges[waiter] = edges
        else:
            self._edges.pop(waiter, None)

    def targets(self, waiter: str) -> tuple[str, ...]:
        """Whom an address waits for now."""
        return tuple(self._edges.get(waiter, ()))

    def listing(self) -> list[tuple[str, tuple[str, ...]]]:
        """Every waiter and whom it waits for."""
        return [(waiter, tuple(targets)) for waiter, targets in self._edges.items()]

    def _path(self, start: str, goal: str) -> tuple[str, ...] | None:
        """A shortest way along the edges, both ends included."""
        came: dict[str, str | None] = {start: None}
        front = [start]
        while front:
            reached: list[str] = []
            for address in front:
                for target in self._edges.get(address, ()):
                    if target not in came:
                        came[target] = address
                        reached.append(target)
                        if target == goal:
                            return _back(came, goal)
            front = reached
        return None

    def __len__(self) -> int:
        return sum(sum(mine.values()) for mine in self._edges.values())


def _back(came: dict[str, str | None], goal: str) -> tuple[str, ...]:
    path: list[str] = []
    step: str | None = goal
    while step is not None:
        path.append(step)
        step = came[step]
    return tuple(reversed(path))
