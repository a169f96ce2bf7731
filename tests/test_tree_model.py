"""A tree under any orders, in any order of its tasks, against a model of it that is short enough to be believed.

Each example is drawn from one seed, the order of tasks too (`scheduled`). In a step up to three trees get an order at once;
when all is still, everything that the model predicts is compared. A failure names its seed and what was ordered:

    POSTROOM_SEED=1234 pytest tests/test_tree_model.py

A run on a desk or in CI draws 200 examples, or as many as 40 seconds have room for; by night (`nightly.py`) 5,000.
"""

import logging
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from math import inf
from random import Random
from typing import Any

import pytest
import trio
from attrs import Factory, define
from nightly import NIGHTLY
from tree_model import Model
from tree_world import Hearing, Msg, Node, Puppet, Spec, Watch, Watcher, World
from trio.testing import MockClock, wait_all_tasks_blocked

from actors import ActorRef, AskFailed, Ended, Envelope, StartFailed
from actors.testing import scheduled
from supervision import ChildSpec, Supervisor, System, open_system

STEPS = 200
SEEDS = [int(os.environ["POSTROOM_SEED"])] if "POSTROOM_SEED" in os.environ else list(range(5000 if NIGHTLY else 200))
BUDGET = inf if NIGHTLY else 40  # seconds
FATAL = ("crash", "finish", "stop_self", "spawn")


