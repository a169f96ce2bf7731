"""Tools that run where they can be killed: `isolation="process"`, in worker processes of trio-parallel.

    a call       takes an idle worker, or starts one, and gives it back     a cancelled call   SIGKILL, then Cancelled goes on
    a worker     one process, kept for the next call, by one system task    a worker's death   a failed outcome that says how
    the run      its end closes all workers; nothing is kept between runs   what it started    is killed with its worker

Each worker is a context of trio-parallel's with at most one process in it, so that it is known which process a call is in:
with it die the processes that the tool started, unless they made sessions of their own. There is no bound on workers here: the
tree bounds calls, and a second bound could hold up one that may run.
"""

import logging
import math
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FunctionType, ModuleType
from typing import Any

import trio
from attrs import define, field

from actors._errors import BadArguments, CodecError, ConfigError, ToolError
from actors._extras import load, require

from ._context import ToolContext
from ._signature import Signature
from ._worker import answer, begin, importing_main, pack, unpack

LIBRARY, EXTRA, WANTED_BY = "trio_parallel", "process", 'isolation="process"'
GRACE = 5.0  # seconds that an idle worker has to leave at the end of a run
MAINS = {"__main__", "__mp_main__"}  # a script's name, and its name in a worker
log = logging.getLogger("postroom.tools")
_UNBOUND = trio.CapacityLimiter(math.inf)


# ------------------------------------------------------------------ when a tool is made
def check_isolated(fn: Callable[..., Any], kind: str, signature: Signature, where: str, *, method: bool) -> None:
    """Whether a function can run in another process.

    Raises:
        ConfigError: It cannot, or the extra is not installed. The text says what to write.
    """
    why = "is a method" if method else _why_not(fn, kind)
    if why is not None:
        raise ConfigError(
            f"{where}: {WANTED_BY} runs a plain function that another process imports by its name, and this {why}; "
            "write `def` at the top of a module, and name it in the agent's `tools`"
        )
    if signature.context is not None:
        raise ConfigError(
            f"{where}: parameter `{signature.context}`: a ToolContext lives in this process, and {WANTED_BY} runs in another; "
            "leave the parameter out, or the isolation"
        )
    require(LIBRARY, extra=EXTRA, wanted_by=f"{where}: {WANTED_BY}")


def _why_not(fn: Any, kind: str) -> str | None:
    """Why another process cannot import and call this; None if it can."""
    if kind != "sync":
        return "is async"
    if not isinstance(fn, FunctionType):
        return f"is a {type(fn).__name__}"
    if fn.__name__ == "<lambda>":
        return "is a lambda"
    if "<locals>" in fn.__qualname__:
        return "is defined inside a function"
    if "." in fn.__qualname__:
        return "is a method"
    return None if importing_main() else _unfindable(fn)  # a script is not in `sys.modules` while a worker imports it


def _unfindable(fn: FunctionType) -> str | None:
    module = sys.modules.get(fn.__module__)
    found = getattr(module, fn.__qualname__, None)
    if module is None or (found is not fn and getattr(found, "fn", None) is not fn):
        return f"is not what {fn.__module__}.{fn.__qualname__} names"
    if fn.__module__ in MAINS:
        return None if _is_script(module) else "stands in a `__main__` that is no file to import"
    return None if _importable(module) else f"stands in {fn.__module__}, which is not found by that name"


def _is_script(main: ModuleType) -> bool:
    """Whether a worker imports this `__main__`: a file, or a module run with `-m` that is no package's `__main__`."""
    if main.__spec__ is not None:
        return main.__spec__.name.rpartition(".")[2] != "__main__"
    return getattr(main, "__file__", None) is not None


def _importable(module: ModuleType) -> bool:
    """Whether an import of the module's name, made anew, would find its file."""
    name, package = module.__name__, sys.modules.get(module.__name__.rpartition(".")[0])
    specs = (finder.find_spec(name, getattr(package, "__path__", None)) for finder in sys.meta_path)
    first = next((spec for spec in specs if spec is not None), None)
    return first is not None and module.__spec__ is not None and first.origin == module.__spec__.origin


