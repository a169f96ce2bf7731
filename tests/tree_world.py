"""The actors of `test_tree_model.py`, which do what their messages say, and the world they share."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import trio
from attrs import Factory, define, frozen

from actors import Actor, Ended, Exit, Fenced, Reject, handle
from supervision import Restart


@frozen
class Watch:
    """To the watcher: watch it. An empty address says nothing."""

    address: str


@frozen
class Spec:
    """An actor or, with a strategy, a supervisor. `naive`: without a handler for the end of a child."""

    name: str
    restart: Restart = "transient"
    strategy: Any = ""
    kids: "tuple[Spec, ...]" = ()
    most: int = 3
    naive: bool = False


@define(eq=False)
class Msg:
    n: str
    act: str
    arg: str = ""
    ask: bool = False
    gone: bool = False


class Node:
    """A place: what stays while lives come and go."""

    def __init__(self, address: str, spec: Spec, parent: "Node | None") -> None:
        self.address, self.spec, self.parent = address, spec, parent
        self.life, self.up, self.asked, self.over, self.watched, self.untold = 0, False, False, False, False, ""
        self.doing: Msg | None = None
        self.mail: list[Msg] = []
        self.kids: dict[str, Node] = {}
        self.window: list[float] = []
        self.stopped: set[str] = set()
        self.reports: list[tuple[Node, int, str]] = []

    def home(self, tops: "dict[str, Node]") -> "dict[str, Node]":
        """Where it has its name."""
        return tops if self.parent is None else self.parent.kids

    def walk(self) -> "Iterator[Node]":
        """It and all below."""
        yield self
        for kid in self.kids.values():
            yield from kid.walk()


class Boom(Exception):
    """What a crash raises."""


@define(eq=False)
class World:
    """What the actors of an example share: how they are to behave, and what they saw."""

    bad_starts: Counter[str] = Factory(Counter)
    bad_stops: Counter[str] = Factory(Counter)
    gates: defaultdict[str, trio.Event] = Factory(lambda: defaultdict(trio.Event))
    zombies_wake: trio.Event = Factory(trio.Event)
    all_wake: trio.Event = Factory(trio.Event)
    entered: defaultdict[str, list[str]] = Factory(lambda: defaultdict(list))
    heard: defaultdict[tuple[str, str], list[str]] = Factory(lambda: defaultdict(list))
    asks: dict[str, str] = Factory(dict)
    wrong: list[str] = Factory(list)
    fenced: list[str] = Factory(list)


class Puppet(Actor):
    """Does what its messages say. One that is `naive` has no handler for the end of a child."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def on_start(self) -> None:
        address = self.ref.address
        if self.world.bad_starts[address]:
            self.world.bad_starts[address] -= 1
            raise Boom("start")

    async def on_stop(self, exit: Exit) -> None:
        address = self.ref.address
        if self.world.bad_stops[address]:
            self.world.bad_stops[address] -= 1
            raise Boom("stop")

    @handle
    async def take(self, mail: Msg) -> str:
        self.world.entered[self.ref.address].append(mail.n)
        act = getattr(self, f"do_{mail.act}", None)
        if act is not None:
            await act(mail)
        return "ok"

    async def do_crash(self, mail: Msg) -> None:
        raise Boom(mail.n)

    async def do_reject(self, mail: Msg) -> None:
        raise Reject(mail.n)

    async def do_block(self, mail: Msg) -> None:
        await self.world.gates[self.ref.address].wait()

    async def do_hang(self, mail: Msg) -> None:
        with trio.CancelScope(shield=True):
            await self.world.zombies_wake.wait()
            try:
                self.find("watcher").send_nowait(Watch(""))
            except Fenced:
                self.world.fenced.append(self.ref.address)
            else:
                await self.world.all_wake.wait()

    async def do_stop_self(self, mail: Msg) -> None:
        await self.ref.stop()

    async def do_spawn(self, mail: Msg) -> None:
        await self.spawn(Hearing, self.world, name=mail.arg, shutdown=1)

    async def do_finish(self, mail: Msg) -> None:
        self.finish()


def told(ended: Ended) -> str:
    return type(ended.exit).__name__ + "..." * ended.restarting


class Hearing(Puppet):
    @handle
    def hear(self, ended: Ended) -> None:
        self.world.heard[self.ref.address, ended.address].append(told(ended))


class Watcher(Hearing):
    @handle
    def look(self, watch: Watch) -> None:
        if watch.address:
            self.watch(self.find(watch.address))
