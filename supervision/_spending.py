"""What the sessions below a supervisor, or of a whole system, have spent on models, where a limit bounds it.

`max_requests`, `max_tokens` and `max_cost` of an agent bound one run; set on a supervisor or on the system they bound all that
its subtree spends, for as long as it lives. The bound is looked at before each request: what is under way then still ends.
"""

from collections.abc import Iterator

from actors._limits import Limits
from actors.agent._budget import refusal
from actors.agent._record import UNSPENT
from actors.models._blocks import Usage

from ._place import Place


class Spending:
    """The sums, by supervisor. `limits`: the system's own."""

    def __init__(self, limits: Limits | None) -> None:
        self._limits = limits
        self._sums: dict[Place | None, Usage] = {}

    def add(self, place: Place, usage: Usage) -> None:
        """A session at this place made a request."""
        for above, _, _ in self._above(place):
            self._sums[above] = self._sums.get(above, UNSPENT).plus(usage)

    def refusal(self, place: Place) -> str | None:
        """Why it may make no further one; None if it may."""
        told = (refusal(limits, self._sums.get(above, UNSPENT), whose) for above, limits, whose in self._above(place))
        return next((each for each in told if each is not None), None)

    def forget(self, place: Place) -> None:
        """It is gone."""
        self._sums.pop(place, None)

    def _above(self, place: Place) -> Iterator[tuple[Place | None, Limits, str]]:
        above = place.parent
        while above is not None:
            if above.spec.limits is not None:
                yield above, above.spec.limits, f"what runs below {above.address}"
            above = above.parent
        if self._limits is not None:
            yield None, self._limits, "the system"
