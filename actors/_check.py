"""Settings are held against what they may be where they are written: whose it is, what was found, what to write.

What is right costs little: a spawn checks a dozen of them. Texts are put together for what is wrong.
"""

from collections.abc import Collection
from math import isnan
from typing import Any

from ._errors import ConfigError

NUMBERS = (int, float)


def wrong(whose: str, found: str, write: str) -> ConfigError:
    """What is raised: whose setting it is, what was found, what to write."""
    return ConfigError(f"{whose}: found {found}; write {write}")


def require(holds: bool, whose: str, found: str, write: str) -> None:
    """ConfigError unless it holds."""
    if not holds:
        raise wrong(whose, found, write)


def check_whole(whose: str, setting: str, value: object, least: int) -> None:
    """ConfigError unless it is a whole number of at least so many."""
    holds = isinstance(value, int) and not isinstance(value, bool) and value >= least
    if not holds:
        raise wrong(whose, f"{setting}={value!r}", f"a whole number, {least} or more")


def check_number(whose: str, setting: str, value: object, least: float, *, above: bool = False, unit: str = "a number") -> None:
    """ConfigError unless it is a number of at least (`above`: more than) so much."""
    holds = isinstance(value, NUMBERS) and not isinstance(value, bool) and not isnan(value)
    holds = holds and (value > least if above else value >= least)  # type: ignore[operator]
    if not holds:
        raise wrong(whose, f"{setting}={value!r}", f"{unit}, more than {least:g}" if above else f"{unit}, {least:g} or more")


def check_choice(whose: str, setting: str, value: object, choices: Collection[str]) -> None:
    """ConfigError unless it is one of these words."""
    if not isinstance(value, str) or value not in choices:
        *most, last = choices
        raise wrong(whose, f"{setting}={value!r}", f"{', '.join(most)} or {last}")


def check_type(whose: str, setting: str, value: object, kinds: Any, write: str) -> None:
    """ConfigError unless it is of these types."""
    if not isinstance(value, kinds):
        raise wrong(whose, f"{setting}{' ' if ' ' in setting else '='}{value!r}", write)
