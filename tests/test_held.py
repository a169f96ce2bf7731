"""Who holds the loop is named: a handler that blocks is seen from outside."""

import logging
import time

import pytest

from actors import Actor, handle
from supervision import open_system


class Blocker(Actor):
    """Blocks the whole process for so long."""

    @handle
    def block(self, seconds: float) -> str:
        time.sleep(seconds)
        return "done"


def warnings(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if "held the loop" in record.getMessage()]


async def test_a_handler_that_blocks_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    """With its address and its line: nobody inside the loop can notice."""
    async with open_system() as system:
        ref = await system.spawn(Blocker, name="blocker")
        await ref.ask(0.4)
    (record,) = warnings(caplog)
    assert record.levelno == logging.WARNING
    assert record.address == "blocker"  # type: ignore[attr-defined]
    assert "blocker has held the loop for over 100 ms" in record.getMessage()
    assert f"{__file__}:{Blocker.block.__code__.co_firstlineno + 2}" in record.getMessage()


async def test_a_quick_handler_is_not_named(caplog: pytest.LogCaptureFixture) -> None:
    """Nor are many quick ones in a row, between which others have their turn."""
    async with open_system() as system:
        ref = await system.spawn(Blocker, name="blocker")
        for _ in range(20):
            await ref.ask(0.01)
    assert not warnings(caplog)


async def test_host_code_that_blocks_is_told_apart(caplog: pytest.LogCaptureFixture) -> None:
    """The body of a system is nobody's handler."""
    async with open_system() as system:
        await system.spawn(Blocker)
        time.sleep(0.4)  # noqa: ASYNC251  # what is to be found
    assert ["host code" in record.getMessage() for record in warnings(caplog)] == [True]
