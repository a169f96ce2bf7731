"""A supervisor at work: start the children in order, then answer each end that nobody asked for with the table.

A supervisor is a life like any other: cancelling it is its stop, and its end stops its children in reverse (`_lives.py`).
A failed first start therefore needs no rollback of its own: the supervisor fails, and its end takes down what it had
started. A group restart whose start fails goes on from the child that failed, and counts once more.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any, NoReturn

import trio
from trio.lowlevel import enable_ki_protection

from actors._errors import ActorsError, NotPermitted, RecipientStopped, RestartIntensityExceeded, StartFailed
from actors._exit import Exit, Failed, Finished
from actors._life import Life
from actors._waiters import wait

from ._intensity import Window
from ._place import Place
from ._spec import Supervisor
from ._strategy import Regroup, Sibling, decide


class SupervisorPlace(Place):
    """The place of a supervisor: it takes no mail, its children do."""

    __slots__ = ("reports", "task")

    kind = "supervisor"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.reports: list[tuple[Place, Exit]] = []
        self.task: Callable[[], None] | None = None

    async def body(self, lives: Any, life: Life) -> Exit:
        """Supervise."""
        return await supervise(lives, self, life)

    def refusal(self) -> Exception | None:
        """A supervisor handles no messages."""
        if self.exit is not None:
            return RecipientStopped(address=self.address, exit=self.exit)
        return NotPermitted(f"{self.address} is a supervisor and handles no messages; write to a child, {self.address}/name")


async def supervise(lives: Any, place: SupervisorPlace, life: Life) -> Exit:
    """Run a supervisor until it is stopped (cancelled), escalates (raises) or shuts down by itself (returns)."""
    spec = place.spec
    assert isinstance(spec, Supervisor)
    place.reports.clear()
    for child in spec.children:
        await lives.start(lives.runtime.seat(child, place))
    lives.on_ready(life)
    return await _Desk(lives, place, spec).attend()


class _Desk:
    """The supervisor's loop and its budgets; a new life of the supervisor has a new one."""

    def __init__(self, lives: Any, place: SupervisorPlace, spec: Supervisor) -> None:
        self.lives = lives
        self.place = place
        self.spec = spec
        self.windows: dict[str, Window] = {}
        self.due: dict[Place, tuple[float, Exit]] = {}  # ends whose restart a backoff puts off

    async def attend(self) -> Exit:
        """Take ends one by one, in the order they came, and delayed restarts as they fall due."""
        while True:
            child, exit = await self._next_report()
            if (self.place.children or {}).get(child.spec.name) is not child:
                continue
            action = decide(self.spec.strategy, self._siblings(), child.spec.name, exit)
            if isinstance(action, Regroup):
                await self._answer(action, child, exit)
                continue
            self.lives.runtime.succession.finish(child, exit)
            if self._shuts_down(child):
                return Finished(None)

    async def _answer(self, action: Regroup, child: Place, exit: Exit) -> None:
        """Restart now, or put it off by the child's backoff."""
        due = self.due.pop(child, None)
        backoff = child.spec.backoff
        if backoff is not None and due is None:
            runtime = self.lives.runtime
            delay = child.next_attempt(backoff, trio.current_time(), runtime.random.uniform(-1, 1))
            if delay is None:
                self._escalate(child.spec.name, exit, backoff.max_attempts, inf)
            self.due[child] = (trio.current_time() + delay, exit)
            return
        if backoff is None:
            self._spend(child.spec.name, exit)
        await self._restart(action)

    def _siblings(self) -> list[Sibling]:
        children = self.place.children or {}
        seats = [(each, children.get(each.name)) for each in self.spec.children]
        return [Sibling(each.name, each.restart, seat is not None and seat.life is not None) for each, seat in seats]

    async def _next_report(self) -> tuple[Place, Exit]:
        while not self.place.reports:
            child = min(self.due, key=lambda each: self.due[each][0], default=None)
            if child is not None and self.due[child][0] <= trio.current_time():
                return child, self.due[child][1]
            self.place.task = partial(trio.lowlevel.reschedule, trio.lowlevel.current_task())
            with trio.move_on_at(inf if child is None else self.due[child][0]):
                await wait(self._leave)
        return self.place.reports.pop(0)

    def _leave(self) -> None:
        self.place.task = None

    # -------------------------------------------------------------- restarting
    def _spend(self, child: str, exit: Exit) -> None:
        """Count one restart; escalate if it is one too many."""
        key = child if self.spec.budget == "child" else ""
        window = self.windows.setdefault(key, Window(self.spec.max_restarts, self.spec.within))
        if not window.allows(trio.current_time()):
            self._escalate(child, exit, self.spec.max_restarts, self.spec.within)

    def _escalate(self, child: str, exit: Exit, restarts: int, within: float) -> NoReturn:
        raise RestartIntensityExceeded(
            address=self.place.address, child=f"{self.place.address}/{child}", restarts=restarts, within=within,
            error=exit.error if isinstance(exit, Failed) else None,
        )  # fmt: skip

    async def _restart(self, action: Regroup) -> None:
        runtime = self.lives.runtime
        for name in action.stop:
            sibling = (self.place.children or {}).get(name)
            if sibling is not None:
                await self.lives.halt(sibling, "its group restarts")
        left = list(action.start)
        while left:
            spec = next(each for each in self.spec.children if each.name == left[0])
            seat = (self.place.children or {}).get(spec.name) or runtime.seat(spec, self.place)
            try:
                await self._start_again(seat)
            except StartFailed as failed:
                self._spend(spec.name, Failed(failed.error))
                continue
            left.pop(0)
        self._drop_reports(action.start)

    async def _start_again(self, seat: Place) -> None:
        seat.ready = trio.Event()
        seat.started = False
        self.lives.begin(seat)
        await seat.ready.wait()
        if not seat.started:
            failed = next((exit for place, exit in self.place.reports if place is seat), None)
            self.place.reports[:] = [report for report in self.place.reports if report[0] is not seat]
            error = failed.error if isinstance(failed, Failed) else ActorsError("it ended before it was ready")
            raise StartFailed(path=seat.address, error=error)

    def _drop_reports(self, started: Sequence[str]) -> None:
        """A group restart answers the ends of its members that came before it: only later lives' ends count now."""
        fresh = {name: seat for name, seat in (self.place.children or {}).items() if name in started and seat.life is not None}
        self.place.reports[:] = [report for report in self.place.reports if report[0] not in fresh.values()]

    # -------------------------------------------------------------- ending by itself
    def _shuts_down(self, ended: Place) -> bool:
        if self.spec.auto_shutdown == "never" or not ended.spec.significant:
            return False
        if self.spec.auto_shutdown == "any":
            return True
        children = self.place.children or {}
        return not any(each.significant and each.name in children for each in self.spec.children)


@enable_ki_protection
def report(place: SupervisorPlace, child: Place, exit: Exit) -> None:
    """Tell a supervisor that a child's life ended."""
    place.reports.append((child, exit))
    wake, place.task = place.task, None
    if wake is not None:
        wake()
