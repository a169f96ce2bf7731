"""A contestant's process: `python -m benchmarks._child scenario contestant`.

Each line of its input is a count, each line of its output what a round of so much work found, in JSON. This is the only
place that loads a peer, and it loads that one alone.
"""

import importlib
import importlib.util
import inspect
import json
import os
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


def main(scenario: str, key: str) -> None:
    """Measure a round for each line."""
    pin()
    measure = contestant(scenario, key)
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)  # what a library prints is not ours to parse
        for line in sys.stdin:
            measured = measure(n := int(line))
            told = {"done": measured.done, "intended": n, "figures": dict(measured.figures), "busy": measured.busy}
            print(json.dumps(told), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
