"""One round of one contestant: `python -m benchmarks._child scenario contestant n` prints one line of JSON.

The only place that loads a peer, and it loads that one alone.
"""

import importlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable

import trio

from ._harness import pin
from ._measure import Measured


def contestant(scenario: str, key: str) -> Callable[[int], Measured]:
    """The function that measures: in the scenario's own file, or in the peer's."""
    place, _, variant = key.partition(".")
    if importlib.util.find_spec(f"benchmarks.peers.{place}") is not None:
        function = getattr(importlib.import_module(f"benchmarks.peers.{place}"), variant or scenario)
    else:
        function = getattr(importlib.import_module(f"benchmarks.{scenario}"), key)
    if inspect.iscoroutinefunction(function):
        return lambda n: trio.run(function, n)
    return function  # type: ignore[no-any-return]  # found by name


def main(scenario: str, key: str, n: int) -> None:
    """Measure and tell."""
    pin()
    measured = contestant(scenario, key)(n)
    print(json.dumps({"done": measured.done, "intended": n, "figures": dict(measured.figures), "busy": measured.busy}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
