"""Processes that a tool starts on its own: real ones, in whole trees, so real time. None survives a call that was cut off."""

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from process_tools import context, gone
from scenes import Diary, Worker, scene

from actors import Fenced, tool
from actors._identity import Identity, current
from actors._outcome import Outcome
from actors.models import call
from actors.models._blocks import ToolCall
from actors.tools import _descent
from actors.tools._call import execute
from actors.tools._tool import Tool

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="it looks at processes through /proc")

NOTE = 'echo $$ >> "$0"; '
TREE = f'{NOTE} sh -c \'{NOTE.replace("$0", "$1")} exec sleep 600\' x "$0" & sh -c \'trap "" TERM; {NOTE.replace("$0", "$1")} while :; do sleep 1; done\' x "$0" & wait'
DEAF = f'trap "" TERM; {NOTE} {NOTE} {NOTE} while :; do sleep 1; done'
ORPHANS = f"{NOTE} (sleep 600 & echo $! >> $0; sleep 600 & echo $! >> $0); exit 0"


def shell(script: str, path: str) -> list[str]:
    return ["sh", "-c", script, path]


async def plain(script: str, path: str) -> None:
    """Run a script, as trio does."""
    await trio.run_process(shell(script, path))


async def own_session(script: str, path: str) -> None:
    """Run a script in a session of its own, and wait for what it leaves."""
    await trio.run_process(shell(script, path), start_new_session=True)
    await trio.sleep(60)


async def background(script: str, path: str) -> None:
    """Run a script in a task of its own."""
    async with trio.open_nursery() as nursery:
        await nursery.start(trio.run_process, shell(script, path))
        await trio.sleep(60)


def in_a_thread(script: str, path: str) -> None:
    """Run a script in a worker thread."""
    subprocess.run(shell(script, path), check=False)


async def on_the_loop(script: str, path: str) -> None:
    """Run a script with asyncio."""
    process = await asyncio.create_subprocess_exec(*shell(script, path))
    await process.wait()


ON_THE_LOOP = Tool(on_the_loop, name="t", isolation="asyncio")


async def noted(path: Path) -> list[int]:
    """The ids that three processes have written, once they have."""

    def read() -> list[int]:
        return [int(each) for each in path.read_text().split()] if path.exists() else []

    while len(read()) < 3:  # noqa: ASYNC110  # other processes write the file
        await trio.sleep(0.01)
    return read()


async def cut_off(made: Tool, script: str, path: Path, **options: Any) -> list[int]:
    """Cancel a call when three processes of its script have noted themselves; returns, when the call has, who they were."""
    asked = ToolCall("call_1", "t", {"script": script, "path": str(path)})
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(execute, made, None, asked, context())
            pids = await noted(path)
            nursery.cancel_scope.cancel()
    return pids


# ------------------------------------------------------------------ cancelled
@pytest.mark.parametrize("fn", [plain, background, in_a_thread, on_the_loop])
@pytest.mark.parametrize("script", [TREE, DEAF], ids=["tree", "deaf"])
async def test_no_process_survives_a_cancelled_call(fn: Callable[..., Any], script: str, tmp_path: Path) -> None:
    """However it was started, also grandchildren, also one that ignores SIGTERM; and the call is over soon."""
    made = ON_THE_LOOP if fn is on_the_loop else Tool(fn, name="t")
    pids = await cut_off(made, script, tmp_path / "pids")
    assert gone(*pids, seconds=0)


async def test_what_a_dead_leader_left_in_its_group_dies_too(tmp_path: Path) -> None:
    """Its parent is gone, its group is not."""
    pids = await cut_off(Tool(own_session, name="t"), ORPHANS, tmp_path / "pids")
    assert gone(*pids, seconds=0)


async def test_a_process_has_a_moment_to_end_well(tmp_path: Path) -> None:
    """SIGTERM comes first; trio sends one too, to the process that it started."""
    script = f'trap "echo ended >> $0.end; exit" TERM; {NOTE} {NOTE} {NOTE} while :; do sleep 0.01; done'
    await cut_off(Tool(plain, name="t"), script, tmp_path / "pids")
    assert set((tmp_path / "pids.end").read_text().splitlines()) == {"ended"}


