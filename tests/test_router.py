"""Addresses: who is where, who was, which one was perhaps meant."""

from difflib import get_close_matches

import pytest
from cast import Worker

from actors import Finished, RecipientStopped, Status, UnknownRecipient
from supervision import _router, open_system

pytestmark = pytest.mark.virtual_time


async def test_the_exits_of_the_last_ones_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a late sender can read them; those before are nobody's any more."""
    monkeypatch.setattr(_router, "REMEMBERED", 3)
    async with open_system() as system:
        refs = [await system.spawn(Worker) for _ in range(5)]
        for ref in refs:
            await ref.stop()
        for ref in refs[2:]:
            assert ref.status is Status.STOPPED
            with pytest.raises(RecipientStopped):
                ref.send_nowait(1)
        for ref in refs[:2]:
            with pytest.raises(UnknownRecipient):
                ref.send_nowait(1)


async def test_a_new_actor_of_a_name_makes_the_old_exit_forgotten() -> None:
    """The address is in use; what was, was."""

    async def brief(_context: object) -> int:
        return 5

    async with open_system() as system:
        ref = await system.spawn(brief, name="a")
        assert await ref.wait() == Finished(5)
        await system.spawn(Worker, name="a")
        states = [ref.status]
        await ref.stop()
        assert [*states, ref.status] == [Status.IDLE, Status.STOPPED]


async def test_a_mistyped_address_is_held_against_a_bounded_number_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A typo of a model must not hold the loop for seconds among 100,000 actors."""
    compared: list[int] = []

    def counting(word: str, others: list[str], n: int, cutoff: float) -> list[str]:
        compared.append(len(others))
        return get_close_matches(word, others, n, cutoff)

    monkeypatch.setattr(_router, "get_close_matches", counting)
    async with open_system() as system:
        for number in range(1000):
            await system.spawn(Worker, name=f"worker-{number}")
        with pytest.raises(UnknownRecipient, match="did you mean worker-"):
            system.ref("worker-99x").send_nowait(1)
        assert compared == [_router.COMPARED]


@pytest.mark.parametrize("meant", ["s", "planner"])
async def test_among_few_all_are_held_against_it(meant: str) -> None:
    """Whatever the slip was."""
    async with open_system() as system:
        await system.spawn(Worker, name=meant)
        with pytest.raises(UnknownRecipient, match=f"did you mean {meant}"):
            system.ref(f"s{meant[:-1]}n" if len(meant) > 1 else "ss").send_nowait(1)