# ------------------------------------------------------------------ both at once
@define(eq=False)
class Both:
    """Draws orders, gives them to the system and to the model, and compares."""

    rng: Random
    system: System
    nursery: trio.Nursery
    model: Model = Factory(Model)
    world: World = Factory(World)
    log: list[str] = Factory(list)
    pending: dict[str, tuple[Msg, trio.CancelScope]] = Factory(dict)
    count: int = 0
    letters: int = 0  # those that were compared

    # -------------------------------------------------------------- drawing
    async def step(self) -> None:
        """Up to three orders at once, each to another tree."""
        began = self.model.clock
        latest = began
        names = ["s0", "s1", "s2", "g0", "g1"]
        async with trio.open_nursery() as nursery:
            for name in self.rng.sample(names, self.rng.choice((1, 1, 2, 3))):
                self.model.clock = began
                top = self.model.tops.get(name)
                if top is None:
                    nursery.start_soon(self.begin, *self.draw_start(name))
                else:
                    nursery.start_soon(*self.draw_order(top))
                latest = max(latest, self.model.clock)
        self.model.clock = latest + 0.5 if latest > began else latest
        await self.pass_until(self.model.clock)
        if self.rng.random() < 0.1:
            self.model.clock += 6
            await self.pass_until(self.model.clock)
        self.compare()

    async def pass_until(self, when: float) -> None:
        await wait_all_tasks_blocked()
        if when > trio.current_time() - self.epoch:
            await trio.sleep_until(self.epoch + when)
            await wait_all_tasks_blocked()

    epoch: float = 0.0

    def note(self, *what: Any) -> None:
        self.log.append(" ".join(map(str, what)))

    def draw_start(self, name: str) -> tuple[Spec, bool]:
        spec = self.draw_spec(name)
        begun = self.model.spawn(spec)
        self.model.settle()
        return spec, begun

    def draw_spec(self, name: str) -> Spec:
        rng: Any = self.rng
        restart = rng.choice(("permanent", "transient", "transient", "temporary"))
        if name.startswith("s"):
            spec = Spec(name, restart, naive=rng.random() < 0.5)
            where = name
        else:
            restarts = ("permanent", "transient", "transient", "temporary")
            kids = tuple(Spec(f"m{place}", rng.choice(restarts), naive=rng.random() < 0.5) for place in range(3))
            if rng.random() < 0.3:
                deep = Spec("deep", rng.choice(restarts), rng.choice(("one_for_one", "one_for_all")), kids[1:], 1)
                kids = (kids[0], deep, Spec("m3"))
            strategy = rng.choice(("one_for_one", "one_for_all", "rest_for_one"))
            spec = Spec(name, "temporary", "one_for_one", (Spec("in", restart, strategy, kids, 3),), 10**6)
            where = f"{name}/in/{rng.choice(('m0', 'm1', 'deep/m1'))}"
        if rng.random() < 0.1:
            self.bad(self.model.bad_starts, self.world.bad_starts, where, 1)
        self.note("start", spec)
        return spec

    def bad(self, mine: Counter[str], worlds: Counter[str], where: str, times: int) -> None:
        mine[where] = worlds[where] = times
        self.note("bad", "start" if mine is self.model.bad_starts else "stop", where, times)

    def draw_order(self, top: Node) -> Any:
        """An order for a tree whose outcome does not depend on who is faster; the model has carried it out."""
        rng, nodes = self.rng, [node for node in top.walk() if node.up]
        node = rng.choice(nodes)
        if node.spec.strategy and rng.random() < 0.8:
            node = rng.choice([each for each in nodes if not each.spec.strategy] or nodes)
        if node.spec.strategy or rng.random() < 0.12:
            return self.order_stop(top, node)
        if rng.random() < 0.1:
            return self.order_fault(top, node)
        if node.doing is not None and node.doing.act == "block" and rng.random() < 0.4:
            self.note("release", node.address)
            self.model.answer(node.doing, "ok")
            node.doing = None
            self.model.settle()
            return (self.release, node.address)
        asks = [n for n, (mail, _scope) in self.pending.items() if n.startswith(f"{top.spec.name}.")]
        if asks and rng.random() < 0.15:
            mail, scope = self.pending.pop(rng.choice(asks))
            self.note("give up", mail.n)
            mail.gone = True
            return (self.cancel, scope)
        return self.order_burst(top, node)

    def order_stop(self, top: Node, node: Node) -> tuple[Any, ...]:
        mode = self.rng.choice(("now", "now", "drain", "kill"))
        self.note("stop", node.address, mode)
        self.model.stop(node, mode)
        self.model.settle()
        return (self.stop, node.address, mode)

    def order_fault(self, top: Node, node: Node) -> tuple[Any, ...]:
        if self.rng.random() < 0.5:
            self.bad(self.model.bad_stops, self.world.bad_stops, node.address, 1)
        elif not self.grouped(top) or not any(each.mail or (each.kids and not each.spec.strategy) for each in top.walk()):
            self.bad(self.model.bad_starts, self.world.bad_starts, node.address, self.rng.choice((1, 1, 2, 4)))
        return (trio.lowlevel.checkpoint,)

    def grouped(self, top: Node) -> bool:
        return bool(top.spec.strategy)

    def order_burst(self, top: Node, node: Node) -> tuple[Any, ...]:
        """Asks first; from the first message that may end something on, tells only, which are sent at one stroke."""
        rng = self.rng
        fatal = self.grouped(top) and any(mail.act in FATAL for each in top.walk() for mail in each.mail)
        shaky = self.grouped(top) and any(
            count for address, count in self.model.bad_starts.items() if address.startswith(f"{top.spec.name}/")
        )
        burst: list[Msg] = []
        deadly = False
        for _ in range(1 if shaky else rng.choice((1, 1, 2, 3, 5))):
            acts = (
                ["note"] * 4
                + ["reject", "odd", "block", "block", "hang"]
                + ["crash"] * 3
                + ["finish", "stop_self", "spawn", "spawn"]
            )
            act = rng.choice(acts)
            if shaky and node.doing is not None:
                break
            if act in FATAL and (fatal or (shaky and act == "spawn")):
                act = "note"
            fatal = fatal or (self.grouped(top) and act in FATAL)
            self.count += 1
            ask = not deadly and rng.random() < 0.4
            deadly = deadly or act in FATAL
            burst.append(Msg(f"{top.spec.name}.{self.count}", act, rng.choice(("k0", "k1")) if act == "spawn" else "", ask))
            if ask and deadly:
                break
        self.note("send", node.address, *(f"{mail.act}{'?' * mail.ask}:{mail.n}{mail.arg}" for mail in burst))
        for mail in burst:
            if mail.ask:
                self.model.asks[mail.n] = "pending"
        node.mail += burst
        self.model.settle()
        return (self.send, node.address, burst)

    # -------------------------------------------------------------- doing
    def ref(self, address: str) -> ActorRef:
        return self.system.ref(address)

    async def begin(self, spec: Spec, begun: bool) -> None:
        name = spec.name
        try:
            if spec.strategy:
                await self.system.start(self.tree(spec))
            else:
                await self.system.spawn(self.factory(spec), self.world, name=name, restart=spec.restart, shutdown=1)
        except StartFailed:
            assert not begun, f"{name} should have started"
            assert not any(node.address.partition("/")[0] == name for node in self.system.tree())
            return
        assert begun, f"{name} should not have started"
        for node in self.model.tops[name].walk():
            node.watched = True
            self.ref("watcher").send_nowait(Watch(node.address))

    def factory(self, spec: Spec) -> type[Puppet]:
        return Puppet if spec.naive else Hearing

    def tree(self, spec: Spec) -> Any:
        if not spec.strategy:
            return ChildSpec(self.factory(spec), self.world, name=spec.name, restart=spec.restart, shutdown=1)
        return Supervisor(
            *map(self.tree, spec.kids), name=spec.name, restart=spec.restart, strategy=spec.strategy, max_restarts=spec.most
        )

    async def send(self, address: str, burst: list[Msg]) -> None:
        ref = self.ref(address)
        for mail in burst:
            body = mail.n if mail.act == "odd" else mail
            if mail.ask:
                await self.nursery.start(self.ask, ref, mail, body)
            else:
                ref.send_nowait(body)

    async def ask(self, ref: ActorRef, mail: Msg, body: Any, task_status: Any) -> None:
        scope = trio.CancelScope()
        self.pending[mail.n] = (mail, scope)
        self.world.asks[mail.n] = "pending"
        task_status.started()
        with scope:
            try:
                self.world.asks[mail.n] = await ref.ask(body, timeout=None)
            except AskFailed as error:
                self.world.asks[mail.n] = type(error).__name__
            self.pending.pop(mail.n, None)

    async def stop(self, address: str, mode: Any) -> None:
        await self.ref(address).stop(mode)

    async def release(self, address: str) -> None:
        self.world.gates.pop(address).set()

    async def cancel(self, scope: trio.CancelScope) -> None:
        scope.cancel()

    async def wake(self) -> None:
        """The zombies go on, and find out that they are dead."""
        self.world.zombies_wake.set()
        await wait_all_tasks_blocked()
        same("fenced", Counter(self.world.fenced), Counter(self.model.zombies))
        self.model.zombies.clear()
        self.compare()

    async def wake_all(self) -> None:
        """What hangs does so past its own time, so the system cannot stop before."""
        await trio.sleep(100)
        self.world.all_wake.set()

    def over(self) -> None:
        """The system has stopped: everybody got an answer, everything is accounted for."""
        for top in list(self.model.tops.values()):
            self.model.stop(top)
        same("asks", self.world.asks, self.model.asks)
        letters = self.system.dead_letters
        new = [letter_key(letters[place]) for place in range(self.letters - letters.total, 0)]
        same("dead letters", Counter(new), Counter(self.model.dead))

    def is_free(self, envelope: Envelope) -> None:
        """By the time that a watcher is told of the end of the last life, its name is free."""
        body = envelope.body
        if isinstance(body, Ended) and not body.restarting and body.address in self.system._root.router.places:
            self.world.wrong.append(f"{body.address} was not free when its end was told")

    # -------------------------------------------------------------- comparing
    def compare(self) -> None:
        model, world = self.model, self.world
        same("asks", world.asks, model.asks)
        same("handled", world.entered, model.entered)
        same("ends heard", world.heard, model.heard)
        letters = self.system.dead_letters
        new = [letter_key(letters[place]) for place in range(self.letters - letters.total, 0)]
        same("dead letters", Counter(new), Counter(model.dead))
        tree = self.system.tree()
        same("zombies", Counter(tree.zombies), Counter(model.zombies))
        nodes = {node.address: (str(node.status), node.generation, node.unread) for node in tree if node.address != "watcher"}
        same("tree", nodes, {node.address: standing(node) for top in model.tops.values() for node in top.walk()})
        assert self.system.statistics().restarts == model.restarts
        assert not world.wrong, world.wrong
        self.letters = letters.total
        model.dead.clear()
        for record in (world.entered, world.heard, model.entered, model.heard):
            record.clear()
        for n in [n for n, what in world.asks.items() if what != "pending"]:
            del world.asks[n], model.asks[n]