async def test_a_call_out_of_time_leaves_no_process_either(tmp_path: Path) -> None:
    """Its time limit is a cancellation too."""
    asked = ToolCall("call_1", "t", {"script": TREE, "path": str(tmp_path / "pids")})
    outcome: Outcome = await execute(Tool(plain, name="t", timeout=0.5), None, asked, context())
    assert outcome.status == "timed_out"
    assert gone(*map(int, (tmp_path / "pids").read_text().split()), seconds=0)


async def test_it_works_without_a_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system keeps no such list, the group that the process leads is killed."""
    monkeypatch.setattr(_descent, "PROC", str(tmp_path / "none"))
    pids = await cut_off(Tool(own_session, name="t"), TREE, tmp_path / "pids")
    assert gone(*pids)


# ------------------------------------------------------------------ and what is left alone
async def test_what_the_cleanup_of_a_tool_starts_is_left_to_it(tmp_path: Path) -> None:
    """It may have to tell a service that the work is off."""

    async def careful(script: str, path: str) -> None:
        """Run a script, then another."""
        try:
            await trio.run_process(shell(script, path))
        finally:
            with trio.CancelScope(shield=True):
                await trio.run_process(["sh", "-c", f"sleep 0.3; echo cleaned > {path}.clean"])

    await cut_off(Tool(careful, name="t"), TREE, tmp_path / "pids")
    assert (tmp_path / "pids.clean").read_text() == "cleaned\n"


async def test_a_call_that_ends_by_itself_may_leave_a_process(tmp_path: Path) -> None:
    """Starting a server is what some tools are for."""
    left: list[Any] = []

    def leave() -> None:
        """Leave one."""
        left.append(subprocess.Popen(["sleep", "600"]))

    outcome = await execute(Tool(leave), None, ToolCall("call_1", "t", {}), context())
    assert outcome.status == "completed"
    assert not gone(left[0].pid, seconds=0.05)
    left[0].kill()
    left[0].wait()


async def test_a_thread_that_was_left_behind_starts_no_more_processes(tmp_path: Path) -> None:
    """Its call is over; what it still does counts for nothing."""
    met: list[object] = []
    done = trio.Event()
    token = trio.lowlevel.current_trio_token()

    def again(script: str, path: str) -> None:
        """Try again and again."""
        try:
            for _ in range(5):
                in_a_thread(script, path)
        except Fenced as error:
            met.append(error)
        token.run_sync_soon(done.set)

    await cut_off(Tool(again, name="t"), TREE, tmp_path / "pids")
    await done.wait()
    assert [type(each) for each in met] == [Fenced]


async def test_processes_of_other_voices_are_not_the_calls() -> None:
    """An actor that a tool spawned goes on, and so does what it runs."""
    started: list[Any] = []
    host = Identity("other", current.get().sender, None)

    async def spawner() -> None:
        """Start a process with another's voice."""
        current.set(host)
        started.append(await trio.lowlevel.open_process(["sleep", "600"]))
        await trio.sleep(60)

    with trio.move_on_after(0.3):
        await execute(Tool(spawner), None, ToolCall("call_1", "t", {}), context())
    assert started[0].poll() is None
    started[0].kill()
    await started[0].wait()


# ------------------------------------------------------------------ in a session
class Builder(Worker):
    """You build."""

    @tool
    async def build(self, path: str) -> None:
        """Build."""
        await trio.run_process(shell(TREE, path))


async def test_a_stopped_run_and_a_stopped_session_leave_no_process(tmp_path: Path) -> None:
    """As a person sees it: stop means stop."""
    script = [call("build", path=str(tmp_path / "one")), call("build", path=str(tmp_path / "two"))]
    async with scene(*script, agent=Builder, deps=Diary()) as here:
        for path, stop in ((tmp_path / "one", here.session.stop_run), (tmp_path / "two", here.session.stop)):
            await here.session.send("go")
            with trio.fail_after(10):
                pids = await noted(path)
                await stop()
                await here.idle()
            assert gone(*pids)
