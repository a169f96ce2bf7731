"""What users test their own actors with: `Probe`, `Gate`, and the fixtures. `test_scheduled.py` has the orders of tasks."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors import Actor, ActorCrashed, ActorRef, AskTimeout, FromActor, Reject, Rejected, handle
from actors.testing import Gate, Probe, gate, probe
from supervision import open_system


# ------------------------------------------------------------------ Probe
async def test_a_probe_gives_each_envelope_once_in_order(probe: Probe) -> None:
    """What a test expects, it expects in an order."""
    async with open_system() as system:
        ref = await system.spawn(probe.actor)
        first, second = ref.send_nowait("one"), ref.send_nowait("two")
        taken = [await probe.next(), await probe.next()]
    assert [(envelope.id, envelope.body) for envelope in taken] == [(first.id, "one"), (second.id, "two")]
    assert probe.messages == ["one", "two"]


async def test_a_probe_waits_for_the_next_message(probe: Probe, autojump_clock: MockClock) -> None:
    """The actor under test need not be quicker than the test."""
    async with open_system() as system, trio.open_nursery() as nursery:
        ref = await system.spawn(probe.actor)

        @nursery.start_soon
        async def later() -> None:
            await trio.sleep(0.9)
            ref.send_nowait("late")

        assert (await probe.next()).body == "late"


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ([], "no further message came within 1 s; the probe received none"),
        (["a", "b"], "the probe received 2 before, all taken by next(): 'a', 'b'"),
        (list(range(12)), "the probe received 12 before, all taken by next(): ..., 2, 3, 4, 5, 6, 7, 8, 9, 10, 11"),
    ],
    ids=["none", "some", "many"],
)
async def test_a_probe_that_waits_in_vain_tells_what_came(
    sent: list[Any], told: str, probe: Probe, autojump_clock: MockClock
) -> None:
    """A failed expectation is mostly another message than the one expected."""
    async with open_system() as system:
        ref = await system.spawn(probe.actor)
        for body in sent:
            ref.send_nowait(body)
            await probe.next()
        with pytest.raises(TimeoutError) as caught:
            await probe.next()
    assert told in str(caught.value)


async def test_a_probe_that_was_never_spawned_says_so(probe: Probe, autojump_clock: MockClock) -> None:
    """The likeliest reason for silence."""
    with pytest.raises(TimeoutError, match=r"never started: await system\.spawn\(probe\.actor\)"):
        await probe.next()


async def test_what_came_is_taken_without_waiting(probe: Probe) -> None:
    """A timeout of 0 asks what is there."""
    async with open_system() as system:
        (await system.spawn(probe.actor)).send_nowait("there")
        await wait_all_tasks_blocked()
        assert (await probe.next(timeout=0)).body == "there"
        with pytest.raises(TimeoutError, match="within 0 s"):
            await probe.next(timeout=0)


async def test_a_cancelled_next_took_nothing(probe: Probe) -> None:
    """A test may look for one thing or the other."""
    async with open_system() as system:
        ref = await system.spawn(probe.actor)
        with trio.move_on_after(0):
            await probe.next()
        ref.send_nowait("kept")
        assert (await probe.next()).body == "kept"


async def answer(message: int) -> int:
    await trio.lowlevel.checkpoint()
    return message + 1


@pytest.mark.parametrize(
    ("reply", "answered"),
    [(None, None), (7, 7), (lambda message: message * 2, 42), (answer, 22)],
    ids=["none", "value", "function", "async"],
)
async def test_a_probe_answers_alike(reply: Any, answered: Any) -> None:
    """The actor under test may ask, too."""
    async with open_system() as system:
        ref = await system.spawn(probe(reply=reply).actor)
        assert await ref.ask(21) == answered


async def test_what_a_reply_raises_is_the_handlers() -> None:
    """So a probe can refuse, and crash, as the real one would."""
    errors = iter([Reject("not today"), KeyError("broken")])

    def refuse(_message: object) -> None:
        raise next(errors)

    async with open_system() as system:
        ref = await system.spawn(probe(reply=refuse).actor)
        with pytest.raises(Rejected, match="not today"):
            await ref.ask("first")
        with pytest.raises(ActorCrashed, match="broken"):
            await ref.ask("second")


async def test_a_probe_goes_on_recording_after_a_restart() -> None:
    """The life changes, the test's record does not."""
    desk = Probe(reply=lambda message: 1 / message)
    async with open_system() as system:
        ref = await system.spawn(desk.actor, name="desk")
        for number in (1, 0, 2):
            ref.send_nowait(number)
        assert [(await desk.next()).body for _ in range(3)] == [1, 0, 2]
        [node] = system.tree()
    assert (node.generation, desk.messages) == (2, [1, 0, 2])


