"""A system: the root of everything that runs, and the block it lives in."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any

import trio
from trio.lowlevel import enable_ki_protection

from actors._identity import STRANGER, current, host
from actors._limits import Limits
from actors._ref import ActorRef

from ._dead import DeadLetters
from ._root import Root
from ._spec import ChildSpec, Factory, Restart, Supervisor


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
        backoff: Any = None,
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
        spec = ChildSpec(
            factory, *args, name=name or self._root.new_name(), restart=restart, shutdown=shutdown, init_timeout=init_timeout,
            limits=limits, backoff=backoff, max_deliveries=max_deliveries,
        )  # fmt: skip
        place = self._root.seat(spec, None)
        place.budget = (max_restarts, within)
        await self._root.lives.start(place)
        return self._root.ref(place.address)

    async def start(self, tree: Supervisor | ChildSpec) -> ActorRef:
        """Start a tree: its children in order, each ready before the next. Its failure for good is the system's.

        A failed first start stops what had started, in reverse, and is raised as `StartFailed`.
        """
        place = self._root.seat(tree, None)
        place.escalates = True
        await self._root.lives.start(place)
        self._root.trees.append(place)
        return self._root.ref(place.address)

    def ref(self, address: str) -> ActorRef:
        """The ref of an address, whether or not anybody has it. Making one never fails; sending does."""
        return self._root.ref(address)

    @property
    def dead_letters(self) -> DeadLetters:
        """Accepted mail that nobody will handle."""
        return self._root.dead_letters


class _Opening(AbstractAsyncContextManager[System]):
    """The block of `open_system`. A class, not a generator: the body's own exception has to leave unchanged."""

    def __init__(self, name: str) -> None:
        self._root = Root(name)
        self._manager = trio.open_nursery()
        self._clock = trio.CancelScope(shield=True)

    @enable_ki_protection
    async def __aenter__(self) -> System:
        root = self._root
        root.token = trio.lowlevel.current_trio_token()
        self._before = current.set(host(root))
        root.nursery = await self._manager.__aenter__()
        root.nursery.start_soon(self._run_clock, name=f"{root.name} (deadlines)")
        root.body_scope.__enter__()
        return System(root)

    async def _run_clock(self) -> None:
        with self._clock:
            await self._root.deadlines.run()

    @enable_ki_protection
    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        root = self._root
        absorbed = bool(root.body_scope.__exit__(kind, error, trace))
        interrupts = await self._stop()
        self._clock.cancel()
        root.hub.close()
        await self._manager.__aexit__(None, None, None)
        current.reset(self._before)
        raised = [*root.escalated, *interrupts]
        if not raised:
            return absorbed
        if error is not None and not absorbed:
            raised = [error, *(each for each in raised if each is not error)]
            if len(raised) == 1:
                return False
            raise BaseExceptionGroup("the body of open_system failed, and so did the tree", raised) from None
        if len(raised) == 1:
            raise raised[0] from None
        raise BaseExceptionGroup("several parts of the system failed", raised) from None

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


def open_system(*, store: Any = None, limits: Limits | None = None, name: str = "system") -> AbstractAsyncContextManager[System]:
    """Open a system for the length of the block; leaving it stops everything in order.

    What was spawned is stopped first, all at once; then the trees in reverse order of their start. The body's own exception
    leaves unchanged; a tree that failed for good cancels the body and is raised bare; both together are a group.
    """
    return _Opening(name)


_ = (Callable, Mapping, Sequence, STRANGER)
