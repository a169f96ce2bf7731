"""A plain actor: its own state, one message at a time, and answers that a type checker knows the type of."""

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
    """Tell it once, ask it once."""
    async with open_system() as system:
        counter = await system.spawn(Counter, 10, name="counter")
        counter.send_nowait(Add(1))
        print(await counter.ask(Add(2), timeout=5))


if __name__ == "__main__":
    trio.run(main)
