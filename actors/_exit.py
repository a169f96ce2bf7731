"""How an actor's life ends, as a value.

An exit says what happened. What happens next (a restart, an escalation, nothing) is the supervisor's to say,
so no exit knows of one. The split is OTP's: `normal`, `shutdown` and every other reason; here `Finished` and
`Stopped` are normal, `Failed` and `Killed` are not.
"""

from enum import StrEnum
from typing import Any

from attrs import frozen


class Status(StrEnum):
    """Where an actor or a session stands now.

    Plain actors use `starting`, `running` (in a handler), `idle`, `restarting`, `stopping`, `stopped` and `failed`;
    sessions use `ready` (never ran), `running`, `waiting`, `idle`, `paused`, `failed` and `stopped`.
    """

    STARTING = "starting"
    READY = "ready"
    RUNNING = "running"
    WAITING = "waiting"
    IDLE = "idle"
    PAUSED = "paused"
    RESTARTING = "restarting"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


@frozen
class Exit:
    """Base of the four ways a life can end. Immutable, comparable."""

    @property
    def normal(self) -> bool:
        """True for `Finished` and `Stopped`: ends that a transient actor is not restarted after."""
        return isinstance(self, Finished | Stopped)


@frozen
class Finished(Exit):
    """The actor said it was done (`finish`), or its function returned."""

    value: Any = None


@frozen
class Stopped(Exit):
    """Somebody asked it to stop and it did, cleanup included."""

    reason: str = "stop"


@frozen
class Failed(Exit):
    """It raised. The error's traceback was turned into text at the boundary (a traceback pins every frame's locals)."""

    error: BaseException


@frozen
class Killed(Exit):
    """Its generation was revoked without cleanup, or it outlived its `shutdown` seconds."""

    reason: str = "kill"


@frozen
class Ended:
    """What `watch` delivers: whose life ended, how, and whether another one follows."""

    address: str
    exit: Exit
    restarting: bool = False
