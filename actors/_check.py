"""Settings are held against what they may be where they are written: whose it is, what was found, what to write."""

from collections.abc import Collection
from math import isnan
from typing import Any

from ._errors import ConfigError


def require(holds: bool, whose: str, found: str, write: str) -> None:
    """ConfigError unless it holds."""
    if not holds:
        raise ConfigError(f"{whose}: found {found}; write {write}")


def check_whole(whose: str, setting: str, value: object, least: int) -> None:
    """ConfigError unless it is a whole number of at least so many."""
    holds = isinstance(value, int) and not isinstance(value, bool) and value >= least
    require(holds, whose, f"{setting}={value!r}", f"a whole number, {least} or more")


def check_number(whose: str, setting: str, value: object, least: float, *, above: bool = False, unit: str = "a number") -> None:
    """ConfigError unless it is a number of at least (`above`: more than) so much."""
    holds = isinstance(value, int | float) and not isinstance(value, bool) and not isnan(value)
    holds = holds and (value > least if above else value >= least)  # type: ignore[operator]
    require(holds, whose, f"{setting}={value!r}", f"{unit}, more than {least:g}" if above else f"{unit}, {least:g} or more")


def check_choice(whose: str, setting: str, value: object, choices: Collection[str]) -> None:
    """ConfigError unless it is one of these words."""
    *most, last = choices
    require(isinstance(value, str) and value in choices, whose, f"{setting}={value!r}", f"{', '.join(most)} or {last}")


def check_type(whose: str, setting: str, value: object, kinds: Any, write: str) -> None:
    """ConfigError unless it is of these types."""
    require(isinstance(value, kinds), whose, f"{setting}{' ' if ' ' in setting else '='}{value!r}", write)
