"""Our side of the mail scenarios: one typed handler, and a sender that knows back pressure."""

import trio

from actors import Actor, ActorRef, MailboxFull, handle

from ._work import ADD, TOTAL, Add, Total, bursts


class Count(Actor):
    def __init__(self) -> None:
        self.total = 0

    @handle
    async def add(self, message: Add) -> int:
        self.total += message.amount
        return self.total

    @handle
    async def report(self, _message: Total) -> int:
        return self.total


async def send_in_bursts(ref: ActorRef, n: int) -> None:
    """Send without waiting, up to `BURST` between two checkpoints; where the mailbox is full, wait for room."""
    for size in bursts(n):
        for _ in range(size):
            try:
                ref.send_nowait(ADD)
            except MailboxFull:
                await ref.send(ADD, wait=60)
        await trio.lowlevel.checkpoint()


async def total(ref: ActorRef) -> int:
    """What it has counted once all that was sent before is handled."""
    while True:
        try:
            counted: int = await ref.ask(TOTAL, timeout=60)
        except MailboxFull:
            await trio.lowlevel.checkpoint()
        else:
            return counted
