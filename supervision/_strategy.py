"""What a supervisor does when a child's life ends: OTP's tables, pure.

Whether a child is restarted:

                 normal exit     abnormal exit
    permanent    yes             yes
    transient    no              yes
    temporary    no              no

Which children a restart takes with it:

    one_for_one     the child
    one_for_all     all: those that live are stopped in reverse order, then all are started in order
    rest_for_one    the child and those after it, likewise

As OTP reads it, a group restart also starts transient siblings that had finished, and takes a temporary sibling down without
starting it again. Only ends that nobody asked for reach this table, and what somebody stopped stays stopped.
"""

from collections.abc import Sequence

from attrs import frozen

from actors._exit import Exit

from ._spec import Restart, Strategy

RESTARTS: dict[Restart, dict[bool, bool]] = {  # restart -> exit.normal -> restarted
    "permanent": {True: True, False: True},
    "transient": {True: False, False: True},
    "temporary": {True: False, False: False},
}


@frozen
class Regroup:
    """Stop these children, in this order; then start those, in that order."""

    stop: tuple[str, ...]
    start: tuple[str, ...]


@frozen
class Leave:
    """Restart nothing."""


@frozen
class Sibling:
    """A child as the table sees it, in starting order."""

    name: str
    restart: Restart
    alive: bool
    stopped: bool = False  # somebody asked for it


def decide(strategy: Strategy, siblings: Sequence[Sibling], ended: str, exit: Exit) -> Regroup | Leave:
    """What the end of `ended` asks of its supervisor."""
    index = next(place for place, sibling in enumerate(siblings) if sibling.name == ended)
    if not RESTARTS[siblings[index].restart][exit.normal]:
        return Leave()
    if strategy == "one_for_one":
        group: Sequence[Sibling] = siblings[index : index + 1]
    else:
        group = siblings[index:] if strategy == "rest_for_one" else siblings
    return Regroup(
        stop=tuple(sibling.name for sibling in reversed(group) if sibling.alive and sibling.name != ended),
        start=tuple(sibling.name for sibling in group if sibling.restart != "temporary" and not sibling.stopped),
    )
