"""`run`: a whole program in one call, from a script."""

import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from inspect import isawaitable
from typing import Any, TypeVar, overload

import outcome
import trio

from actors._actor import Actor
from actors._envelope import UserMessage
from actors._errors import ConfigError
from actors._exit import Exit
from actors._inherit import INHERIT, Inherit
from actors._limits import Limits
from actors.agent._agent import Agent
from actors.agent._inbox import Inbox
from actors.events import AnyEvent
from actors.store._api import Store

from ._spec import ChildSpec, Supervisor
from ._system import System, open_system

T = TypeVar("T")
TERMINATED = 128 + signal.SIGTERM
HUNG = 70  # sysexits.h: internal software error


@overload
def run(
    target: type[Agent], message: str | UserMessage, *, store: str | Store | None = None, limits: Limits | None = None,
    inbox: Inbox | Inherit | None = INHERIT, on_event: Callable[[AnyEvent], object] | None = None, **options: Any,
) -> str: ...  # fmt: skip
@overload
def run(
    target: Supervisor | ChildSpec, *, store: str | Store | None = None, limits: Limits | None = None,
    on_event: Callable[[AnyEvent], object] | None = None, **system: Any,
) -> Exit: ...  # fmt: skip
@overload
def run(
    target: Callable[[System], Awaitable[T]], *, store: str | Store | None = None, limits: Limits | None = None,
    on_event: Callable[[AnyEvent], object] | None = None, **system: Any,
) -> T: ...  # fmt: skip
def run(
    target: Any,
    message: Any = None,
    *,
    store: str | Store | None = None,
    limits: Limits | None = None,
    inbox: Inbox | Inherit | None = INHERIT,
    on_event: Callable[[AnyEvent], object] | None = None,
    **options: Any,
) -> Any:
    """Run a target in a system of its own and return what comes of it.

    An `Agent` class with a message: its final answer (`options` as `System.open`). A `Supervisor` or `ChildSpec`: its exit, once
    it ends. An async function: called with the `System`, and what it returns (`options` as `open_system`).

    Ctrl-C stops the tree in order, then raises `KeyboardInterrupt`; a second one cancels every life at once. SIGTERM is an ordered
    stop, then `SystemExit(143)`. SIGQUIT prints the tree, the waits and all stacks. What has not stopped within the system's
    `hard_deadline` is reported on stderr and the process ends with status 70. An escalated failure is raised bare.

    Args:
        target: What to run.
        message: For an agent: the task.
        store: Where sessions are kept; in memory if absent.
        limits: For everything in it.
        inbox: For an agent: strings of the host's for this run, instead of those that its class names; None for none at all.
        on_event: Called with each event; what it raises is ignored.
        options: For the agent, or for the system.

    Raises:
        RunFailed: The agent's run ended without an answer.
        ConfigError: The target, or an option of it, is none that can run.
    """
    job: Callable[[System], Awaitable[Any]]
    if isinstance(target, type) and issubclass(target, Agent):
        if message is None:
            raise ConfigError(f'run({target.__name__}) needs a task; write run({target.__name__}, "what to do")')
        given = options if inbox is INHERIT else {**options, "inbox": inbox}
        job, options = partial(_answer, target, message, given), {}
    elif inbox is not INHERIT:
        raise ConfigError(f"only an Agent class is run with an inbox, not {target!r}")
    elif message is not None:
        raise ConfigError(f"only an Agent class is run with a message, not {target!r}")
    elif isinstance(target, type) and issubclass(target, Actor):
        raise ConfigError(
            f"an actor is run with a name; write run(ChildSpec({target.__name__}, ..., name={target.__name__.lower()!r}))"
        )
    elif isinstance(target, Supervisor | ChildSpec):
        job = partial(_until_it_ends, target)
    elif callable(target):
        job = target
    else:
        raise ConfigError(
            f"cannot run {target!r}; give an Agent class with a message, a Supervisor, a ChildSpec or an async function"
        )
    return trio.run(partial(_main, job, on_event, {"store": store, "limits": limits, **options}))


async def _answer(agent: type[Agent], message: str | UserMessage, options: dict[str, Any], system: System) -> str:
    session = await system.open(agent, **options)
    await session.send(message)
    return await session.wait_answer()


async def _until_it_ends(tree: Supervisor | ChildSpec, system: System) -> Exit:
    ref = await system.start(tree)
    return await ref.wait()


class _Signals:
    """What the operating system asked of a run: SIGTERM for an ordered stop, SIGQUIT for a report."""

    def __init__(self) -> None:
        self.terminated = False
        self.system: System | None = None

    async def listen(self, body: trio.CancelScope) -> None:
        """Listen until cancelled."""
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGQUIT) as signals:
            async for number in signals:
                if number == signal.SIGQUIT:
                    if self.system is not None:
                        _tell(self.system.report())
                else:
                    self.terminated = True
                    body.cancel()

    def hung(self, report: str) -> None:
        """The stop took longer than the hard deadline: tell what hangs and leave, for nothing else can end it."""
        _tell(f"postroom: these did not stop in time\n{report}")
        os._exit(TERMINATED if self.terminated else HUNG)


def _tell(text: str) -> None:
    """On stderr, if anybody still reads it: a report that nobody wants must not keep a process."""
    with suppress(OSError, ValueError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


async def _main(
    job: Callable[[System], Awaitable[T]], on_event: Callable[[AnyEvent], object] | None, options: dict[str, Any]
) -> T:
    signals = _Signals()
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            if threading.current_thread() is threading.main_thread():
                nursery.start_soon(signals.listen, scope)
            result = await outcome.acapture(_inside, job, on_event, options, signals)
        nursery.cancel_scope.cancel()
    if signals.terminated:
        raise SystemExit(TERMINATED)
    return result.unwrap()


async def _inside(
    job: Callable[[System], Awaitable[T]],
    on_event: Callable[[AnyEvent], object] | None,
    options: dict[str, Any],
    signals: _Signals,
) -> T:
    async with open_system(**options) as system:
        signals.system = system
        system.on_hung(signals.hung)
        if on_event is not None:
            system.listen(on_event)
        done = job(system)
        if not isawaitable(done):
            raise ConfigError(f"run takes an async function of the system, but {job!r} returned {done!r}; write `async def`")
        return await done
