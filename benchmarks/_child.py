"""The process that measures: `python -m benchmarks._child [cpu …]`.

Each line of its input is `scenario contestant count`, each line of its output what a round of so much work found, in
JSON. This is the only place that loads a peer, and only when asked for it.
"""

import importlib
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Callable

import trio

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


def main(*cpus: str) -> None:
    """Measure a round for each line, on these CPUs only, threads and all."""
    if cpus:
        os.sched_setaffinity(0, map(int, cpus))
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)  # what a library prints is not ours to parse
        for line in sys.stdin:
            scenario, key, n = line.split()
            measured = contestant(scenario, key)(int(n))
            told = {"done": measured.done, "intended": int(n), "figures": dict(measured.figures), "busy": measured.busy}
            print(json.dumps(told), file=out, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
