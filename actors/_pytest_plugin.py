"""pytest fixtures of `actors.testing`; pytest finds them by itself. They need no other plugin, and replace no fixture of yours."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from . import testing


@pytest.fixture
def probe() -> testing.Probe:
    """A fresh `actors.testing.Probe`: `await system.spawn(probe.actor)`, then `await probe.next()`."""
    return testing.Probe()


@pytest.fixture
def gate() -> testing.Gate:
    """A fresh `actors.testing.Gate`: `await system.spawn(gate.actor)`, `await gate.entered()`, `gate.open()`."""
    return testing.Gate()


@pytest.fixture
def scheduled() -> Callable[[int], AbstractContextManager[None]]:
    """The function of that name in `actors.testing`: given a seed, it opens a block in which tasks run in an order drawn from it."""
    return testing.scheduled
