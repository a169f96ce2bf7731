"""`postroom worker`: a process that runs the sessions of a store, beside as many others as there are, on as many machines."""

import argparse
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import trio

from actors import Agent, ConfigError
from supervision._runner import run
from supervision._system import System

from ._collector import serving
from ._run import print_json, print_note
from ._screen import Notes
from ._store import add_store, store_of
from ._target import imported

WORKER = """Run the sessions of a store: whichever has mail that may wake it, and no owner. Start as many as you like, on one
machine with a SQLite file, on many with PostgreSQL; a session has one owner at a time, and what a worker that died had begun is
taken up by another.

Every Agent class in the modules is registered by its name. What their sessions work with is never stored: a module says how it is
made in `deps = {AnAgent: function}`, as open_system(deps=...) takes it. Ctrl-C or SIGTERM finishes what is being written and hands
all sessions over at once.
"""
CODES = "exit code: 2 wrong use, 1 the store cannot be used, 130 interrupted, 143 terminated"
DEPS = "deps"


def add_worker(commands: Any) -> None:
    """Its grammar."""
    raw = argparse.RawDescriptionHelpFormatter
    worker = commands.add_parser("worker", help="run stored sessions", description=WORKER, epilog=CODES, formatter_class=raw)
    worker.add_argument(
        "modules", metavar="module", nargs="+", help="a module with Agent classes, as Python imports it from here"
    )
    worker.add_argument(
        "--idle-timeout", type=float, default=60.0, metavar="SECONDS", help="a session that rests so long leaves memory (60)"
    )
    worker.add_argument("--max-live", type=int, metavar="N", help="at most so many sessions in memory")
    worker.add_argument("--retention", type=float, metavar="SECONDS", help="forget mail that was read so long ago")
    worker.add_argument("--json", action="store_true", help="print events, one JSON object a line")
    worker.add_argument("--verbose", action="store_true", help="show the tracebacks of what crashed, too")
    add_store(worker)


def work(given: argparse.Namespace) -> int:
    """Run sessions until somebody ends it: by Ctrl-C, or by SIGTERM."""
    store, modules = store_of(given), [imported(name) for name in given.modules]
    agents = [agent for module in modules for agent in _agents(module)]
    deps = {agent: make for module in modules for agent, make in _deps(module).items()}
    logging.getLogger().addHandler(Notes(print_note, tracebacks=given.verbose))

    async def hold(_system: System) -> None:
        names = ", ".join(sorted({agent.__name__ for agent in agents}))
        print_note(f"postroom: this worker runs the sessions of {names}; Ctrl-C hands them over")
        await trio.sleep_forever()

    with serving():
        run(
            hold, store=store, agents=agents, deps=deps, idle_timeout=given.idle_timeout, max_live=given.max_live,
            retention=given.retention, on_event=print_json if given.json else None,
        )  # fmt: skip
    return 0


def _agents(module: ModuleType) -> Sequence[type[Agent]]:
    """The classes in a module, its own and those it imports. ConfigError if there is none."""
    found = [each for each in vars(module).values() if inspect.isclass(each) and issubclass(each, Agent) and each is not Agent]
    if not found:
        raise ConfigError(f"the module {module.__name__} has no agent; write `class Clerk(Agent)` in it, or name another one")
    return found


def _deps(module: ModuleType) -> Mapping[type[Agent], Callable[[], Any]]:
    found = getattr(module, DEPS, {})
    if not isinstance(found, Mapping) or not all(callable(make) for make in found.values()):
        raise ConfigError(
            f"{module.__name__}.{DEPS} is {found!r}; a worker takes from there how the deps of woken sessions are made: write "
            f"{DEPS} = {{AnAgent: function}}, or give it another name"
        )
    return found
