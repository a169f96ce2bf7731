"""The garbage collector of a process that serves sessions: short pauses, often, in place of long ones.

A thousand sessions are 200,000 objects, which a full collection looks at one by one while everybody waits. Rounds make no cycles,
so there is next to nothing for it to find. What is young is looked at whole as well, about a microsecond each: every 200 new
objects that is over in a millisecond; every 10,000, when all that sessions in flight made anew is with them, in fifty.

A library leaves the collector alone, so this is for whoever owns the process: the worker, and the benchmarks of such processes.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG, OLDER, OLD = 200, 10_000, 1_000  # as `gc.set_threshold` takes them


@contextmanager
def serving() -> Iterator[None]:
    """Leave alone what is there now, and look at what is young often. Afterwards it is as it was."""
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, OLDER, OLD)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