# ------------------------------------------------------------------ when it is called
async def call_in_process(fn: Any, arguments: Mapping[str, Any], context: ToolContext) -> Any:
    """Call a checked function in a worker process; `arguments` as the model sent them, and found to fit. The result as JSON.

    Cancelled, the process is killed, and what it had started: when `Cancelled` leaves, nothing of the call runs any more.

    Raises:
        ToolError: It raised; the text is the model's to read, the traceback is logged. Or its process died; the text says how.
        ConfigError: No process can be started.
    """
    try:
        job = pack({"module": fn.__module__, "name": fn.__qualname__, "arguments": arguments})
    except CodecError as error:
        raise BadArguments(f"bad arguments for {context.tool}: {error}", tool=context.tool) from None
    told = unpack(await _run(job, context.tool))
    if "value" in told:
        return told["value"]
    if told["traceback"] is not None:
        facts = {"call": context.call, "tool": context.tool}
        log.info("tool %s (%s) raised in its process\n%s", context.tool, context.call, told["traceback"], extra=facts)
    raise ToolError(told["error"])


@define(eq=False)
class _Worker:
    """A context of trio-parallel's, and the id of the one process in it."""

    library: Any
    opened: trio.Event = field(factory=trio.Event)
    context: Any = None
    pid: int | None = None

    async def keep(self) -> None:
        """Hold the context open until the run ends. A system task: nothing may come out of it."""
        opening = self.library.open_worker_context(idle_timeout=math.inf, init=begin, grace_period=GRACE)
        pid = None
        try:
            async with opening as self.context:
                self.opened.set()
                try:
                    await trio.sleep_forever()
                finally:
                    pid = self.pid if self._lives() else None
        except self.library.BrokenWorkerError as error:
            log.warning("a worker process did not end well at the end of the run: %s", error)
        finally:
            _kill_session(pid)

    async def call(self, job: bytes, tool: str) -> bytes:
        """The worker's answer. Unless one comes, its process is dead when this returns, and what it had started."""
        if self.context is None:
            await self.opened.wait()
        pid = self.pid
        try:
            self.pid = pid = await self._ready(tool)
            told: bytes = await self._in_it(answer, job)
            pid = None
        except self.library.BrokenWorkerError as error:
            how = _ending(error)
            log.warning("the process of tool %s ended before it answered: %s", tool, how, extra={"tool": tool})
            raise ToolError(f"{tool} runs in a process of its own, which ended before it answered: {how}") from None
        finally:
            _kill_session(pid)
        return told

    async def _ready(self, tool: str) -> int:
        """The id of a process that answers: the one that idles, or a new one where that died meanwhile."""
        if self._lives():
            with suppress(self.library.BrokenWorkerError):
                return int(await self._in_it(os.getpid))
        try:
            return int(await self._in_it(os.getpid))
        except self.library.BrokenWorkerError as error:
            raise ConfigError(
                f"the process of {tool} did not start ({_ending(error)}; its reason is on stderr); "
                'what a script runs, it has to run below `if __name__ == "__main__":`, for processes import it'
            ) from None

    async def _in_it(self, fn: Callable[..., Any], *args: Any) -> Any:
        return await self.context.run_sync(fn, *args, kill_on_cancel=True, limiter=_UNBOUND)

    def _lives(self) -> bool:
        return bool(self.context.statistics().idle_workers)


_idle: trio.lowlevel.RunVar[list[_Worker]] = trio.lowlevel.RunVar("postroom_idle_workers")


@trio.lowlevel.enable_ki_protection
async def _run(job: bytes, tool: str) -> bytes:
    """Have a job done by an idle worker, or a new one. The one that was used last goes first: its memory is warm."""
    try:
        idle = _idle.get()
    except LookupError:
        idle = []
        _idle.set(idle)
    worker = idle.pop() if idle else await _hired()
    try:
        return await worker.call(job, tool)
    finally:
        idle.append(worker)


async def _hired() -> _Worker:
    library = await trio.to_thread.run_sync(_library)
    worker = _Worker(library)
    trio.lowlevel.spawn_system_task(worker.keep, name="postroom worker process")
    return worker


def _library() -> ModuleType:
    return load(LIBRARY, extra=EXTRA, wanted_by=WANTED_BY)


def _ending(error: Any) -> str:
    """How a worker's process ended, in words."""
    code = error.args[-1].exitcode
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
    return f"exit status {code}"


def _kill_session(pid: int | None) -> None:
    """Kill what is left of the session that a worker led."""
    if pid is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
