"""Tools in worker processes, `isolation="process"`: real processes, so real time; what has to end is waited for with patience."""

import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import process_tools
import pytest
import trio
from process_tools import context, describe, die, fail, family, gone, hold, in_process, loose, meet, pid, spin, wait_for

from actors import Agent, BadArguments, ConfigError, Media, Tool, ToolContext, _extras, tool
from actors.events import ToolFinished
from actors.models._blocks import ToolCall
from actors.models.scripted import ScriptedModel, call, say
from actors.tools._call import execute
from actors.tools._collect import collect
from actors.tools._process import _is_script
from supervision import open_system

TESTS = Path(__file__).parent
pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="it looks at processes through /proc")


async def run(fn: Callable[..., Any], /, **arguments: Any) -> Any:
    with trio.fail_after(60):
        return await in_process(fn).call(None, arguments, context(fn.__name__))


async def cancelled_once_noted(call: Callable[[], Awaitable[object]], path: Path) -> list[int]:
    """Cancel a call when its tool has noted its processes; returns when the call has."""
    with trio.fail_after(90):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            noted = await trio.to_thread.run_sync(wait_for, path)
            nursery.cancel_scope.cancel()
    return [int(each) for each in noted.split()]


def script(folder: Path, text: str, *options: str) -> list[str]:
    (folder / "script.py").write_text(text)
    return [sys.executable, *options, str(folder / "script.py")]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(TESTS), "PYTHONDONTWRITEBYTECODE": "1"}


# ------------------------------------------------------------------ a call
async def test_it_runs_in_a_process_that_later_calls_reuse() -> None:
    """Starting one takes most of a second."""
    first = await run(pid)
    assert first != os.getpid()
    assert await run(pid) == first


async def test_arguments_and_results_are_what_they_are_in_this_process() -> None:
    """The isolation is the author's choice; the model sees no difference. Nor does an author who gives a schema."""
    given = {"at": "2026-01-31T12:00:00Z", "point": {"x": 1}, "rest": {"$media": "no media"}}
    expected = {
        "at": given["at"], "point": {"x": 1, "y": 0.5}, "rest": given["rest"], "types": ["Point", "datetime"],
        "image": Media("a/b", b"\0"),
    }  # fmt: skip
    assert await run(describe, **given) == expected == await Tool(describe).call(None, given, context())
    open_ = in_process(loose, schema={"type": "object"})
    assert await open_.call(None, {"value": [1, None], "more": 2}, context()) == [[1, None], {"more": 2}]


async def test_what_it_raises_is_told_as_from_this_process(caplog: pytest.LogCaptureFixture) -> None:
    """Also what cannot be pickled, and what would end the program if it were raised again here. The traceback is logged."""
    caplog.set_level("INFO", "postroom.tools")
    told = {
        "told": "no such log", "exit": "SystemExit: 3", "odd": "OddError: (<function ",
        "json": "CodecError: the result has no JSON: builtins.object is no JSON",
    }  # fmt: skip
    for how, text in told.items():
        outcome = await execute(in_process(fail), None, ToolCall("call_1", "fail", {"how": how}), context())
        assert (outcome.status, str(outcome.error)[: len(text)]) == ("failed", text)
    assert "no such log" not in caplog.text
    assert 'process_tools.py", line' in caplog.text
    assert "ValueError: deeper" in caplog.text


async def test_bad_arguments_start_no_process() -> None:
    """They are found here, and cost nothing."""
    before = process_tools.children()
    for given, told in [({"a": 1}, "unknown argument `a`"), ({"how": 1}, "`how`: expected str, got int 1")]:
        with pytest.raises(BadArguments, match=told):
            await in_process(fail).call(None, given, context())
    with pytest.raises(BadArguments, match="beyond 64 bits"):
        await in_process(loose, schema={}).call(None, {"value": 2**70}, context())
    assert process_tools.children() == before


async def test_calls_run_beside_each_other(tmp_path: Path) -> None:
    """The tree bounds calls; processes are made as they are needed."""
    one, two, came = str(tmp_path / "one"), str(tmp_path / "two"), []

    async def come(own: str, other: str) -> None:
        came.append(await run(meet, own=own, other=other))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(come, one, two)
        nursery.start_soon(come, two, one)
    assert len(set(came)) == 2


# ------------------------------------------------------------------ killed
@pytest.mark.parametrize("stuck", [spin, hold])
async def test_a_cancelled_call_is_dead_when_it_returns(stuck: Callable[..., Any], tmp_path: Path) -> None:
    """In a loop, or in C code that no signal handler and no other thread gets a word in."""
    [worker] = await cancelled_once_noted(partial(run, stuck, path=str(tmp_path / "pids")), tmp_path / "pids")
    assert gone(worker, seconds=0)


