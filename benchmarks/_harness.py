"""Runs a scenario: every contestant in a process of its own, pinned to one CPU, round after round in turns.

A process of its own, so that no contestant inherits another's threads, imports or fragmented memory. One CPU, because
libraries built on threads swing several times over with the luck of where their threads land. In turns (ours, twin,
peer, ours, …), so that a slow minute of the machine falls on all of them. And a row is shown only if all the work that
was meant to be done was done: a fast number for lost messages is no number.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

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


def in_own_process(scenario: Scenario, contestant: Contestant, n: int) -> Round:
    """Measure one round in a fresh interpreter."""
    command = [sys.executable, "-m", "benchmarks._child", scenario.name, contestant.key, str(n)]
    try:
        child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE, check=False)
    except subprocess.TimeoutExpired:
        return Round(0, n, error=f"not done after {DEADLINE:.0f} s")
    if child.returncode:
        return Round(0, n, error=(child.stderr.strip().splitlines() or [f"exit code {child.returncode}"])[-1])
    told = json.loads(child.stdout.splitlines()[-1])
    return Round(told["done"], n, told["figures"], busy=told["busy"])


def pin() -> None:
    """Keep this process, and threads it starts from now on, to one CPU. Where the system cannot, do nothing."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


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
    *,
    peers: bool = False,
    quick: bool = False,
    measure: Measure = in_own_process,
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
