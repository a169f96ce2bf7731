"""The collector's settings for a process that serves."""

import gc

import pytest

from supervision.terminal._collector import serving


def test_the_collector_is_as_it_was_after_serving() -> None:
    """A test, or a program that calls the command line's `main`, goes on as it was."""
    usual, frozen = gc.get_threshold(), gc.get_freeze_count()
    with serving():
        assert gc.get_threshold() != usual
        assert gc.get_freeze_count() > frozen
    assert (gc.get_threshold(), gc.get_freeze_count()) == (usual, frozen)


def test_the_collector_is_as_it_was_after_a_failure() -> None:
    """A worker whose store cannot be used says so; whoever called it keeps their settings."""
    usual = gc.get_threshold()
    with pytest.raises(OSError, match="gone"), serving():
        raise OSError("gone")
    assert gc.get_threshold() == usual
