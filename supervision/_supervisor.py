"""A supervisor at work: start the children in order, then answer each end that nobody asked for with the table.

A supervisor is a life like any other: cancelling it is its stop, and its end stops its children in reverse (`_lives.py`).
A failed first start therefore needs no rollback of its own: the supervisor fails, and its end takes down what it had
started. A group restart whose start fails goes on from the child that failed, and counts once more. An end that a later
life of the child has overtaken (its group restarted meanwhile) asks for nothing.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any, NoReturn

import trio
from attrs import frozen
from trio.lowlevel import enable_ki_protection

from actors._errors import ActorsError, NotPermitted, RecipientStopped, RestartIntensityExceeded, StartFailed
from actors._exit import Exit, Failed, Finished, Stopped
from actors._life import Life
from actors._waiters import wait

from ._intensity import Window
from ._place import Place
from ._spec import ChildSpec, Supervisor
from ._strategy import Regroup, Sibling, decide

log = logging.getLogger("postroom.supervision")


@frozen
class Report:
    """One end of a child that nobody asked for."""

    place: Place
    generation: int
    exit: Exit


@frozen
class Due:
    """A restart that a backoff puts off. `left`: what else a group restart has still to start; None if it has not begun."""

    at: float
    report: Report
    left: tuple[str, ...] | None


class SupervisorPlace(Place):
    """The place of a supervisor: it takes no mail, its children do."""

    __slots__ = ("reports", "stopped", "task")

    kind = "supervisor"
    direct = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.reports: list[Report] = []
        self.stopped: set[str] = set()  # children that somebody stopped: they stay so for this life
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
    place.stopped.clear()
    for child in spec.children:
        seat = await _seated(lives, place, child)
        if seat is not None:
            await lives.start(seat)
    lives.on_ready(life)
    return await _Desk(lives, place, spec).attend()


async def _seated(lives: Any, place: SupervisorPlace, child: ChildSpec | Supervisor) -> Place | None:
    """The place of a child that starts now; None for a session that was stopped for good."""
    path = f"{place.address}/{child.name}"
    try:
        return await lives.runtime.take_seat(child, place)  # type: ignore[no-any-return]
    except RecipientStopped:
        log.warning("%s was stopped for good and is passed over", path, extra={"address": path})
        place.stopped.add(child.name)
        return None
    except ActorsError as error:
        raise error if isinstance(error, StartFailed) else StartFailed(path=path, error=error) from error


class _Desk:
    """The supervisor's loop and its budgets; a new life of the supervisor has a new one."""

    def __init__(self, lives: Any, place: SupervisorPlace, spec: Supervisor) -> None:
        self.lives = lives
        self.place = place
        self.spec = spec
        self.succession = lives.runtime.succession
        self.windows: dict[str, Window] = {}
        self.due: dict[str, Due] = {}

    async def attend(self) -> Exit:
        """Take ends one by one, in the order they came, and delayed restarts as they fall due."""
        while True:
            next_one = await self._next()
            report = next_one.report if isinstance(next_one, Due) else next_one
            child, name = report.place, report.place.spec.name
            if self._child(name) is not child or child.generation != report.generation or child.life is not None:
                continue
            if isinstance(next_one, Due) and next_one.left is not None:
                await self._start(next_one.left)
                continue
            action = decide(self.spec.strategy, self._siblings(), name, report.exit)
            if not isinstance(action, Regroup):
                self.succession.log_crash(child, "it is not restarted")
                self.succession.finish(child, report.exit)
                if self._shuts_down(child):
                    return Finished(None)
            elif isinstance(next_one, Due) or self._granted(report, None):
                await self._restart(action)

    def _child(self, name: str) -> Place | None:
        return (self.place.children or {}).get(name)

    def _siblings(self) -> list[Sibling]:
        seats = [(each, self._child(each.name)) for each in self.spec.children]
        return [
            Sibling(each.name, each.restart, seat is not None and seat.alive, each.name in self.place.stopped)
            for each, seat in seats
        ]

    async def _next(self) -> Report | Due:
        while not self.place.reports:
            first = min(self.due.values(), key=lambda due: due.at, default=None)
            if first is not None and first.at <= trio.current_time():
                return self.due.pop(first.report.place.spec.name)
            self.place.task = partial(trio.lowlevel.reschedule, trio.lowlevel.current_task())
            with trio.move_on_at(inf if first is None else first.at):
                await wait(self._leave)
        return self.place.reports.pop(0)

    def _leave(self) -> None:
        self.place.task = None

    # -------------------------------------------------------------- restarting
    def _granted(self, report: Report, left: tuple[str, ...] | None) -> bool:
        """Count one restart: True if it may be now, False if a backoff puts it off. One too many escalates."""
        child, spec = report.place, self.spec
        backoff = child.spec.backoff
        if backoff is None:
            window = self.windows.setdefault(
                child.spec.name if spec.budget == "child" else "", Window(spec.max_restarts, spec.within)
            )
            if not window.allows(trio.current_time()):
                self._escalate(report, spec.max_restarts, spec.within)
            nth = f"restart {len(window.times)} of at most {spec.max_restarts} within {spec.within:g} s"
            self.succession.log_crash(child, nth)
            return True
        delay = child.next_attempt(backoff, trio.current_time(), self.lives.runtime.random.uniform(-1, 1))
        if delay is None:
            self._escalate(report, backoff.max_attempts, inf)
        self.succession.log_crash(child, f"restart {child.attempts} of at most {backoff.max_attempts} in {delay:.3g} s")
        self.succession.announce(child)
        self.due[child.spec.name] = Due(trio.current_time() + delay, report, left)
        return False

    def _escalate(self, report: Report, restarts: int, within: float) -> NoReturn:
        child, exit = report.place, report.exit
        self.succession.log_crash(child, f"no more than {restarts} restarts: {self.place.address} has failed")
        self.succession.finish(child, exit)
        raise RestartIntensityExceeded(
            address=self.place.address, child=child.address, restarts=restarts, within=within,
            error=exit.error if isinstance(exit, Failed) else None,
        )  # fmt: skip

    async def _restart(self, action: Regroup) -> None:
        for name in action.stop:
            sibling = self._child(name)
            if sibling is not None and name in action.start:
                await self.lives.halt(sibling, "its group restarts")
            elif sibling is not None:
                self.lives.request_stop(sibling, "now", "its group restarts")
                await sibling.wait()
        await self._start(action.start)

    async def _start(self, names: Sequence[str]) -> None:
        """Start these in order, those left out that somebody stopped meanwhile; go on from one that fails."""
        left = list(names)
        for name in names:
            self.due.pop(name, None)
        while left:
            spec = next(each for each in self.spec.children if each.name == left[0])
            if spec.name not in self.place.stopped:
                seat = self._child(spec.name) or await _seated(self.lives, self.place, spec)
                failed = None if seat is None else await self._begin(seat)
                if failed is not None and spec.name not in self.place.stopped:
                    if self._granted(failed, tuple(left)):
                        continue
                    return
            left.pop(0)

    async def _begin(self, seat: Place) -> Report | None:
        """Begin its next life and wait until it is ready; how it ended, if it never was."""
        seat.ready = trio.Event()
        seat.started = False
        self.lives.begin(seat)
        await seat.ready.wait()
        if seat.started:
            return None
        for report in self.place.reports:
            if report.place is seat and report.generation == seat.generation:
                self.place.reports.remove(report)
                return report
        return Report(seat, seat.generation, seat.exit or Stopped())

    # -------------------------------------------------------------- ending by itself
    def _shuts_down(self, ended: Place) -> bool:
        if self.spec.auto_shutdown == "never" or not ended.spec.significant:
            return False
        if self.spec.auto_shutdown == "any":
            return True
        asleep = self.lives.runtime.router.asleep
        names = (each.name for each in self.spec.children if each.significant)
        return not any(self._child(name) is not None or f"{self.place.address}/{name}" in asleep for name in names)


@enable_ki_protection
def report(supervisor: SupervisorPlace, end: Report) -> None:
    """Tell a supervisor that a child's life ended."""
    supervisor.reports.append(end)
    wake, supervisor.task = supervisor.task, None
    if wake is not None:
        wake()
