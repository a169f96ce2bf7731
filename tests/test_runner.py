"""`run`: a whole program in one call. Signals: real ones, to real processes."""

import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from subprocess import PIPE, STDOUT
from typing import Any

import pytest
import trio
from cast import Boom, Done, Worker
from command import Running

from actors import Actor, ConfigError, Finished, RestartIntensityExceeded, events
from supervision import ChildSpec, Supervisor, System, run


# ------------------------------------------------------------------ targets
def test_an_async_function_is_called_with_the_system_and_its_value_returned() -> None:
    """The options are the system's."""

    async def main(system: System) -> str:
        return system.tree().name

    assert run(main, name="mine") == "mine"


def test_the_functions_error_is_raised_as_it_is() -> None:
    """No group, no wrapper."""

    async def main(_system: System) -> None:
        raise Boom("mine")

    with pytest.raises(Boom, match="mine"):
        run(main)


async def brief(_context: Actor) -> str:
    """An actor that is done."""
    return "done"


def test_a_child_spec_runs_until_it_ends_and_gives_its_exit() -> None:
    """A program that is one actor."""
    assert run(ChildSpec(brief, name="a")) == Finished("done")


def test_a_supervisor_runs_until_it_ends_and_an_escalation_is_raised() -> None:
    """Its end by itself is an exit; giving up is an error."""
    child = ChildSpec(brief, name="a", significant=True)
    assert run(Supervisor(child, auto_shutdown="any")) == Finished(None)

    async def fail(_context: Actor) -> None:
        raise Boom("why")

    with pytest.raises(RestartIntensityExceeded, match=r"gave up after 3 restarts .*Boom: why"):
        run(Supervisor(ChildSpec(fail, name="a", restart="permanent")))


def test_every_event_is_shown_and_a_callback_that_raises_harms_nobody() -> None:
    """A program may draw what happens; its bug is not the tree's."""
    kinds: list[str] = []

    def show(event: events.AnyEvent) -> None:
        kinds.append(event.kind)
        raise Boom

    assert run(ChildSpec(brief, name="a"), on_event=show) == Finished("done")
    assert kinds == ["exit"]


WRONG: list[Any] = [5, "module:Agent", Worker, lambda _system: 5]


@pytest.mark.parametrize("target", WRONG, ids=["a number", "a text", "an actor", "a sync function"])
def test_what_cannot_be_run_is_told_what_to_write(target: Any) -> None:
    """One line, at once."""
    with pytest.raises(ConfigError, match=r"async|ChildSpec\(Worker"):
        run(target)


def test_an_unknown_option_of_the_system_is_told() -> None:
    """As of any function."""
    with pytest.raises(TypeError, match="colour"):
        run(ChildSpec(brief, name="a"), colour="red")


def test_a_message_is_for_agents() -> None:
    """An agent has one; nothing else takes one."""
    target: Any = ChildSpec(Done, name="a")
    with pytest.raises(ConfigError, match="only an Agent class is run with a message"):
        run(target, "hello")


# ------------------------------------------------------------------ signals
SCRIPT = """
import sys, time
import trio
from actors import Actor, handle
from supervision import ChildSpec, Supervisor, run

def say(*words):
    print(*words, flush=True)

class Noted(Actor):
    def __init__(self, name, seconds):
        self.name, self.seconds = name, seconds

    async def on_start(self):
        say("+" + self.name)

    async def on_stop(self, exit):
        say("stopping", self.name)
        await trio.sleep(self.seconds)
        say("-" + self.name)

    @handle
    async def do(self, message: str):
        say("doing")
        if message == "raise":
            raise KeyboardInterrupt
        while message == "spin":
            pass

async def main(system):
    seconds = float(sys.argv[1])
    await system.start(Supervisor(*(ChildSpec(Noted, name, seconds, name=name, shutdown=99) for name in "ab"), name="p"))
    say("ready")
    for message in sys.argv[2:]:
        system.ref("p/a").send_nowait(message)
    await trio.sleep_forever()

run(main)
"""


@asynccontextmanager
async def script(*words: str) -> AsyncIterator[Running]:
    """The script in a process of its own."""
    start = partial(trio.run_process, [sys.executable, "-c", SCRIPT, *words], stdout=PIPE, stderr=STDOUT, check=False)
    async with trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(start)
        yield Running(process)
        nursery.cancel_scope.cancel()


def order(seen: str) -> list[str]:
    """Who started and stopped, in order."""
    return [line for line in seen.splitlines() if line.startswith(("+", "-"))]


INTERRUPTED = -signal.SIGINT  # what a shell shows as 130: Python ends by the signal itself


async def test_a_ctrl_c_stops_the_tree_in_order_and_the_exit_code_tells() -> None:
    """Whatever it interrupts; a shell sees 130."""
    async with script("0.1") as here:
        await here.until("ready")
        here.process.send_signal(signal.SIGINT)
        assert await here.end() == INTERRUPTED
        assert order(here.seen) == ["+a", "+b", "-b", "-a"]
        assert here.seen.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize("deed", ["raise", "spin"])
async def test_a_ctrl_c_in_a_handler_stops_the_tree_in_order(deed: str) -> None:
    """Raised by the handler, or by a signal that finds it in a loop that never waits: handlers are not deaf."""
    async with script("0.1", deed) as here:
        await here.until("doing")
        if deed == "spin":
            await trio.sleep(0.1)
            here.process.send_signal(signal.SIGINT)
        assert await here.end() == INTERRUPTED
        assert order(here.seen) == ["+a", "+b", "-a", "-b"]  # a has ended when the stop of the others begins


async def test_a_second_ctrl_c_cuts_every_cleanup_short() -> None:
    """Whoever presses twice does not wait; wherever the second lands, in the wait for the stop or in a cleanup that runs."""
    for pause in (0, 0.2):
        async with script("60") as here:
            await here.until("ready")
            here.process.send_signal(signal.SIGINT)
            await here.until("stopping b")
            await trio.sleep(pause)
            here.process.send_signal(signal.SIGINT)
            assert await here.end() == INTERRUPTED
            assert order(here.seen) == ["+a", "+b"]
            assert "Group" not in here.seen


async def test_sigterm_is_an_ordered_stop() -> None:
    """As a service manager expects it: exit code 143."""
    async with script("0.1") as here:
        await here.until("ready")
        here.process.send_signal(signal.SIGTERM)
        assert await here.end() == 143
        assert order(here.seen) == ["+a", "+b", "-b", "-a"]
