"""What hangs, told to a person: the tree, who waits for whom, and where each task stands."""

import traceback
from typing import Any

import trio

from ._tree import snapshot


def report(root: Any) -> str:
    """The tree, the waits and the stack of every task of a system, as text."""
    parts = [str(snapshot(root))]
    waits = [f"{waiter} waits for {', '.join(targets)}" for waiter, targets in root.waits.listing()]
    if waits:
        parts.append("\n".join(waits))
    parts += [
        _stack(task) for task in sorted(root.nursery.child_tasks, key=lambda task: task.name) if "(deadlines)" not in task.name
    ]
    return "\n\n".join(parts)


def _stack(task: trio.lowlevel.Task) -> str:
    frames = traceback.StackSummary.extract(task.iter_await_frames())
    return f"{task.name}:\n{''.join(traceback.format_list(frames))}".rstrip()
