"""What is wrong with a value, told so that a model, a person or a log can act on it: every problem, each with its path.

Whoever reads one element or field reports what is wrong with it from there; whoever holds it puts its own step in
front (`level` becomes `[2].level` becomes `lines[2].level`).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from attrs import frozen

Hook = Callable[[Any, Any], Any]
Path = tuple[str | int, ...]
MISSING, UNKNOWN = "missing", "unknown"
SHOWN = 60  # characters of a value that a problem quotes


@frozen
class Problem:
    """One thing that is wrong: where, and what (`missing`, `unknown`, or a sentence)."""

    path: Path
    text: str

    def under(self, step: str | int) -> "Problem":
        """The same problem, seen from one level further out."""
        return Problem((step, *self.path), self.text)

    @property
    def sentence(self) -> str:
        """For a person or a model to read."""
        where = f"`{worded(self.path)}`"
        if self.text in {MISSING, UNKNOWN}:
            return f"{self.text} {where}"
        return f"{where}: {self.text}" if self.path else self.text


class MisfitError(ValueError):
    """A value does not fit its type. Holds every problem found."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "; ".join(problem.sentence for problem in self.problems)


def worded(path: Iterable[str | int]) -> str:
    """A path as it is written: `lines[2].level`, `names["a b"]`."""
    text = ""
    for step in path:
        text += f".{step}" if isinstance(step, str) and step.isidentifier() else f"[{_quoted(step)}]"
    return text.removeprefix(".")


def shown(value: object) -> str:
    """What was found, as a model knows it: `str "x"`, `int 3`, `null`, `object {"a":1}`."""
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return f"object {_quoted(value)}"
    return f"{type(value).__name__} {_quoted(value)}"


def _quoted(value: object) -> str:
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        text = ascii(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def mismatch(expected: str, value: object) -> MisfitError:
    """The refusal of a value that is something else than expected."""
    return MisfitError(Problem((), f"expected {expected}, got {shown(value)}"))


def problems(error: Exception) -> tuple[Problem, ...]:
    """What an exception says is wrong: ours, pydantic's, or that of a class that checks its own values."""
    if isinstance(error, MisfitError):
        return error.problems
    told = getattr(error, "errors", None)
    if callable(told) and hasattr(error, "error_count"):
        return tuple(_pydantic_problem(each) for each in told(include_url=False))
    return (Problem((), str(error) or type(error).__name__),)


def _pydantic_problem(told: Mapping[str, Any]) -> Problem:
    bare = {"missing": MISSING, "extra_forbidden": UNKNOWN}.get(told["type"])
    return Problem(tuple(told["loc"]), bare or f"{told['msg']}, got {shown(told['input'])}")


def attempt(hook: Hook, value: object, tp: Any, step: str | int | None, found: list[Problem]) -> Any:
    """The hook's result; or, where it raises, None, and its problems are added to those found, under the step."""
    try:
        return hook(value, tp)
    except Exception as error:  # noqa: BLE001  # a user's class may raise anything while it is made
        found.extend(problem if step is None else problem.under(step) for problem in problems(error))
        return None
