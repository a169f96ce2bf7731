"""Dead letters: accepted mail that nobody will handle. Bounded, counted, listed, replayable; never silence."""

from collections import deque
from collections.abc import Awaitable, Callable

import trio
from attrs import frozen

from actors._envelope import Envelope, Receipt

KEPT = 1000


@frozen
class DeadLetter:
    """Mail that was accepted for `recipient` and will not be handled; `reason` says why."""

    envelope: Envelope
    recipient: str
    reason: str


class DeadLetters:
    """The last 1,000 dead letters, oldest first; `total` counts all there ever were."""

    def __init__(self, resend: Callable[[DeadLetter], Awaitable[Receipt]]) -> None:
        self.total = 0
        self._kept: deque[DeadLetter] = deque(maxlen=KEPT)
        self._resend = resend

    def add(self, letter: DeadLetter) -> None:
        """Keep one."""
        self.total += 1
        self._kept.append(letter)

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, index: int) -> DeadLetter:
        kept = len(self._kept)
        if not -kept <= index < kept:
            there = f"write 0 (the oldest) to {kept - 1}, or -1 for the newest" if kept else "none is kept"
            raise IndexError(f"there is no dead letter {index}: {there}; {self.total} were seen in all")
        return self._kept[index]

    async def replay(self, index: int) -> Receipt:
        """Send the letter at `index` to its recipient again, as its sender, and take it off the list.

        Raises as `ActorRef.send`; the letter then stays where it is. The asker of an ask is not waiting any more. `IndexError`, which
        says what is kept, if there is no such letter.
        """
        await trio.lowlevel.checkpoint()
        letter = self[index]
        self._kept.remove(letter)
        sent = False
        try:
            receipt = await self._resend(letter)
            sent = True
        finally:
            if not sent and len(self._kept) < KEPT:
                self._kept.insert(min(index % (len(self._kept) + 1), len(self._kept)), letter)
        return receipt

    def __repr__(self) -> str:
        return f"<DeadLetters kept={len(self._kept)} total={self.total}>"
