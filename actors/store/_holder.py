"""Who holds a session: one store of one process, by a name of its own. A lease of a process that is gone binds nobody.

The name says the machine, the process and when it began, so that another process of the machine can see that it is no more, and
need not wait until the lease runs out. A machine is what sees the same processes: containers of one host are two, and so is a
host before and after it was started anew. Where that cannot be seen, the lease holds until its time is over.
"""

import os
import socket
from functools import cache
from pathlib import Path
from secrets import token_hex

LEASE = 30.0  # seconds
RENEWED = 10.0  # seconds after which it is taken anew


def new_holder() -> str:
    """A name that nobody else has."""
    return f"{os.getpid()}.{_began(os.getpid())}.{token_hex(4)}@{_machine()}"


def is_gone(holder: str) -> bool:
    """Whether this holder's process certainly lives no more."""
    who, _, machine = holder.partition("@")
    pid, began, *_ = [*who.split("."), "", ""]
    if machine != _machine() or not pid.isdigit():
        return False
    now = _began(int(pid))
    if now or began:
        return now != began
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


@cache
def _machine() -> str:
    """Its name; and, where the system says, which start of it this is and whose processes are seen."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
        seen = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()}/{boot}/{seen:x}"


def _began(pid: int) -> str:
    """When a process began, in ticks since the machine did; blank if there is none, or the system does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    after_name = stat.rpartition(")")[2].split()
    return "" if after_name[0] == "Z" else after_name[19]  # a zombie is gone, though it is still listed
