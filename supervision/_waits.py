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
    """The waits-for graph of one system.

    Nearly every waiter waits once: such an edge is one entry of `only`, which `ask` writes itself where nothing can be wrong
    with it. `others` has the waiters with more edges, each with its count, and the sessions that hold some to their calls.
    """

    __slots__ = ("held", "only", "others")

    def __init__(self) -> None:
        self.only: dict[str, str] = {}
        self.others: dict[str, dict[str, int]] = {}
        self.held: dict[str, tuple[str, ...]] = {}

    def enter(self, waiter: str, target: str) -> None:
        """Add an edge.

        Raises:
            AskCycle: It would close a cycle; nothing was added. `path` begins and ends with the waiter.
        """
        if target == waiter:
            raise AskCycle(path=(waiter, target))
        if target in self.only or target in self.others:
            back = self._path(target, waiter)
            if back is not None:
                raise AskCycle(path=(waiter, *back))
        if waiter in self.only:
            self.others[waiter] = {self.only.pop(waiter): 1}
        mine = self.others.get(waiter)
        if mine is None:
            self.only[waiter] = target
        else:
            mine[target] = mine.get(target, 0) + 1

    def leave(self, waiter: str, target: str) -> None:
        """Take one edge back."""
        if waiter in self.only:
            del self.only[waiter]
            return
        mine = self.others[waiter]
        mine[target] -= 1
        if not mine[target]:
            del mine[target]
        if not mine and waiter not in self.held:
            del self.others[waiter]

    def hold(self, waiter: str, targets: Iterable[str]) -> None:
        """Set the edges of a waiter that is never refused: a session, which waits in its mailbox and can always be reached."""
        mine = self.others.setdefault(waiter, {})
        if waiter in self.only:
            mine[self.only.pop(waiter)] = 1
        for target in self.held.pop(waiter, ()):
            mine[target] -= 1
            if not mine[target]:
                del mine[target]
        held = tuple(dict.fromkeys(targets))
        for target in held:
            mine[target] = mine.get(target, 0) + 1
        if held:
            self.held[waiter] = held
        elif not mine:
            del self.others[waiter]

    def targets(self, waiter: str) -> tuple[str, ...]:
        """Whom an address waits for now."""
        return (self.only[waiter],) if waiter in self.only else tuple(self.others.get(waiter, ()))

    def listing(self) -> list[tuple[str, tuple[str, ...]]]:
        """Every waiter and whom it waits for."""
        return [(waiter, self.targets(waiter)) for waiter in (*self.only, *self.others)]

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
        return len(self.only) + sum(sum(mine.values()) for mine in self.others.values())


def _back(came: dict[str, str | None], goal: str) -> tuple[str, ...]:
    path: list[str] = []
    step: str | None = goal
    while step is not None:
        path.append(step)
        step = came[step]
    return tuple(reversed(path))
