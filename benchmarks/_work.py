"""The work that everybody does: one message type, and a count that it adds to.

`ADD` is made once and sent again and again, by every contestant alike: the question is what mail costs, not what a
record costs.
"""

from collections.abc import Sequence

from attrs import frozen


@frozen
class Add:
    amount: int


@frozen
class Total:
    pass


ADD = Add(1)
TOTAL = Total()
BURST = 64  # sends before a sender lets others run: what a reader of ours takes between two checkpoints
CAPACITY = 256  # of every bounded mailbox, channel and queue
SENDERS = 100  # of `fan_in`
RECEIVERS = 100  # of `tell_idle`
SETTLE = 4  # checkpoints after which every woken reader has read and waits again
WARM_UP = 20  # rounds of an agent before the clock starts: first uses build schemas and fill caches


def bursts(n: int, size: int = BURST) -> Sequence[int]:
    """`n` cut into bursts."""
    return [size] * (n // size) + ([n % size] if n % size else [])
