"""Ctrl-C at any bytecode: what changes state is never torn. Real signals, in a process of their own."""

import subprocess
import sys

import pytest

# A timer raises SIGINT's own handler at a random moment, again and again, each time once the last interrupt was caught.
# (Another thread's signals would come only where the main one lets it run, which is never in the middle of a send.)
STORM = """
import random, signal
import trio, trio.testing
from actors import Actor, FromUser, Limits, Mailbox, handle
from supervision import open_system

interrupts = 0
on_its_way = False

def again():
    global on_its_way
    on_its_way = True
    signal.setitimer(signal.ITIMER_REAL, random.random() / 5000)

async def through(step, finished):
    '''Make steps until it is finished, whatever interrupts them; then wait until no interrupt is on its way.'''
    global interrupts, on_its_way
    ctrl_c = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGALRM, lambda _number, frame: ctrl_c(signal.SIGINT, frame))
    while on_its_way or not finished():
        try:
            if not on_its_way:
                again()
            while on_its_way:
                if not finished():
                    await step()
                await trio.lowlevel.checkpoint()
        except KeyboardInterrupt:
            interrupts += 1
            on_its_way = False
"""

MAILBOX = """
async def work():
    box, sent = Mailbox(capacity=20_000), 0

    async def step():
        nonlocal sent
        for _ in range(20):
            box.send_nowait(f"web-{sent}", sender=FromUser(), id=f"web-{sent}")
            sent += 1

    await through(step, lambda: sent >= 10_000)
    log = box.unread(0)
    assert [each.seq for each in log] == list(range(1, len(log) + 1))
    assert [each.id for each in log] == [each.body for each in log] == [f"web-{n}" for n in range(sent)]
    assert box.statistics().accepted == box.statistics().unread == sent
"""

ACTOR = """
class Ear(Actor):
    def __init__(self, heard):
        self.heard = heard

    @handle
    async def hear(self, message: str) -> None:
        await gate.wait()
        self.heard.append(message)

async def work():
    global gate
    gate = trio.Event()
    heard, sent = [], 0
    async with open_system(limits=Limits(max_unread=20_000)) as system:
        ref = await system.spawn(Ear, heard)
        ref.send_nowait("first")
        await trio.testing.wait_all_tasks_blocked()  # it waits at the gate: no interrupt is its own

        async def step():
            nonlocal sent
            for _ in range(20):
                ref.send_nowait(f"web-{sent}", id=f"web-{sent}", interrupt=sent % 3 == 0)
                sent += 1

        await through(step, lambda: sent >= 10_000)
        gate.set()
        await system.wait_idle()
        assert sorted(heard[1:]) == sorted(f"web-{n}" for n in range(sent)), heard
        assert system.statistics().unread == 0
"""

WAITS = """
async def work():
    box, got, sent = Mailbox(capacity=4), [], 0

    async def read():
        while True:
            found = await box.receive(len(got), lambda envelope: True)
            with trio.CancelScope(shield=True):
                box.advance(found[-1].seq)
                box.trim(found[-1].seq)
                got.extend(each.body for each in found)

    async def step():
        nonlocal sent
        await box.accept_when_room(9, sent, FromUser(), id=str(sent))
        sent += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.lowlevel.enable_ki_protection(read))
        await through(step, lambda: sent >= 2000)
        await trio.testing.wait_all_tasks_blocked()
        assert got == list(range(sent)), got[-5:]
        assert box.statistics().waiting == 1
        nursery.cancel_scope.cancel()
    assert box.statistics().waiting == 0
"""

END = """
trio.run(work)
print("interrupts", interrupts)
"""


@pytest.mark.parametrize("work", [MAILBOX, ACTOR, WAITS], ids=["10,000 sends", "sends to an actor", "waits for mail and room"])
def test_no_ctrl_c_tears_a_message(work: str) -> None:
    """No seq without its envelope, no id without its mail, none twice, no task woken twice, nobody left waiting."""
    done = subprocess.run([sys.executable, "-c", STORM + work + END], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[1]) > 5
