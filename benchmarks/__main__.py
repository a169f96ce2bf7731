"""`python -m benchmarks [name …] [--peers] [--quick] [--json FILE]`."""

import importlib
import sys

from ._cli import main
from ._scenario import Scenario

NAMES = (
    "tell",
    "tell_idle",
    "fan_in",
    "ask",
    "safety",
    "spawn",
    "idle_memory",
    "restart",
    "stop_tree",
    "cascade",
    "ring",
    "skynet",
    "agent_round",
    "interrupt",
    "waiting_sessions",
    "growth",
    "provider_overhead",
    "durable_send",
    "durable_round",
    "long_session",
    "recover",
    "workers",
)


def scenarios() -> list[Scenario]:
    """All of them, in the order of the story: a message, an answer, an actor, an agent."""
    return [importlib.import_module(f"benchmarks.{name}").SCENARIO for name in NAMES]


if __name__ == "__main__":
    sys.exit(main(scenarios()))
