"""Are the promises kept? Pure: figures in, verdicts out.

Rounds are interleaved, so round k of two rows ran side by side, in the same weather. A ratio is taken round by round,
and the median of those is judged: a machine that was slow for a second slows both sides of one ratio.
"""

from collections.abc import Mapping, Sequence
from math import inf
from statistics import median

from attrs import frozen

from ._scenario import AtLeast, AtMost, Budget, Unit

Samples = Mapping[str, Sequence[float]]  # a row's title → its figure in every round


@frozen
class Verdict:
    """What became of one promise. `passed` is None where it could not be judged; `found` says what there was instead."""

    promise: str
    found: str
    value: float | None
    passed: bool | None

    @property
    def word(self) -> str:
        """`pass`, `FAIL` or `not judged`."""
        return {True: "pass", False: "FAIL", None: "not judged"}[self.passed]


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """`above / below`, round by round; of unequal lengths, as far as both go."""
    return [a / b if b else inf for a, b in zip(above, below, strict=False)]


def promise(budget: Budget, unit: Unit) -> str:
    """The budget in words."""
    match budget:
        case AtLeast(times, than, row):
            return f"{row}: at least {times:g} x as fast as {than}"
        case AtMost(limit, None, row):
            return f"{row}: at most {limit:g} {unit}"
        case AtMost(limit, of, row):
            return f"{row}: at most {limit:g} x the cost of {of}"


def judge(budget: Budget, samples: Samples, unit: Unit) -> Verdict:
    """One budget against the rows of one run."""
    words = promise(budget, unit)
    wanted = [budget.row, budget.than if isinstance(budget, AtLeast) else budget.of]
    if absent := [title for title in wanted if title is not None and not samples.get(title)]:
        return Verdict(words, f"no row for {' and '.join(absent)}", None, None)
    match budget:
        case AtLeast(times, than, row):
            values = ratios(samples[than], samples[row])
            value, suffix, kept = median(values), " x", median(values) >= times
        case AtMost(limit, None, row):
            values = list(samples[row])
            value, suffix, kept = median(values), f" {unit}", median(values) <= limit
        case AtMost(limit, of, row):
            values = ratios(samples[row], samples[of or ""])
            value, suffix, kept = median(values), " x", median(values) <= limit
    return Verdict(words, f"{value:.2f}{suffix} ({min(values):.2f} … {max(values):.2f})", value, kept)
