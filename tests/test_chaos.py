"""Chaos: two hundred actors under crashes, hangs, group restarts and stops, and an auditor who misses nothing.

Eight seconds of the wall clock, sixty by night (`nightly.py`), on virtual time: nobody ever sleeps, so that is a lot of chaos.
"""

import gc
import logging
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from attrs import Factory, define, frozen
from nightly import NIGHTLY
from trio.testing import MockClock

from actors import Actor, ActorsError, AskFailed, Ended, Exit, Fenced, Reject, SendRefused, handle
from actors.events import AnyEvent, DeadLettered
from actors.testing import scheduled
from supervision import ChildSpec, Supervisor, System, open_system
from supervision._strategy import RESTARTS

SECONDS = 60 if NIGHTLY else 8
GROUPS, MEMBERS, BOSSES, KIDS, SENDERS = 10, 10, 20, 4, 20
ACTS = {"note": 70, "nap": 12, "forward": 8, "reject": 4, "odd": 3, "crash": 3}
STRATEGIES: Any = ("one_for_one", "one_for_all", "rest_for_one")


@frozen
class Mail:
    n: int
    act: str


@define(eq=False)
class Auditor:
    """Knows of each accepted message what has become of it; each has one end, and only one."""

    rng: Random
    open: dict[int, str] = Factory(dict)  # accepted, without an end yet -> to whom
    begun: set[int] = Factory(set)
    ends: Counter[str] = Factory(Counter)
    wrong: list[str] = Factory(list)
    bad_starts: Counter[str] = Factory(Counter)
    stops: list[str] | None = None  # once the system stops
    count: int = 0

    def act(self) -> str:
        return self.rng.choices(list(ACTS), list(ACTS.values()))[0]

    def address(self) -> str:
        rng = self.rng
        if rng.random() < 0.5:
            return f"g{rng.randrange(GROUPS)}/in/m{rng.randrange(MEMBERS)}"
        return f"b{rng.randrange(BOSSES)}" + rng.choice(("", *(f"/k{kid}" for kid in range(KIDS))))

    def send(self, ref: Any, act: str) -> None:
        """A tell."""
        self.count += 1
        mail = Mail(self.count, act)
        self.open[mail.n] = ref.address
        try:
            ref.send_nowait(mail.n if act == "odd" else mail)
        except SendRefused as refusal:
            self.end(mail.n, type(refusal).__name__)

    async def ask(self, ref: Any, act: str) -> None:
        """Every asker hears something."""
        self.count += 1
        n = self.count
        try:
            await ref.ask(Mail(-n, act), timeout=1)
            self.ends["answered"] += 1
        except (AskFailed, SendRefused) as error:
            self.ends[type(error).__name__] += 1

    def begin(self, n: int) -> None:
        """A handler has it."""
        if n in self.begun:
            self.wrong.append(f"{n} was begun twice")
        self.begun.add(n)

    def end(self, n: int, how: str) -> None:
        """Its one end. The end of an ask is what its asker heard."""
        self.ends[how] += 1
        self.begun.discard(n)
        if n > 0 and self.open.pop(n, None) is None:
            self.wrong.append(f"{n} had ended before it was {how}")

    def hear(self, event: AnyEvent) -> None:
        """A dead letter is an end."""
        if isinstance(event, DeadLettered):
            body = event.envelope.body
            if isinstance(body, Mail | int):
                self.end(body if isinstance(body, int) else body.n, "dead letter")


class Soul(Actor):
    """One of two hundred."""

    def __init__(self, auditor: Auditor) -> None:
        self.auditor = auditor

    async def on_start(self) -> None:
        if self.auditor.bad_starts[self.ref.address]:
            self.auditor.bad_starts[self.ref.address] -= 1
            raise ValueError("start")

    async def on_stop(self, exit: Exit) -> None:
        if self.auditor.stops is not None:
            self.auditor.stops.append(self.ref.address)

    @handle
    async def take(self, mail: Mail) -> str:
        self.auditor.begin(mail.n)
        doing = getattr(self, mail.act, None)
        if doing is not None:
            await doing()
        self.auditor.end(mail.n, "handled")
        return "done"

    async def crash(self) -> None:
        raise ValueError("crash")

    async def reject(self) -> None:
        raise Reject("no")

    async def nap(self) -> None:
        await trio.sleep(self.auditor.rng.random() / 10)

    async def forward(self) -> None:
        self.auditor.send(self.find(self.auditor.address()), "note")

    async def hang(self) -> None:
        """Ignore the stop, find out later that it is dead."""
        with trio.CancelScope(shield=True):
            await trio.sleep(5)
        self.auditor.send(self.find("b0"), "note") if not self._life.revoked else self.check()  # type: ignore[union-attr]

    def check(self) -> None:
        with pytest.raises(Fenced):
            self.find("b0").send_nowait("a voice from the grave")
        raise Fenced(address=self.ref.address)


class Boss(Soul):
    """Has children of its own."""

    async def on_start(self) -> None:
        await super().on_start()
        for kid in range(KIDS):
            await self.spawn(Soul, self.auditor, name=f"k{kid}", shutdown=0.5)

    @handle
    def ended(self, ended: Ended) -> None:
        """Its child is not missed."""


