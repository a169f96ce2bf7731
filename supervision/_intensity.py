"""How many restarts are too many: a sliding window, its edge inclusive (OTP's `intensity` and `period`).

`max_restarts` restarts within `within` seconds are allowed; the failure that would need one more is not.
"""

from collections import deque


class Window:
    """The restarts of the last `within` seconds."""

    __slots__ = ("max_restarts", "times", "within")

    def __init__(self, max_restarts: int, within: float) -> None:
        self.max_restarts = max_restarts
        self.within = within
        self.times: deque[float] = deque()

    def allows(self, now: float) -> bool:
        """Count a restart at `now`; False, and not counted, if it is one too many."""
        while self.times and now - self.times[0] > self.within:
            self.times.popleft()
        if len(self.times) >= self.max_restarts:
            return False
        self.times.append(now)
        return True
