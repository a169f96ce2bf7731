"""The third example of the public face: a plain actor that is asked."""

import trio
from attrs import frozen

from actors import Actor, Ask, handle
from supervision import open_system


@frozen
class Add(Ask[int]):
    """Add to the total; the answer is the new one."""

    amount: int


class Counter(Actor):
    """Counts."""

    def __init__(self, start: int = 0) -> None:
        self.total = start

    @handle
    async def add(self, message: Add) -> int:
        """Add, and answer with the total."""
        self.total += message.amount
        return self.total


async def main() -> None:
    """Tell one, ask one."""
    async with open_system() as system:
        counter = await system.spawn(Counter, 10, name="counter")
        counter.send_nowait(Add(1))
        total: int = await counter.ask(Add(2), timeout=5)
        assert total == 13


if __name__ == "__main__":
    trio.run(main)
