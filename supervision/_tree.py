"""The tree as it stands at one moment, and as text."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from attrs import frozen

from actors._exit import Status


@frozen
class Node:
    """One place: its address, what it is, where it stands, which of its lives this is, its unread mail, whom it waits for."""

    address: str
    kind: str
    status: Status
    generation: int
    unread: int
    waits: tuple[str, ...] = ()
    children: "tuple[Node, ...]" = ()

    @property
    def restarts(self) -> int:
        """How often it was started again."""
        return self.generation - 1


@frozen
class SystemStatistics:
    """Counts of a system: now (`actors`, `sessions`, `calls`, `supervisors`, `zombies`, `unread`), and since it opened the rest."""

    actors: int
    sessions: int
    calls: int
    supervisors: int
    zombies: int
    unread: int
    restarts: int
    crashes: int
    dead_letters: int
    late_replies: int
    events: int


@frozen
class Tree:
    """A snapshot of a system. `str` draws it; iterating yields every node, parents first."""

    name: str
    nodes: tuple[Node, ...]
    zombies: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Node]:
        def walk(nodes: tuple[Node, ...]) -> Iterator[Node]:
            for node in nodes:
                yield node
                yield from walk(node.children)

        return walk(self.nodes)

    def __str__(self) -> str:
        lines = [self.name, *_drawn(self.nodes, "")]
        lines += [f"zombie: {address}" for address in self.zombies]
        return "\n".join(lines)


def _drawn(nodes: tuple[Node, ...], indent: str) -> list[str]:
    lines: list[str] = []
    for place, node in enumerate(nodes):
        last = place == len(nodes) - 1
        facts = [str(node.status)]
        if node.generation > 1:
            facts.append(f"life {node.generation}")
        if node.unread:
            facts.append(f"{node.unread} unread")
        if node.waits:
            facts.append(f"waits for {', '.join(node.waits)}")
        lines.append(f"{indent}{'`-- ' if last else '|-- '}{node.address.rpartition('/')[2]} ({node.kind}: {', '.join(facts)})")
        lines += _drawn(node.children, indent + ("    " if last else "|   "))
    return lines


def _node(place: Any) -> Node:
    children = tuple(_node(child) for child in (place.children or {}).values())
    waits = place.runtime.waits.targets(place.address)
    return Node(place.address, place.kind, place.standing(), place.generation, _unread(place), waits, children)


def _unread(place: Any) -> int:
    return 0 if place.kind in {"call", "supervisor"} else place.mailbox.unread_count()


def statistics(root: Any) -> SystemStatistics:
    """The counts of a system."""
    places = list(root.router.places.values())
    kinds = Counter(place.kind for place in places)
    return SystemStatistics(
        actors=kinds["actor"], sessions=kinds["session"], calls=kinds["call"], supervisors=kinds["supervisor"],
        zombies=len(root.lives.zombies), unread=sum(_unread(place) for place in places), restarts=root.restarts, crashes=root.crashes,
        dead_letters=root.dead_letters.total, late_replies=root.late_replies, events=root.hub.seq,
    )  # fmt: skip


def snapshot(root: Any) -> Tree:
    """The tree of a system, now."""
    tops = [place for place in root.router.places.values() if place.parent is None]
    return Tree(root.name, tuple(_node(place) for place in tops), tuple(place.address for place in root.lives.zombies.values()))


def idle(root: Any) -> bool:
    """Whether nothing is handled, unread or running."""
    return not root.waking.busy and all(_at_rest(place) for place in root.router.places.values())


def tells(root: Any) -> bool:
    """Whether whatever is not at rest now shows an event when it is: sessions and their calls do, plain actors do not."""
    return not root.waking.busy and all(_at_rest(place) or _tells(place) for place in root.router.places.values())


def _tells(place: Any) -> bool:
    if place.kind == "call":
        return place.name in place.parent.state.live
    return place.kind == "session" and place.session.running  # type: ignore[no-any-return]


def _at_rest(place: Any) -> bool:
    if place.kind == "session":
        return place.session.resting  # type: ignore[no-any-return]
    if place.kind == "call":
        return False
    if place.status is not Status.IDLE:
        return False
    if place.kind == "supervisor":
        return not place.reports
    return place.life is not None and place.life.mail is None and place.mailbox.unread_count() == 0