class Carrier(Actor):
    """Carries what it gets to the desk."""

    def __init__(self, desk: ActorRef) -> None:
        self.desk = desk

    @handle
    def carry(self, message: str) -> None:
        self.desk.send_nowait(message)


async def test_a_probe_tells_who_sent(probe: Probe) -> None:
    """The envelope says what the message does not."""
    async with open_system() as system:
        carrier = await system.spawn(Carrier, await system.spawn(probe.actor), name="carrier")
        carrier.send_nowait("letter")
        assert (await probe.next()).sender == FromActor("carrier")


# ------------------------------------------------------------------ Gate
async def test_a_gate_holds_its_message_until_it_is_opened(gate: Gate) -> None:
    """A test needs the moment in which a handler is in the middle of its work."""
    async with open_system() as system, trio.open_nursery() as nursery:
        ref = await system.spawn(gate.actor)
        nursery.start_soon(ref.ask, "held")
        await gate.entered()
        await gate.entered()  # at once: it still is
        await wait_all_tasks_blocked()
        assert nursery.child_tasks
        gate.open()


async def test_a_held_message_outlasts_its_asker(gate: Gate, autojump_clock: MockClock) -> None:
    """What `gate` is for: an asker gives up, and the actor is unharmed."""
    async with open_system() as system:
        ref = await system.spawn(gate.actor)
        with pytest.raises(AskTimeout):
            await ref.ask("slow", timeout=1)
        gate.open()
        assert await ref.ask("next", timeout=1) is None


async def test_a_gate_waits_for_its_first_message(gate: Gate, autojump_clock: MockClock) -> None:
    """`entered` is not satisfied by an actor that idles, or one that was stopped."""
    async with open_system() as system:
        ref = await system.spawn(gate.actor)
        with trio.move_on_after(1) as idle:
            await gate.entered()
        ref.send_nowait("held")
        await gate.entered()
        await ref.stop()
        with trio.move_on_after(1) as stopped:
            await gate.entered()
    assert idle.cancelled_caught
    assert stopped.cancelled_caught


async def test_an_open_gate_lets_everything_through() -> None:
    """Once is enough."""
    door = gate()
    door.open()
    async with open_system() as system:
        ref = await system.spawn(door.actor)
        assert [await ref.ask(number) for number in range(3)] == [None, None, None]


# ------------------------------------------------------------------ the fixtures, in somebody's project
USERS_TESTS = """
import sys
import trio
from actors.testing import Gate, Probe
from supervision import open_system

def test_fixtures(probe, gate, scheduled):
    async def main():
        async with open_system() as system:
            await (await system.spawn(probe.actor)).ask("hello")
            (await system.spawn(gate.actor)).send_nowait("wait")
            await gate.entered()
    with scheduled(7):
        trio.run(main)
    assert isinstance(probe, Probe) and isinstance(gate, Gate) and probe.messages == ["hello"]
    assert "pytest_trio" not in sys.modules

def test_fresh_ones_for_each_test(probe):
    assert probe.messages == []
"""


def test_the_fixtures_are_there_in_a_project_without_pytest_trio(tmp_path: Path) -> None:
    """Whoever installs this gets them, strict warnings or not, and nothing else changes."""
    (tmp_path / "test_users.py").write_text(USERS_TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-W",
        "error",
        "-p",
        "no:trio",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
    ]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), "test_users.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr
