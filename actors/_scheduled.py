"""Task orders drawn from a seed: the one place that reaches into trio's scheduler.

trio runs what is ready in batches, in random order. For Hypothesis it has a private switch, with which it sorts a batch by age and
shuffles it with its random source. While a block of `scheduled` lasts, the switch is on and the source is `Orders`, which
draws, at each batch that has a task in it:

    its order
    which of its tasks are late     they come with the next batch, as if each had met one more checkpoint; one always runs
    how many messages an actor      `_receive.BATCH`, between two checkpoints of its loop: with 1 every message can be overtaken
    may handle at a stretch

A batch without tasks draws nothing, so idle turns of the loop, which the wall clock brings, do not change what follows.
"""

import random
import sys
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import trio

from . import _receive
from ._errors import ConfigError

SWITCH, SOURCE = "_ALLOW_DETERMINISTIC_SCHEDULING", "_r"
LATE = 0.25
BATCHES = (1, 2, 3, _receive.BATCH)


class Orders(random.Random):
    """A random source for trio's scheduler; trio has it shuffle each batch of ready tasks."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.chances = random.Random(f"chances of {seed}")  # noqa: S311  # no secret; apart, so that no draw shifts the orders

    def shuffle(self, x: Any) -> None:
        """Put the batch in order, taking some tasks out for the next one."""
        if not x:
            return
        super().shuffle(x)
        late = [task for task in x[1:] if self.random() < LATE]
        if late:
            x[:] = [task for task in x if task not in late]
            _run_module().GLOBAL_RUN_CONTEXT.runner.runq.extend(late)
        _receive.BATCH = self.choice(BATCHES)


def _run_module() -> Any:
    return sys.modules.get("trio._core._run")


def chances() -> random.Random:
    """A source for what is left to chance: of the block that is open here, else of its own."""
    orders = getattr(_run_module(), SOURCE, None)
    return orders.chances if isinstance(orders, Orders) else random.Random()  # noqa: S311  # no secret


def steerable() -> Any:
    """The module that holds trio's scheduler. Raises `ConfigError` if it does not read what `scheduled` sets."""
    run = _run_module()
    code = getattr(getattr(run, "unrolled_run", None), "__code__", None)
    read = code.co_names if code is not None else ()
    missing = [name for name in (SWITCH, SOURCE) if not hasattr(run, name)]
    missing += [name for name in (SWITCH, SOURCE, "shuffle", "runq", "GLOBAL_RUN_CONTEXT") if name not in read]
    if missing:
        raise ConfigError(
            f"scheduled() cannot steer trio {trio.__version__}: its scheduler has no {', '.join(dict.fromkeys(missing))} any more; "
            "test with a trio release that has (0.31 to 0.35 do), or run these tests without scheduled()"
        )
    return run


class Scheduled(AbstractContextManager[None]):
    """The block of `scheduled`."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._run: Any = None
        self._before: tuple[bool, random.Random, int] | None = None

    def __enter__(self) -> None:
        run = steerable()
        if isinstance(getattr(run, SOURCE), Orders):
            raise ConfigError("scheduled() is in effect already, and there is one scheduler to steer; leave that block first")
        self._before = (getattr(run, SWITCH), getattr(run, SOURCE), _receive.BATCH)
        self._run = run
        setattr(run, SOURCE, Orders(self._seed))
        setattr(run, SWITCH, True)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._before is not None, "left without having been entered"
        switch, source, _receive.BATCH = self._before
        setattr(self._run, SWITCH, switch)
        setattr(self._run, SOURCE, source)
        if error is not None:
            error.add_note(f"with the task order of scheduled({self._seed})")
