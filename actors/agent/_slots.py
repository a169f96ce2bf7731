"""How many calls of a session may run: attached ones in `max_calls` slots, detached ones in a background of `max_detached`. Pure.

call                  takes
attached              a slot, from its start until it ends or detaches; those without one are queued, in call order
`attach=0`            no slot, but a place in the background from its start
detached              a place in the background until it ends
a system tool         nothing
"""

from collections.abc import Sequence

from ._actions import OpenCall
from ._record import State


def startable(calls: Sequence[OpenCall], state: State, max_calls: int, max_detached: float) -> tuple[str, ...]:
    """The queued ones that may start now."""
    slots = max_calls - sum(call.state == "running" and call.slot and call.detached is None for call in calls)
    room = max_detached - len(in_background(calls, state))
    start: list[str] = []
    for call in calls:
        if call.state == "queued" and (call.runtime or (slots if call.slot else room) > 0):
            start.append(call.id)
            slots -= call.slot
            room -= call.attach == 0
    return tuple(start)


def in_background(calls: Sequence[OpenCall], state: State) -> list[str]:
    """Those that run detached, oldest first, and those of this turn that detach at once."""
    mine = {call.id for call in calls if call.state == "running" and (call.detached is not None or call.attach == 0)}
    return [call for call in state.live if call in mine or call in state.placeholders]


def detachable(
    leaving: Sequence[OpenCall], calls: Sequence[OpenCall], state: State, max_detached: float
) -> tuple[OpenCall, ...]:
    """Those of `leaving` for which there is room in the background; one that is there already has its place."""
    there = in_background(calls, state)
    room = max(0, max_detached - len(there))
    others = [call for call in leaving if call.id not in there]
    fit = others if room >= len(others) else others[: int(room)]
    return tuple(call for call in leaving if call.id in there or call in fit)
