"""The words between the turn and the loop: phases, points, open calls, and what the turn asks for. Frozen but for the open call."""

from collections.abc import Callable, Mapping
from enum import Enum
from math import inf
from typing import Literal

from attrs import define, field, frozen

from actors._envelope import Envelope
from actors._outcome import Outcome
from actors.models._blocks import ToolCall
from actors.models._items import Nudge

from ._record import Commit
from ._wait import WaitFor, WokenBy

Match = Callable[[Envelope], bool]
RunEnd = Literal["answered", "stopped", "limit", "failed"]


class Phase(Enum):
    """Where a run stands."""

    IDLE = "idle"
    MODEL = "model"
    CALLS = "calls"
    ANSWERED = "answered"


class Point(Enum):
    """The receive points that block."""

    R2 = "idle"
    R3A = "attached"
    R3B = "wait"


@define(eq=False)
class OpenCall:
    """A call of the last completion that has no result yet. `until` is its attach deadline."""

    id: str
    tool: str
    attach: float | None
    until: float
    runtime: bool = False  # a system tool: takes no slot, never detaches
    state: Literal["queued", "running", "final"] = "queued"
    detached: str | None = None
    wait: WaitFor | None = None

    @property
    def slot(self) -> bool:
        """Whether it takes one of the `max_calls` places while it runs attached; one with `attach=0` never is."""
        return not self.runtime and self.attach != 0


@frozen(kw_only=True)
class Switches:
    """What an agent does differently; each is an attribute of its class, described there."""

    interrupt_completions: bool = False
    pause_cancels_calls: bool = False
    resume_on_any_mail: bool = False
    mail_in_tool_result: bool = False


# ------------------------------------------------------------------ what to do
@frozen
class Wait:
    """Receive at this point, until mail that `match` holds for, or until the time `until`."""

    point: Point
    match: Match
    until: float = inf


@frozen
class Act:
    """Start these calls; these ended (their outcomes are known); these go on detached."""

    start: tuple[str, ...] = ()
    outcomes: Mapping[str, Outcome] = field(factory=dict)
    detached: Mapping[str, str] = field(factory=dict)
    woken: Mapping[str, WokenBy] = field(factory=dict)

    def __bool__(self) -> bool:
        return bool(self.start or self.outcomes or self.detached or self.woken)


@frozen
class Ask:
    """Commit the fold (with results, if calls were open), then ask the model."""

    commit: Commit
    delivered: tuple[Envelope, ...]
    nudge: Nudge | None
    begins: bool
    exhausted: bool = False  # a host's inbox may not restart the count of rounds any more, for the first time


@frozen
class Unpause:
    """Mail ends the pause."""

    commit: Commit


@frozen
class End:
    """The run is over."""

    reason: Literal["answered", "stopped", "limit", "failed"]


Action = Wait | Act | Ask | Unpause | End


@frozen
class Completed:
    """What a completion asks of the loop: its commit (C1), the calls to start now, whether it answers."""

    commit: Commit
    start: tuple[str, ...] = ()
    announced: tuple[ToolCall, ...] = ()
    settled: Mapping[str, Outcome] = field(factory=dict)
    answer: str | None = None
    failure: str | None = None


@frozen
class Applied:
    """What an order asks of the loop: its commit, the calls to cancel, whether it ended the run, and whether there is none any more."""

    commit: Commit
    cancelled: Mapping[str, Outcome] = field(factory=dict)
    stopped: bool = False
    rests: bool = False