# ------------------------------------------------------------------ the monkey
@define(eq=False)
class Monkey:
    """Breaks what there is, and starts again what is gone."""

    system: System
    auditor: Auditor
    rng: Random
    done: Counter[str] = Factory(Counter)

    async def start(self, name: str) -> None:
        """A boss with its children, or a group."""
        with suppress(ActorsError):
            if name.startswith("b"):
                await self.system.spawn(Boss, self.auditor, name=name, shutdown=0.5)
            else:
                restarts: list[Any] = self.rng.choices(list(RESTARTS), k=MEMBERS)
                kids = [
                    ChildSpec(Soul, self.auditor, name=f"m{nth}", restart=how, shutdown=0.5) for nth, how in enumerate(restarts)
                ]
                group = Supervisor(
                    *kids, name="in", strategy=STRATEGIES[int(name[1:]) % 3], restart="temporary", max_restarts=5
                )
                await self.system.start(Supervisor(group, name=name))

    async def run(self, until: float) -> None:
        """Until the wall clock says so."""
        async with trio.open_nursery() as nursery:
            while time.monotonic() < until:
                await trio.sleep(0.03)
                nursery.start_soon(self.mischief)
                await self.mend()

    async def mischief(self) -> None:
        what = self.rng.choice(("crash", "crash", "hang", "bad start", "stop", "kill", "drain"))
        address = self.auditor.address()
        self.done[what] += 1
        ref = self.system.ref(address)
        if what in {"crash", "hang"}:
            self.auditor.send(ref, what)
        elif what == "bad start":
            self.auditor.bad_starts[address] = 1
        else:
            with suppress(SendRefused):
                await ref.stop({"stop": "now"}.get(what, what))  # type: ignore[arg-type]

    async def mend(self) -> None:
        """Start one that is gone; stop a group with gaps first, as a whole."""
        places = self.system._root.router.places
        name = self.rng.choice([f"g{group}" for group in range(GROUPS)] + [f"b{boss}" for boss in range(BOSSES)])
        if name.startswith("g") and name in places:
            inner = places.get(f"{name}/in")
            if inner is not None and len(inner.children or ()) > MEMBERS // 2:
                return
            await self.system.ref(name).stop()
        if name not in places:
            await self.start(name)


async def sender(system: System, auditor: Auditor, rng: Random) -> None:
    """One of twenty that write to everybody."""
    while True:
        for _ in range(rng.randrange(1, 20)):
            auditor.send(system.ref(auditor.address()), auditor.act())
        for _ in range(rng.randrange(3)):
            await auditor.ask(system.ref(auditor.address()), auditor.act())
        await trio.sleep(rng.random() / 20)


def resident() -> int:
    """Megabytes."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


async def chaos(seed: int) -> tuple[Auditor, Monkey, list[int]]:
    """The whole play; what was seen."""
    rng, memory = Random(seed), list[int]()
    auditor = Auditor(rng)
    began, tasks = time.monotonic(), trio.lowlevel.current_statistics().tasks_living
    async with open_system(hard_deadline=1e6) as system:
        system.listen(auditor.hear)
        monkey = Monkey(system, auditor, rng)
        for name in [f"g{group}" for group in range(GROUPS)] + [f"b{boss}" for boss in range(BOSSES)]:
            await monkey.start(name)
        assert system.statistics().actors == GROUPS * MEMBERS + BOSSES * (KIDS + 1)
        async with trio.open_nursery() as nursery:
            for _ in range(SENDERS):
                nursery.start_soon(sender, system, auditor, rng)
            for part in range(2, 6):
                await monkey.run(began + SECONDS * part / 5)
                memory.append(resident())
            nursery.cancel_scope.cancel()
        pending = [envelope.body for place in system._root.router.places.values() for envelope in left(place)]
        waiting = {body if isinstance(body, int) else body.n for body in pending if isinstance(body, Mail | int)}
        assert set(auditor.open) == {n for n in waiting if n > 0}, "accepted, without an end, and nowhere"
        await trio.sleep(20)  # group restarts in progress, and what hangs, come to their end
        auditor.stops = []
    assert trio.lowlevel.current_statistics().tasks_living == tasks
    return auditor, monkey, memory


def left(place: Any) -> list[Any]:
    """The unread mail of a place, the message in progress included."""
    ahead = place.mailbox._ahead or ()
    return [envelope for envelope in place.mailbox.unread(place.mailbox.cursor) if envelope.seq not in ahead]


@pytest.fixture
def _silent() -> Iterator[None]:
    """A hundred thousand crashes are not worth a log."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("_silent")
def test_nothing_is_lost_or_doubled_in_chaos() -> None:
    """Every accepted message has one end; no task is left; memory is flat; and then it all stops in order."""
    with scheduled(1):
        auditor, monkey, memory = trio.run(chaos, 1, clock=MockClock(autojump_threshold=0))
    assert auditor.wrong == []
    assert auditor.open == {}
    assert min(auditor.ends["handled"], auditor.ends["dead letter"], auditor.ends["answered"]) > 200, auditor.ends
    assert all(monkey.done.values())
    assert memory[-1] <= memory[0] * 1.1 + 8, f"megabytes over time: {memory}"
    stopped_in_order(auditor.stops or [])


def stopped_in_order(stops: list[str]) -> None:
    """What was spawned, then the groups; in each the last member first; of bosses, their children before them."""
    assert stops
    spawned = [address.startswith("b") for address in stops]
    assert spawned == sorted(spawned, reverse=True)
    for group in range(GROUPS):
        members = [int(address.rpartition("/m")[2]) for address in stops if address.startswith(f"g{group}/")]
        assert members == sorted(members, reverse=True)
    for boss in range(BOSSES):
        family = [address for address in stops if address.partition("/")[0] == f"b{boss}"]
        assert family.index(f"b{boss}") == len(family) - 1 if f"b{boss}" in family else True