async def test_a_call_out_of_time_is_killed(tmp_path: Path) -> None:
    """The tool's own `timeout`."""
    worker = await run(pid)
    asked = ToolCall("call_1", "spin", {"path": str(tmp_path / "pid")})
    outcome = await execute(in_process(spin, timeout=0.2), None, asked, context())
    assert (outcome.status, outcome.error) == ("timed_out", "it was not done after 0.2 s")
    assert gone(worker, seconds=0)


async def test_what_it_started_dies_with_it(tmp_path: Path) -> None:
    """A tool that runs a compiler leaves no compiler behind; and what it forked does not hold up its end."""
    pids = await cancelled_once_noted(partial(run, family, path=str(tmp_path / "pids")), tmp_path / "pids")
    assert len(pids) == 4
    assert gone(*pids)


async def test_a_stopped_run_kills_its_call(tmp_path: Path) -> None:
    """As a person sees it: the session goes on, the process does not."""

    class Sums(Agent):
        model = ScriptedModel([call("spin", path=str(tmp_path / "pid")), say("never asked")])
        tools = (in_process(spin),)

    async with open_system() as system:
        session = await system.open(Sums)
        async with session.events() as events:
            await session.send("go")
            worker = int(await trio.to_thread.run_sync(wait_for, tmp_path / "pid"))
            await session.stop_run()
            async for event in events:
                if isinstance(event, ToolFinished):
                    assert event.outcome.status == "cancelled"
                    break
        assert await trio.to_thread.run_sync(gone, worker)


# ------------------------------------------------------------------ died
@pytest.mark.parametrize(
    ("how", "told"),
    [("exit", "exit status 3"), ("kill", "killed by SIGKILL"), ("crash", "killed by SIGSEGV"), ("leave", "exit status 4")],
)
async def test_the_death_of_its_process_is_a_failed_outcome(how: str, told: str, caplog: pytest.LogCaptureFixture) -> None:
    """At once, also where something that it started lives on; the program lives, and so does the next call."""
    asked = ToolCall("call_1", "die", {"how": how})
    with trio.fail_after(60):
        outcome = await execute(in_process(die), None, asked, context("die"))
    assert outcome.status == "failed"
    assert outcome.error == f"die runs in a process of its own, which ended before it answered: {told}"
    assert told in caplog.text
    if how == "exit":
        assert await run(pid) != os.getpid()


async def test_a_worker_that_died_idle_is_replaced() -> None:
    """The system's memory killer takes what sits about."""
    first = await run(pid)
    os.kill(first, signal.SIGKILL)
    assert await trio.to_thread.run_sync(gone, first)
    assert await run(pid) != first


# ------------------------------------------------------------------ the end
CLEAN = """
import gc, os, trio
from process_tools import children, context, die, fail, gone, in_process, pid

def own() -> int:
    '''A tool of the script itself.'''
    return os.getpid()

OWN = in_process(own)

async def main():
    pids = [await each.call(None, {}, context()) for each in (OWN, in_process(pid))]
    for each, how in ((fail, "odd"), (die, "leave")):
        try:
            await in_process(each).call(None, {"how": how}, context())
        except Exception:
            pass
    return [*pids, await OWN.call(None, {}, context())]

def once():
    pids = trio.run(main)
    gc.collect()
    assert children() == [] and gone(*pids, seconds=0), children()
    return sorted(os.listdir("/dev/fd"))

if __name__ == "__main__":
    assert once() == once()
    print("clean")
"""


async def test_a_run_leaves_no_process_no_pipe_and_no_warning(tmp_path: Path) -> None:
    """Nor a semaphore: multiprocessing would say so on stderr when the program ends."""
    command = script(tmp_path, CLEAN, "-X", "dev", "-W", "error")
    with trio.fail_after(120):
        done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False, env=environment())
    deaths = "the process of tool t ended before it answered: exit status 4\n"
    assert (done.stdout.decode(), done.stderr.decode()) == ("clean\n", deaths * 2)


UNGUARDED = """
from actors import Agent
from actors.models.scripted import ScriptedModel, call, say
from process_tools import in_process, pid
from supervision import run

class Careless(Agent):
    model = ScriptedModel([call("pid"), lambda request: say(request.transcript[-1].results[0].text)])
    tools = (in_process(pid),)

print("answer:", run(Careless, "go"))
"""


async def test_a_script_that_would_do_its_work_again_is_told_what_to_write(tmp_path: Path) -> None:
    """A process imports the script; without a guard, each would open the session once more."""
    with trio.fail_after(60):
        done = await trio.run_process(
            script(tmp_path, UNGUARDED), capture_stdout=True, capture_stderr=True, check=False, env=environment()
        )
    assert done.stdout.decode().count("answer:") == 1
    assert 'below `if __name__ == "__main__":`' in done.stdout.decode()
    assert "ConfigError: this script is being imported by a process that it started" in done.stderr.decode()


