"""Where a crash becomes a value: the exception that ended a life, as an `Exit`.

A traceback pins the locals of every frame it passed (a thousand dead letters held 101 MB that way), so at this boundary it
is turned into text and dropped, from the error, its causes and, in a group, its leaves.
"""

import traceback

import trio

from ._errors import leaves
from ._exit import Exit, Failed, Stopped


def for_the_root(error: BaseException) -> BaseException | None:
    """The `KeyboardInterrupt` or `SystemExit` in it, which is nobody's to restart."""
    return next((leaf for leaf in leaves(error) if isinstance(leaf, KeyboardInterrupt | SystemExit)), None)


class StrayCancelError(Exception):
    """A `Cancelled` came out of a life that nobody had cancelled."""


def verdict(error: BaseException, *, cancelled: bool = True) -> Exit:
    """How a life ended that raised: `Stopped` if only its cancellation came through, else `Failed`.

    Where nobody `cancelled` it, a `Cancelled` is an error like any other: of a scope that was left, kept and raised again. A group is classified by its leaves: one real error makes it a failure, and one alone stands for its group.
    """
    real = [leaf for leaf in leaves(error) if not isinstance(leaf, trio.Cancelled)]
    if not real and not cancelled:
        stray = StrayCancelError("it let out a trio.Cancelled, and nobody had cancelled it; never keep one and raise it again")
        stray.__cause__ = error
        return Failed(stray)
    if not real:
        return Stopped("cancelled")
    return Failed(for_the_root(error) or (real[0] if len(real) == 1 else error))


def as_text(error: BaseException) -> str:
    """The traceback as text, after which it is dropped from the error and all it carries."""
    text = "".join(traceback.format_exception(error))
    strip(error)
    return text


def strip(error: BaseException) -> None:
    """Drop the tracebacks of an error and of all it carries: causes, contexts (suppressed ones too), leaves."""
    seen: dict[int, BaseException] = {}
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop()
        if each is None or id(each) in seen:
            continue
        seen[id(each)] = each
        each.__traceback__ = None
        left += (each.__cause__, each.__context__)
        if isinstance(each, BaseExceptionGroup):
            left += each.exceptions
