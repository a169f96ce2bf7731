"""What crashes, dead letters and short lives leave behind: little, however many there were."""

import gc
import logging
import tracemalloc

import pytest
from cast import Boom, Crash, Worker
from nightly import NIGHTLY

from actors import Actor, ActorCrashed, ActorRef, Ended, handle
from supervision import _hub, _router, open_system

pytestmark = pytest.mark.virtual_time


async def crashed(ref: ActorRef, error: BaseException) -> None:
    """Let it fail, and hear of it."""
    with pytest.raises(ActorCrashed):
        await ref.ask(Crash(error))


async def test_a_dead_letters_reason_is_short() -> None:
    """An error can have a text of megabytes; a thousand of them shall not be kept."""
    async with open_system() as system:
        await crashed(await system.spawn(Worker), Boom("x" * 1_000_000))
        assert len(system.dead_letters[0].reason) == 1000
        assert system.dead_letters[0].reason.endswith("xxx...")


class Heavy(Worker):
    """Holds a megabyte in the frame that crashes."""

    @handle
    async def crash(self, message: Crash) -> None:
        ballast = bytearray(1 << 20)
        try:
            int(bytes(ballast[:1]))
        except ValueError as error:
            raise message.error from (None if str(message.error) == "from none" else error)


@pytest.mark.parametrize("text", ["chained", "from none"])
async def test_a_thousand_dead_letters_of_crashed_actors_hold_little(text: str) -> None:
    """A traceback pins the locals of every frame it passed; text pins nothing. Suppressed contexts are no exception."""
    logging.getLogger("postroom").setLevel(logging.CRITICAL)
    tracemalloc.start()
    try:
        async with open_system() as system:
            ref = await system.spawn(Heavy, max_restarts=10_000)
            for _ in range(1000):
                await crashed(ref, Boom(text))
            gc.collect()
            assert len(system.dead_letters) == 1000
            assert tracemalloc.get_traced_memory()[0] < 5 << 20
    finally:
        tracemalloc.stop()
        logging.getLogger("postroom").setLevel(logging.NOTSET)


BROODS = 4_000 if NIGHTLY else 20


async def test_a_parent_of_short_children_without_end_weighs_what_it_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    """So does the system that remembers how they ended: five thousand children, a million by night."""

    async def brief(_context: Actor) -> None:
        pass

    class Parent(Worker):
        @handle
        async def breed(self, message: bytes) -> None:
            for _ in range(250):
                await self.spawn(brief)

        @handle
        async def ended(self, message: Ended) -> None:
            pass

    monkeypatch.setattr(_router, "REMEMBERED", 1000)
    monkeypatch.setattr(_hub, "RING", 1000)
    async with open_system() as system:
        ref = await system.spawn(Parent, name="p")
        sizes = []
        for brood in range(BROODS):
            await ref.ask(b"", timeout=None)
            await system.wait_idle()
            if brood in {9, BROODS - 1}:
                gc.collect()
                sizes.append(len(gc.get_objects()))
        assert [node.generation for node in system.tree()] == [1]
        assert sizes[-1] - sizes[0] < 500
