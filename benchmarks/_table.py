"""Draws a report, as plain text or as Markdown."""

from collections.abc import Sequence
from statistics import median

from ._budget import ratios
from ._harness import Report, Row

QUIET = 0.9  # of the CPU, which a contestant must have had for its figures to be taken at face value
CPUS = {"one": "one CPU", "all": "all CPUs"}
Cells = tuple[str, str, str, str]


def draw(report: Report, *, markdown: bool = False) -> str:
    """The scenario's table, its budgets below."""
    lines = _markdown(report) if markdown else _plain(report)
    return "\n".join(lines)


def head(report: Report) -> Cells:
    """The column heads."""
    return (report.scenario.name, f"{report.scenario.unit} a {report.scenario.piece}", "min … max", "against ours")


def cells(row: Row, ours: Sequence[float]) -> Cells:
    """One row: title, median, spread, and how many times ours it costs (round by round, the median)."""
    if row.refused:
        return (row.title, "—", row.refused, "")
    against = f"{median(ratios(row.samples, ours)):.2f} x" if ours else ""
    return (row.title, figure(row.median), f"{figure(min(row.samples))} … {figure(max(row.samples))}", against)


def figure(value: float) -> str:
    """Three figures that mean something."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _rows(report: Report) -> list[Cells]:
    ours = next((row.samples for row in report.rows if row.contestant.kind == "ours" and row.samples), [])
    return [cells(row, ours) for row in report.rows]


def _notes(report: Report) -> list[str]:
    rounds = max((len(row.samples) for row in report.rows), default=0)
    taken = (
        f"{report.n:,} a round, {rounds} rounds in turns, {CPUS[report.scenario.cpus]}."
        if rounds > 1
        else f"{report.n:,}, once."
    )
    busy = min((row.busy for row in report.rows), default=1.0)
    taken += f" Others took up to {1 - busy:.0%} of that CPU: read the spread." if busy < QUIET else ""
    return [f"{report.scenario.question} {taken}", *([report.scenario.absent] if report.scenario.absent else [])]


def _plain(report: Report) -> list[str]:
    table = [head(report), *_rows(report)]
    refused = {row.title for row in report.rows if row.refused}
    widths = [max(len(line[column]) for line in table if line[0] not in refused) for column in range(4)]
    widths[0] = max(len(line[0]) for line in table)
    lines = [*_notes(report), ""]
    for title, cost, spread, against in table:
        if title in refused:
            lines.append(f"  {title:<{widths[0]}}  {spread}")
        else:
            lines.append(f"  {title:<{widths[0]}}  {cost:>{widths[1]}}  {spread:>{widths[2]}}  {against:>{widths[3]}}".rstrip())
    lines += [""] if report.verdicts else []
    lines += [f"  {verdict.word:<10}  {verdict.promise}: {verdict.found}" for verdict in report.verdicts]
    return lines


def _markdown(report: Report) -> list[str]:
    titles = head(report)
    lines = [" ".join(_notes(report)), "", f"| {' | '.join(titles)} |", "| --- | ---: | ---: | ---: |"]
    lines += [f"| {' | '.join(line)} |" for line in _rows(report)]
    lines += (
        ["", *(f"- {verdict.word}: {verdict.promise}: {verdict.found}" for verdict in report.verdicts)]
        if report.verdicts
        else []
    )
    return lines
