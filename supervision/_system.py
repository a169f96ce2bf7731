"""A system: the root of everything that runs, and the block it lives in."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from math import inf
from types import TracebackType
from typing import Any, NoReturn

import outcome
import trio
from trio.lowlevel import enable_ki_protection

from actors._check import check_number, check_type, check_whole
from actors._envelope import Receipt
from actors._errors import ConfigError, NotPermitted, leaves
from actors._identity import current, host
from actors._life import Life
from actors._limits import Limits
from actors._outcome import Outcome
from actors._ref import ActorRef, here
from actors.agent._agent import Agent
from actors.events import AnyEvent
from actors.models._api import Price
from actors.models._gate import ProviderLimits, Providers
from actors.store._api import SessionSummary, Store
from actors.store._copy import read
from actors.store._resolve import resolve_store
from actors.tools._worker import importing_main

from ._dead import DeadLetters
from ._held import LoopWatch
from ._portal import Portal
from ._report import report
from ._root import Root
from ._session_ref import SessionRef
from ._spec import Backoff, ChildSpec, Factory, Restart, Supervisor, check_actor, check_budget, check_owner
from ._stream import Events
from ._tree import SystemStatistics, Tree, idle, snapshot, statistics, tells
from ._words import as_answer


class System:
    """Spawns actors, opens sessions, starts trees; and shows what runs. Made by `open_system` and `run`."""

    def __init__(self, root: Root) -> None:
        self._root = root

    # -------------------------------------------------------------- actors and trees
    async def spawn(
        self,
        factory: Factory,
        *args: Any,
        name: str | None = None,
        restart: Restart = "transient",
        shutdown: float = 5.0,
        init_timeout: float = 10.0,
        limits: Limits | None = None,
        backoff: Backoff | None = None,
        max_restarts: int = 3,
        within: float = 5.0,
        max_deliveries: int = 1,
    ) -> ActorRef:
        """Start an actor and wait until it is ready.

        It is restarted by its own budget, `max_restarts` `within` seconds; past it the actor ends `Failed`, and nothing else
        does. Cancelled, the actor was stopped before `Cancelled` leaves.

        Raises:
            StartFailed: Its factory or `on_start` raised, or it was not ready within `init_timeout` seconds.
            ConfigError: The name is taken or malformed, or the factory cannot be called afresh.
        """
        self._root.admit_new()
        name = self._root.new_name() if name is None else name
        check_actor(name, factory)
        spec = ChildSpec(
            factory, *args, name=name, restart=restart, shutdown=shutdown, init_timeout=init_timeout,
            limits=limits, backoff=backoff, max_deliveries=max_deliveries,
        )  # fmt: skip
        check_budget(spec.name, max_restarts, within)
        place = self._root.seat(spec, None)
        place.budget = (max_restarts, within)
        await self._root.lives.start(place)
        return self._root.ref(place.address)

    async def start(self, tree: Supervisor | ChildSpec) -> ActorRef:
        """Start a tree: its children in order, each ready before the next. Its failure for good is the system's.

        A failed first start stops what had started, in reverse, and is raised as `StartFailed`.
        """
        self._root.admit_new()
        place = await self._root.take_seat(tree, None)
        place.escalates = True
        self._root.trees.append(place)
        await self._root.lives.start(place)
        return self._root.ref(place.address)

    # -------------------------------------------------------------- sessions
    async def open(
        self,
        agent: type[Agent],
        *,
        session: str | None = None,
        owner: str | None = None,
        parent: SessionRef | str | None = None,
        **options: Any,
    ) -> SessionRef:
        """Open a session: a new one, the stored one, or, under the id of one that is live, that one.

        Options that have JSON are kept with the session, and hold when it comes to life by itself, in any process: models by name,
        instructions as a text, `model_options`, `toolbox`, `limits`, `max_rounds` and the switches. What has none (a model as an object,
        a function, `tools`, `compact`, `inbox`, `deps`) holds in this process; elsewhere, and after it, the class's does. Opening a
        stored session again with options that are kept replaces those it had; without, they hold. The options of whoever
        opened a live session first hold.

        Args:
            agent: Its class.
            session: Its id, which is its address; a short one is made if none is given.
            owner: The person it works for.
            parent: The session that it was opened by.
            options: Any class attribute of the agent, for this session (`model=`, `deps=`, ...).

        Raises:
            ConfigError: The agent cannot run as it is (no model, a bad tool, ...), or the session is another agent's.
            TypeError: An unknown option.
        """
        self._root.check_here()
        above = here(parent, self._root) if isinstance(parent, ActorRef) else parent
        check_type("open", "parent", above, str | None, "a session's ref or id, or None")
        return await self._root.open(agent, session, owner, above, options)

    async def sessions(self) -> Sequence[SessionSummary]:
        """Every session that the store keeps, in the order in which they were created; those that nobody here can run too."""
        found = await self._root.store.sessions()
        for each in found if self._root.store.durable else ():
            self._root.router.saw(each.id, each.status)
        return found

    async def import_session(self, text: str, *, session: str | None = None) -> SessionRef:
        """Open a copy of a session that `SessionRef.export` wrote, under a new id.

        Raises `CodecError` if the text is none, `ConfigError` if its agent's class is not registered here or somebody has the id.
        """
        copy = read(text)
        return await self._root.open(self._root.waking.known(copy.agent), session, copy.owner, None, {}, copy)

    def session(self, id: str) -> SessionRef:
        """The ref of a session. Making one never fails; using it does."""
        return SessionRef(id, self._root)

    def ref(self, address: str) -> ActorRef:
        """The ref of an address, whether or not anybody has it. Making one never fails; sending does."""
        return self._root.ref(address)

    async def complete(self, token: str, outcome: Outcome) -> Receipt:
        """Answer the call whose tool returned `Outcome.deferred`, by its `ToolContext.continuation`; for whoever has that token.

        From any process on the store, whether or not the session is in memory anywhere. The outcome is the call's, and the mail that
        tells it to the model (`ContinuationResult`, of kind `tool`) is accepted, both when it returns: whatever dies then, it is told,
        once. A token is answered once: the same outcome again is the first receipt, marked as a duplicate. Cancelled, it may have been
        kept: complete it again.

        Raises:
            UnknownToken: No deferred call in this store has this token; the tool may not have returned yet.
            AlreadyCompleted: The call has ended otherwise: it was cancelled, its run stopped, its session stopped or deleted.
            IdConflict: It was answered before, with another outcome.
            ConfigError: The outcome is no end (`deferred`). TypeError: It is none. CodecError: Its value has no JSON.
            StoreError: The store could not. Whatever is raised, nothing was kept.
        """
        self._root.check_here()
        return await self._root.store.complete(token, as_answer(token, outcome))

    # -------------------------------------------------------------- looking and reaching in
    @property
    def dead_letters(self) -> DeadLetters:
        """Accepted mail that nobody will handle."""
        return self._root.dead_letters

    def portal(self, owner: str | None = None) -> Portal:
        """A way in for foreign threads, which speaks for one person.

        Raises `NotPermitted` inside an actor or a tool: what a model can reach must not speak for people.
        """
        voice = current.get()
        if isinstance(voice, Life):
            raise NotPermitted(
                f"{voice.address} cannot make a portal, which speaks for people; make it where the system was opened"
            )
        check_owner("a portal", owner)
        return Portal(self, self._root, owner)

    def tree(self) -> Tree:
        """The tree as it stands now; `print` draws it."""
        return snapshot(self._root)

    def events(self, since: int | None = None) -> AbstractAsyncContextManager[Events]:
        """Follow everything that happens, after event `since` or from now on, until the system stops."""
        self._root.check_here()
        return aclosing(self._root.hub.follow(since, lambda _event: True, lambda _event: False))

    def statistics(self) -> SystemStatistics:
        """What there is now, and what has happened since it opened, in numbers."""
        return statistics(self._root)

    def report(self) -> str:
        """The tree, who waits for whom, and the stack of every task: for a person who asks what hangs."""
        return report(self._root)

    def on_hung(self, callback: Callable[[str], None]) -> None:
        """Call `callback` with a `report` when the stop of this system takes longer than its hard deadline; by default it is logged."""
        self._root.on_hung = callback

    def listen(self, callback: Callable[[AnyEvent], object]) -> None:
        """Call `callback` with each event from now on, in the trio thread; it must not block, and what it raises is ignored."""
        self._root.hub.callbacks.append(callback)

    async def wait_idle(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  # the contract's
        """Wait until no actor handles or has unread mail, and no session runs. Raises `TimeoutError` after `timeout` seconds."""
        self._root.check_here()
        await trio.lowlevel.checkpoint_if_cancelled()
        with trio.move_on_after(inf if timeout is None else timeout):
            while not idle(self._root):
                with trio.move_on_after(inf if tells(self._root) else 0.005):
                    await self._root.hub.arrival()
        if idle(self._root):
            await trio.lowlevel.cancel_shielded_checkpoint()
            return
        raise TimeoutError(f"the system was not idle within {timeout:g} s" if timeout is not None else "")


class _Opening(AbstractAsyncContextManager[System]):
    """The block of `open_system`. A class, not a generator: the body's own exception has to leave unchanged."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._manager = trio.open_nursery()
        self._clock = trio.CancelScope(shield=True)
        self._clock_of_rest = trio.CancelScope(shield=True)
        self._watch = LoopWatch()

    @enable_ki_protection
    async def __aenter__(self) -> System:
        root = self._root
        await root.store.open()
        root.token = trio.lowlevel.current_trio_token()
        self._before = current.set(host(root))
        root.nursery = await self._manager.__aenter__()
        root.nursery.start_soon(self._run_clock, name=f"{root.name} (deadlines)")
        root.body_scope.__enter__()
        self._watch.start()
        if root.store.durable:
            await root.waking.begin()
            root.nursery.start_soon(self._tend, name=f"{root.name} (stored sessions)")
        return System(root)

    @enable_ki_protection
    async def _run_clock(self) -> None:
        with self._clock:
            await self._root.deadlines.run()

    async def _tend(self) -> None:
        with self._clock_of_rest:
            await self._root.resting.tend()

    @enable_ki_protection
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        root = self._root
        left = outcome.capture(root.body_scope.__exit__, kind, error, trace)  # raises what it leaves of a group
        rest = left.error if isinstance(left, outcome.Error) else None if left.value else error
        interrupts = await self._stop()
        self._watch.stop()
        self._clock.cancel()
        self._clock_of_rest.cancel()
        root.hub.close()
        root.over = True
        try:
            await self._manager.__aexit__(None, None, None)
        finally:
            await root.store.close()
        current.reset(self._before)
        raised = _all_told(rest, [*root.escalated, *interrupts])
        if raised == [error]:
            return False
        if len(raised) == 1:
            _raise_bare(raised[0])
        if raised:
            what = (
                "several parts of the system failed" if rest is None else "the body of open_system failed, and so did the tree"
            )
            raise BaseExceptionGroup(what, raised) from None
        return True

    async def _stop(self) -> list[BaseException]:
        """The ordered stop; a Ctrl-C during it cancels every life at once."""
        interrupts: list[BaseException] = []
        while True:
            try:
                with trio.CancelScope(shield=True):
                    await self._root.stop_everything()
            except KeyboardInterrupt as interrupt:
                interrupts.append(interrupt)
                self._root.cancel_everything()
            else:
                return interrupts[:1]


