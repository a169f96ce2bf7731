"""What happens next: systems, trees, restarts, sessions that run. `actors` is what happens."""

from ._dead import DeadLetter, DeadLetters
from ._portal import Portal
from ._runner import run
from ._session import RunStream, SessionRef
from ._spec import Backoff, ChildSpec, Supervisor
from ._system import System, open_system
from ._tree import Tree

__all__ = [
    "Backoff",
    "ChildSpec",
    "DeadLetter",
    "DeadLetters",
    "Portal",
    "RunStream",
    "SessionRef",
    "Supervisor",
    "System",
    "Tree",
    "open_system",
    "run",
]