KILLED = """
import sys, trio
from process_tools import context, in_process, spin

if __name__ == "__main__":
    trio.run(in_process(spin).call, None, {"path": sys.argv[1]}, context())
"""


def test_a_worker_does_not_outlive_its_program(tmp_path: Path) -> None:
    """Whatever ends it: nobody else would end the worker."""
    with subprocess.Popen([*script(tmp_path, KILLED), str(tmp_path / "pid")], env=environment()) as program:
        worker = int(wait_for(tmp_path / "pid"))
        program.kill()
    assert gone(worker)


# ------------------------------------------------------------------ what cannot
class Holder:
    @tool(isolation="process")
    def method(self) -> None:
        """Do."""

    @staticmethod
    def static() -> None:
        """Do."""


async def waits() -> None:
    """Do."""


async def streams() -> Any:
    """Do."""
    yield 1


def progress(context: ToolContext) -> None:
    """Do."""


def replaced() -> None:
    """Do."""


first = replaced


def replaced() -> None:  # type: ignore[no-redef]
    """Do."""


def closure() -> Callable[[], None]:
    def inner() -> None:
        """Do."""

    return inner


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: collect(Holder), 'tool Holder.method: isolation="process" runs a plain function that another process imports'),
        (lambda: collect(Holder), "this is a method; write `def` at the top of a module, and name it in the agent's `tools`"),
        (lambda: in_process(Holder.static), "this is a method"),
        (lambda: in_process(lambda: None, name="x"), "this is a lambda"),
        (lambda: in_process(closure()), "this is defined inside a function"),
        (lambda: in_process(waits), "this is async"),
        (lambda: in_process(streams), "this is async"),
        (lambda: in_process(partial(pid), name="x"), "this is a partial"),
        (lambda: in_process(first), "this is not what test_process.replaced names"),
        (lambda: in_process(progress), "parameter `context`: a ToolContext lives in this process"),
    ],
)
def test_what_another_process_cannot_call_is_refused_when_the_tool_is_made(make: Callable[[], object], told: str) -> None:
    """Its author reads why, and what to write; no model meets it."""
    with pytest.raises(ConfigError) as caught:
        make()
    assert told in str(caught.value)


def test_a_module_that_is_not_found_by_its_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin that was loaded from a path is known to this process alone."""
    plugin = ModuleType("plugin_of_mine")
    exec("def pid() -> int:\n    'Pid.'\n    return 1\n", vars(plugin))
    monkeypatch.setitem(sys.modules, "plugin_of_mine", plugin)
    with pytest.raises(ConfigError, match="this stands in plugin_of_mine, which is not found by that name"):
        in_process(plugin.pid)


@pytest.mark.parametrize(
    ("main", "can"),
    [
        ({"__file__": "x.py"}, True),
        ({}, False),
        ({"name": "a.b"}, True),
        ({"name": "a.__main__"}, False),
        ({"name": "__main__"}, False),
    ],
)
def test_a_program_is_imported_where_it_is_a_file_or_a_module(main: dict[str, str], can: bool) -> None:
    """`python x.py` and `-m a.b`; but no prompt, no `-c`, no package's `__main__`, which would do its work again."""
    made: Any = ModuleType("__main__")
    if "name" in main:
        made.__spec__ = ModuleSpec(main["name"], None)
    vars(made).update(main)
    assert _is_script(made) is can


async def test_a_function_of_a_command_line_is_refused() -> None:
    """A process could not import it."""
    code = "from process_tools import in_process\ndef f() -> None: 'Do.'\nin_process(f)"
    done = await trio.run_process([sys.executable, "-c", code], capture_stderr=True, check=False, env=environment())
    assert b"ConfigError: tool f: " in done.stderr
    assert b"and this stands in a `__main__` that is no file to import" in done.stderr


def test_the_name_may_hold_the_tool_by_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """`crunch = Tool(crunch, isolation="process")` reads well, and a copy of it with other options is made."""
    monkeypatch.setattr(process_tools, "pid", in_process(pid))
    assert in_process(pid, name="other").name == "other"


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the tool is made, not when a model first calls it."""
    monkeypatch.setitem(sys.modules, "trio_parallel", None)
    with pytest.raises(
        ConfigError,
        match=r"tool pid: .* needs the package 'trio_parallel', which is not installed; pip install 'postroom\[process\]'",
    ):
        in_process(pid)


async def test_an_extra_that_does_not_import_is_told_likewise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half an installation is none."""

    def broken(name: str) -> None:
        raise ImportError(f"cannot import {name}")

    made = in_process(pid)
    monkeypatch.setattr(_extras, "import_module", broken)
    with pytest.raises(ConfigError, match=r"pip install 'postroom\[process\]'"):
        await made.call(None, {}, context())


def test_making_a_tool_loads_nothing() -> None:
    """Until a call needs it."""
    code = "import sys, process_tools as p; p.in_process(p.pid); sys.exit('trio_parallel' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, env=environment()).returncode == 0