def _all_told(body: BaseException | None, others: Sequence[BaseException]) -> list[BaseException]:
    """The body's error and the tree's, each once: one Ctrl-C stands for all, and a cancelled body for nothing where the tree failed."""
    told = [] if body is None else [body]
    for each in others:
        known = [leaf for one in told for leaf in leaves(one)]
        twice = isinstance(each, KeyboardInterrupt) and any(isinstance(leaf, KeyboardInterrupt) for leaf in known)
        if not twice and all(each is not leaf for leaf in known):
            told.append(each)
    if len(told) > 1 and all(isinstance(leaf, trio.Cancelled) for leaf in leaves(told[0])):
        del told[0]
    return told


def _raise_bare(error: BaseException) -> NoReturn:
    """Raise it with the causes it had."""
    context = error.__context__
    try:
        raise error
    finally:
        error.__context__ = context


def open_system(
    *,
    store: str | Store | None = None,
    limits: Limits | None = None,
    name: str = "system",
    hard_deadline: float = 30.0,
    agents: Sequence[type[Agent]] = (),
    deps: Mapping[type[Agent], Callable[[], Any]] | None = None,
    providers: Mapping[str, ProviderLimits] | None = None,
    prices: Mapping[str, Price] | None = None,
    idle_timeout: float = 60.0,
    max_live: int | None = None,
    retention: float | None = None,
) -> AbstractAsyncContextManager[System]:
    """Open a system for the length of the block; leaving it stops everything in order.

    What was spawned is stopped first, all at once; then the trees in reverse order of their start. The body's own exception
    leaves unchanged; a tree that failed for good cancels the body and is raised bare; both together are a group. What has not
    stopped `hard_deadline` seconds after the stop began is logged with its stacks, and waited for.

    Args:
        store: Where sessions are kept: `"sqlite:///agents.db"`, or in memory if absent. What was in progress there when a process
            ended goes on, if its class is in `agents`, or once it is opened.
        limits: For everything in it.
        name: What its tree is called.
        hard_deadline: Seconds a stop may take before what hangs is reported.
        agents: The classes whose stored sessions may come to life by themselves; `open` adds its own.
        deps: What makes the `deps` of sessions that come to life by themselves.
        providers: How often its sessions together may ask a provider, by the first part of a model's name.
        prices: What the tokens of a model cost, by its whole name; the cost is on its usage and counts for `max_cost`.
        idle_timeout: Seconds after which a stored session that rests leaves memory; mail brings it back.
        max_live: Stored sessions in memory at most; those that rest longest leave for others, and others wait.
        retention: Seconds after which a store forgets mail that was read and that no transcript tells; by default it never does.

    Raises:
        ConfigError: The store's name is none, or a bound or a price is not one. Or this process is being started by another one, which wants the script's functions
            and not what the script does.
        StoreError: On entering: the store cannot be opened; the text says what to do.
    """
    if importing_main():
        raise ConfigError(
            "this script is being imported by a process that it started, to run a tool there, and must not do its work again; "
            'put what it runs below `if __name__ == "__main__":`'
        )
    check_type("open_system", "limits", limits, Limits | None, "Limits(...)")
    check_number("open_system", "hard_deadline", hard_deadline, 0, unit="seconds")
    check_number("open_system", "idle_timeout", idle_timeout, 0, unit="seconds")
    if retention is not None:
        check_number("open_system", "retention", retention, 0, unit="seconds")
    if max_live is not None:
        check_whole("open_system", "max_live", max_live, 1)
    how = {"agents": agents, "deps": deps, "idle_timeout": idle_timeout, "max_live": max_live, "retention": retention}
    shared = Providers(providers, prices)
    return _Opening(Root(name, resolve_store(store), limits, hard_deadline, providers=shared, **how))  # type: ignore[arg-type]
