"""Runs a scenario: every contestant in a process of its own, pinned to one CPU, round after round in turns.

A process of its own, so that no contestant inherits another's threads, imports or fragmented memory. One CPU, because
libraries built on threads swing several times over with the luck of where their threads land. In turns (ours, twin,
peer, ours, …), with short rounds and processes that wait for their turn, so that what is compared ran a moment apart:
a slow second of the machine falls on all of them. And a row is shown only if all the work that was meant to be done
was done: a fast number for lost messages is no number.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Self

from attrs import Factory, define, field, frozen

from ._budget import Verdict, judge
from ._measure import COST
from ._scenario import Contestant, Scenario

ROOT = Path(__file__).resolve().parents[1]
DEADLINE = 600.0  # seconds for one round of one contestant


@frozen
class Round:
    """One round of one contestant, as its process told it. `error` says why there are no figures."""

    done: int
    intended: int
    figures: Mapping[str, float] = Factory(dict)
    error: str | None = None
    busy: float = 1.0

    @property
    def refusal(self) -> str | None:
        """Why this round must not be shown, None if it may."""
        if self.error is not None:
            return self.error
        if self.done != self.intended:
            return f"did {self.done:,} of {self.intended:,}"
        return None


Measure = Callable[[Scenario, Contestant, int], Round]


class Child:
    """A process that measures what it is told to, one round after the other, on these CPUs only (none: on any)."""

    def __init__(self, cpus: Sequence[int]) -> None:
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115  # `close` does; a file, for a pipe that nobody reads fills up
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks._child", *map(str, cpus)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, text=True,
        )  # fmt: skip

    def round(self, scenario: Scenario, contestant: Contestant, n: int) -> Round:
        """Have it do `n` pieces of work."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        clock = threading.Timer(DEADLINE, self._process.kill)
        clock.start()
        try:
            self._process.stdin.write(f"{scenario.name} {contestant.key} {n}\n")
            self._process.stdin.flush()
            told = self._process.stdout.readline()
        except BrokenPipeError:
            told = ""
        finally:
            clock.cancel()
        if not told:
            return Round(0, n, error=self._last_words())
        found = json.loads(told)
        return Round(found["done"], n, found["figures"], busy=found["busy"])

    def _last_words(self) -> str:
        code = self._process.wait()
        self._stderr.seek(0)
        said = self._stderr.read().strip().splitlines()
        return said[-1] if said else f"exit code {code}, without a word"

    def close(self) -> None:
        """End it."""
        self._process.communicate()
        self._stderr.close()


class Processes:
    """Measures every contestant in a process of its own, kept for all its rounds unless the scenario wants fresh ones.

    All are pinned to the same CPU, unless the scenario is about several. Where nothing is judged they are `shared` and run where
    there is room: one process for all scenarios of what needs no install, one for each other library.
    """

    def __init__(self, *, shared: bool = False) -> None:
        self._shared = shared
        self._cpus = [max(os.sched_getaffinity(0))] if not shared and hasattr(os, "sched_getaffinity") else []
        self._children: dict[object, Child] = {}

    def __call__(self, scenario: Scenario, contestant: Contestant, n: int) -> Round:
        key = contestant.package if self._shared and not scenario.fresh else (scenario.name, contestant)
        child = self._children.pop(key, None) or Child(self._cpus if scenario.cpus == "one" else [])
        found = child.round(scenario, contestant, n)
        if found.error or scenario.fresh:
            child.close()
        else:
            self._children[key] = child
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children.values():
            child.close()


@define
class Row:
    """A line of the table: one figure of one contestant, in every round, or why there is none."""

    title: str
    contestant: Contestant
    samples: list[float] = field(factory=list)
    refused: str | None = None
    busy: float = 1.0

    @property
    def median(self) -> float:
        return median(self.samples)


@frozen
class Report:
    """All that one scenario found."""

    scenario: Scenario
    n: int
    rows: Sequence[Row]
    verdicts: Sequence[Verdict]

    @property
    def broken(self) -> bool:
        """A contestant that is here did not do its work."""
        return any(row.refused and not row.contestant.missing for row in self.rows)

    @property
    def over_budget(self) -> bool:
        return any(verdict.passed is False for verdict in self.verdicts)

    def to_json(self) -> dict[str, Any]:
        """Everything, for machines."""
        return {
            "scenario": self.scenario.name,
            "n": self.n,
            "unit": self.scenario.unit,
            "rows": [
                {"title": row.title, "samples": row.samples, "refused": row.refused, "busy": row.busy} for row in self.rows
            ],
            "budgets": [{"promise": v.promise, "value": v.value, "found": v.found, "passed": v.passed} for v in self.verdicts],
        }


def run(
    scenario: Scenario,
    measure: Measure,
    *,
    peers: bool = False,
    quick: bool = False,
    progress: Callable[[str], object] = str,
) -> Report:
    """Run one scenario. Budgets are judged on full runs only: a quick one shows that it works, not how fast."""
    n, rounds = (scenario.quick, 1) if quick else (scenario.n, scenario.rounds)
    taking_part = [contestant for contestant in scenario.contestants if peers or contestant.kind != "peer"]
    rounds_of: dict[Contestant, list[Round]] = {contestant: [] for contestant in taking_part}
    for number in range(rounds):
        for contestant, found in rounds_of.items():
            if contestant.missing or any(earlier.refusal for earlier in found):
                continue
            progress(f"{scenario.name} {number + 1}/{rounds} {contestant.title}")
            found.append(measure(scenario, contestant, max(1, round(n * contestant.share))))
    rows = [row for contestant, found in rounds_of.items() for row in rows_of(contestant, found)]
    samples = {row.title: row.samples for row in rows}
    verdicts = [] if quick else [judge(budget, samples, scenario.unit) for budget in scenario.budgets]
    return Report(scenario, n, rows, verdicts)


def rows_of(contestant: Contestant, found: Sequence[Round]) -> list[Row]:
    """The rows of one contestant: one for each figure, or a single one that says why it is refused."""
    if contestant.missing:
        return [Row(contestant.title, contestant, refused=f"not installed: {contestant.missing}")]
    for number, one in enumerate(found):
        if one.refusal:
            return [Row(contestant.title, contestant, refused=f"no row: {one.refusal} (round {number + 1})")]
    busy = min((one.busy for one in found), default=1.0)
    return [
        Row(
            contestant.title if key == COST else f"{contestant.title}, {key}",
            contestant,
            [one.figures[key] for one in found],
            busy=busy,
        )
        for key in (found[0].figures if found else ())
    ]
