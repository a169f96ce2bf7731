"""Where a crash becomes a value: the exception that ended a life, as an `Exit`.

A traceback pins the locals of every frame it passed (a thousand dead letters held 101 MB that way), so at this boundary it
is turned into text and dropped, from the error, its causes and, in a group, its leaves.
"""

import traceback

import trio

from ._errors import chain
from ._exit import Exit, Failed, Stopped


def leaves(error: BaseException) -> list[BaseException]:
    """The exceptions a group is made of, in order; the error itself if it is none."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for part in error.exceptions for leaf in leaves(part)]
    return [error]


def for_the_root(error: BaseException) -> BaseException | None:
    """The `KeyboardInterrupt` or `SystemExit` in it, which is nobody's to restart."""
    return next((leaf for leaf in leaves(error) if isinstance(leaf, KeyboardInterrupt | SystemExit)), None)


def verdict(error: BaseException) -> Exit:
    """How a life ended that raised: `Stopped` if only its cancellation came through, else `Failed`.

    A group is classified by its leaves: one real error makes it a failure, and one alone stands for its group.
    """
    real = [leaf for leaf in leaves(error) if not isinstance(leaf, trio.Cancelled)]
    if not real:
        return Stopped("cancelled")
    return Failed(for_the_root(error) or (real[0] if len(real) == 1 else error))


def as_text(error: BaseException) -> str:
    """The traceback as text, after which it is dropped from the error and all it carries."""
    text = "".join(traceback.format_exception(error))
    strip(error)
    return text


def strip(error: BaseException) -> None:
    """Drop the tracebacks of an error, its causes and its leaves."""
    for each in chain(error):
        for leaf in leaves(each):
            leaf.__traceback__ = None
            if leaf is not each:
                strip(leaf)
        each.__traceback__ = None
