"""What happens next: systems, trees, restarts, sessions that run. `actors` is what happens."""

from actors.store._api import SessionSummary

from ._dead import DeadLetter, DeadLetters
from ._portal import Portal
from ._runner import run
from ._session_ref import SessionRef
from ._spec import Backoff, ChildSpec, Factory, Restart, Supervisor
from ._stream import Events, RunStream
from ._system import System, open_system
from ._tree import SystemStatistics, Tree

__all__ = [
    "Backoff",
    "ChildSpec",
    "DeadLetter",
    "DeadLetters",
    "Events",
    "Factory",
    "Portal",
    "Restart",
    "RunStream",
    "SessionRef",
    "SessionSummary",
    "Supervisor",
    "System",
    "SystemStatistics",
    "Tree",
    "open_system",
    "run",
]
