"""The command line's grammar, and the one place where its errors become a screen of text and an exit code."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from actors import ActorsError, ConfigError

from ._conversation import FAILED, INTERRUPTED, USAGE
from ._demo import demo
from ._dotenv import load
from ._run import run_agent
from ._sessions import add_parsers, run_sessions
from ._target import EXAMPLE, find_agent
from ._worker import add_worker, work

EPILOG = f"""examples:
  postroom demo
  postroom run {EXAMPLE} "Check the prod log."
  postroom run mypackage.agents:Researcher "..." --model openai:gpt-5.2 --json
  postroom sessions list --store sqlite:///agents.db
  postroom worker --store postgresql://localhost/agents mypackage.agents
"""
RUN = """Run an agent on a task and show its answer, its tool calls and the mail it reads as they happen.

While it runs, each line you type is mail to it, or an order to its session: /pause, /resume, /stop,
/interrupt words, /cancel call_1, /help (//x sends "/x"). Ctrl-C stops the run, and the next line says what
to do instead; Ctrl-C again stops everything in order. Settings come from the environment and from ./.env
(OPENAI_API_KEY, OPENAI_BASE_URL).
"""
CODES = "exit code: 0 answered, 1 failed, 2 wrong use, 130 interrupted, 143 terminated"
DEMO = "Show, offline and without a key, what this is about: takes some ten seconds."


def parser() -> argparse.ArgumentParser:
    """What can be typed."""
    raw = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser(
        "postroom", description="Agents you can talk to while they work.", epilog=EPILOG, formatter_class=raw
    )
    commands = top.add_subparsers(dest="command", metavar="command", required=True)
    commands.add_parser("demo", help="watch a scripted agent work, offline", description=DEMO)
    run = commands.add_parser("run", help="run an agent on a task", description=RUN, epilog=CODES, formatter_class=raw)
    run.add_argument("agent", metavar="module:Agent", help="the module, as Python imports it from here, and the class in it")
    run.add_argument("task", help="what to do, in words")
    run.add_argument("--model", metavar="provider:name", help="a model instead of the agent's own, such as openai:gpt-5.2")
    run.add_argument("--json", action="store_true", help="print events, one JSON object a line, instead of drawing them")
    run.add_argument("--verbose", action="store_true", help="show the tracebacks of what crashed, too")
    run.add_argument("--store", metavar="URL", help="where the session is kept, such as sqlite:///agents.db; else in memory")
    add_parsers(commands)
    add_worker(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    given = parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character shows another, and no traceback
    load(Path.cwd())
    try:
        return _done(given)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # who reads the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except ConfigError as error:
        return _told(error, USAGE)
    except ActorsError as error:
        return _told(error, FAILED)


def _done(given: argparse.Namespace) -> int:
    if given.command == "demo":
        return demo()
    if given.command in {"sessions", "doctor"}:
        return run_sessions(given)
    if given.command == "worker":
        return work(given)
    how = {"model": given.model, "as_json": given.json, "tracebacks": given.verbose, "store": given.store}
    return run_agent(find_agent(given.agent), given.task, **how)


def _told(error: Exception, code: int) -> int:
    sys.stderr.write(f"postroom: {error}\n")
    return code
