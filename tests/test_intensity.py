"""How many restarts are too many."""

import pytest

from supervision._intensity import Window


@pytest.mark.parametrize(
    ("most", "within", "ends", "allowed"),
    [
        (3, 5, [0, 1, 2, 3], [True, True, True, False]),
        (3, 5, [0, 0, 0, 0], [True, True, True, False]),
        (0, 5, [0], [False]),
        (1, 5, [0, 5, 5.001], [True, False, True]),
        (1, 5, [0, 6, 12, 18], [True] * 4),
        (3, 5, [0, 1, 2, 5.1, 5.2], [True, True, True, True, False]),
        (2, 1, [0, 0.5, 0.9, 1.1, 1.4, 1.6], [True, True, False, True, False, True]),
    ],
    ids=["the fourth", "at once", "none", "the edge is in", "far apart", "across the window", "a refused one does not count"],
)
def test_a_sliding_window_allows_so_many(most: int, within: float, ends: list[float], allowed: list[bool]) -> None:
    """Three restarts in five seconds; the failure that would need a fourth escalates; old ones are forgotten."""
    window = Window(most, within)
    assert [window.allows(now) for now in ends] == allowed


def test_a_window_holds_no_more_than_it_must() -> None:
    """A child that fails every minute for a year weighs what it weighed."""
    window = Window(3, 5)
    assert all(window.allows(minute * 60) for minute in range(10_000))
    assert len(window.times) == 1