def same(what: str, found: Mapping[Any, Any], wanted: Mapping[Any, Any]) -> None:
    """Raise, with the differences alone, unless both say the same; an empty entry is none."""
    differ = {
        key: (found.get(key), wanted.get(key))
        for key in {**found, **wanted}
        if (found.get(key) or None) != (wanted.get(key) or None)
    }
    assert not differ, f"{what}: found and wanted differ in {differ}"


def letter_key(letter: Any) -> tuple[str, str]:
    body = letter.envelope.body
    n = body.n if isinstance(body, Msg) else body.address if isinstance(body, Ended) else body
    return n, letter.recipient


def standing(node: Node) -> tuple[str, int, int]:
    busy = node.doing is not None
    return "running" if busy else "idle", node.life, len(node.mail) + busy


# ------------------------------------------------------------------ any orders
async def example(seed: int) -> None:
    """One system under two hundred steps of orders, and its end."""
    async with trio.open_nursery() as nursery:
        async with open_system(hard_deadline=1000) as system:
            both = Both(Random(seed), system, nursery, epoch=trio.current_time())
            await system.spawn(Watcher, both.world, name="watcher")
            system._root.place("watcher").mailbox.on_accept = both.is_free
            try:
                for _ in range(STEPS):
                    await both.step()
                await both.wake()
            except Exception as error:
                error.add_note("\n".join(both.log[-30:]))
                both.world.zombies_wake.set()
                raise
            finally:
                nursery.start_soon(both.wake_all)
        both.over()


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    """A crash is logged with its traceback; a hundred thousand of them are not worth keeping."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_whatever_happens_to_a_tree_happens_to_its_model() -> None:
    """Who lives, in which life; what was handled; who gets which answer; what is a dead letter; who hears of which end."""
    until = time.monotonic() + BUDGET
    for seed in SEEDS:
        with scheduled(seed):
            trio.run(example, seed, clock=MockClock(autojump_threshold=0))
        if time.monotonic() > until:  # a busy machine: what it had time for
            break
