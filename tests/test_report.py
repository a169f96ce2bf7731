"""What hangs is told: past the hard deadline, and whenever somebody asks."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio
from scenes import virtual_time

from actors.testing import Gate
from supervision import open_system

HERE = Path(__file__).parent
HANGS = """
import trio
from actors import Actor, handle
from supervision import ChildSpec, Supervisor, run

class Deaf(Actor):
    @handle
    async def hang(self, message: str) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep_forever()

async def main(system):
    await system.start(Supervisor(ChildSpec(Deaf, name="deaf", shutdown=0.05), name="tree"))
    system.ref("tree/deaf").send_nowait("hang")
    print("ready", flush=True)
    await trio.sleep({seconds})
    print("done", flush=True)

run(main, hard_deadline=0.2)
"""


def start(seconds: float) -> "subprocess.Popen[str]":
    """A program with an actor that ignores every cancellation, whose body ends after so long."""
    code = HANGS.replace("{seconds}", str(seconds))
    command = [sys.executable, "-c", code]
    process = subprocess.Popen(command, cwd=HERE.parent, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_program_that_does_not_stop_ends_also_when_nobody_reads_its_report() -> None:
    """Whoever started it may be gone; it must not hang about for ever."""
    process = start(0.1)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stderr.close()
    assert process.wait(timeout=60) == 70


def test_a_program_that_does_not_stop_says_what_hangs_and_ends() -> None:
    """The tree, the zombie, and the very line it stands at; then the process ends with status 70, for nothing else can end it."""
    _, told = start(0).communicate(timeout=20)
    assert "these did not stop in time" in told
    assert "zombie: tree/deaf" in told
    assert "in hang" in told
    assert "sleep_forever" in told


def test_its_status_is_that_of_an_internal_error() -> None:
    """A script that started it sees that it did not end as it should."""
    process = start(0)
    process.communicate(timeout=20)
    assert process.returncode == 70


def test_a_terminated_one_that_hangs_ends_as_terminated() -> None:
    """SIGTERM is an ordered stop first; its status is SIGTERM's all the same."""
    process = start(100)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=20)
    assert process.returncode == 143
    assert "zombie: tree/deaf" in told


def test_sigquit_prints_the_tree_and_goes_on() -> None:
    """A person who wonders can look, as often as he likes."""
    process = start(1)
    process.send_signal(signal.SIGQUIT)
    assert process.stderr is not None
    seen = ""
    while "sleep_forever" not in seen:
        seen += process.stderr.readline()
    assert "deaf (actor: running, 1 unread)" in seen
    out, _ = process.communicate(timeout=20)
    assert out == "done\n"


@virtual_time
async def test_a_system_of_ones_own_tells_and_keeps_waiting(caplog: pytest.LogCaptureFixture) -> None:
    """`open_system` is part of somebody's program, which it must not end."""
    told, over = list[str](), trio.Event()

    async def stubborn(_context: object) -> None:
        with trio.CancelScope(shield=True):
            await over.wait()

    async with trio.open_nursery() as nursery, open_system(hard_deadline=30) as system:
        system.on_hung(told.append)
        await system.spawn(stubborn, name="stubborn")
        nursery.start_soon(open_later, over)
    assert trio.current_time() == 100
    assert ["stubborn" in text and "over.wait()" in text for text in told] == [True]


async def open_later(over: trio.Event) -> None:
    """After the hard deadline."""
    await trio.sleep(100)
    over.set()


@virtual_time
async def test_a_report_names_who_waits_for_whom() -> None:
    """A wait is the most likely reason for what hangs."""
    held = Gate()

    async def waits(context: object) -> None:
        await system.ref("held").ask("hold", timeout=None)

    async with open_system() as system:
        await system.spawn(held.actor, name="held")
        await system.spawn(waits, name="asker")
        await held.entered()
        assert "asker waits for held" in system.report()
        held.open()
