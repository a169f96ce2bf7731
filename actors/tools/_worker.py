"""Inside a worker process: a tool call, from JSON to JSON.

What crosses between the processes is bytes of JSON (`_json`), both ways: a call's arguments, what it returned, the words of
what it raised. Nothing that a model wrote, and no exception, is ever unpickled. The worker finds the function by its name
and reads the arguments with the same strict parser that the parent has just read them with.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

import msgspec

from actors._errors import CodecError, ToolError
from actors._json import escaped, unfit
from actors._problems import MisfitError
from actors._tagged import tagged_converter
from actors._verdict import as_text
from actors._waiters import guarded

from ._signature import Signature, read_signature
from ._value import to_value

_read: Callable[[Any, Any], Any] = tagged_converter({}).get_structure_hook(Any)


def pack(value: Any) -> bytes:
    """A JSON value with media in it, as bytes that `unpack` reads back.

    Raises:
        CodecError: Something in it has no JSON.
    """
    try:
        doc = escaped(value)
    except MisfitError as error:
        raise CodecError(str(error)) from None
    if found := unfit(doc):
        raise CodecError(found.sentence)
    return msgspec.json.encode(doc)


def unpack(data: bytes) -> Any:
    """What `pack` was given."""
    return _read(msgspec.json.decode(data), Any)


def begin() -> None:
    """Make this process one that can be killed whole and whose end is seen at once. Runs before its first call.

    It leads a session of its own, so what it starts can be killed with it, and a Ctrl-C at the terminal is not its business.
    What it starts does not hold its ends of the pipes, which would hide its death. It does not outlive its parent.
    """
    os.setsid()
    given = [fd for fd in (int(each.name) for each in Path("/dev/fd").iterdir()) if fd > 2 and _inheritable(fd)]
    for fd in given:
        os.set_inheritable(fd, False)
    os.register_at_fork(after_in_child=partial(_let_go, given))
    threading.Thread(target=_end_with_parent, name="end with the parent", daemon=True).start()


def _inheritable(fd: int) -> bool:
    """Whether it was handed to this process on purpose: Python opens none so."""
    with suppress(OSError):  # the one that the listing itself was read from
        return os.get_inheritable(fd)
    return False


def _let_go(given: list[int]) -> None:
    """In a fork without exec: the numbers stay taken, for objects hold them; the pipes are not held."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in given:
        os.dup2(null, fd, inheritable=False)
    os.close(null)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.killpg(0, signal.SIGKILL)


def importing_main() -> bool:
    """Whether this process is being started by another Python and is importing that one's script for it."""
    return getattr(multiprocessing.current_process(), "_inheriting", False)


def answer(job: bytes) -> bytes:
    """Make the call that a job describes. Whatever the tool does, bytes come back: its result, or the words of its error."""
    try:
        return pack({"value": _called(**unpack(job))})
    except BaseException as error:  # noqa: BLE001  # unpickled in the parent it would be raised there: SystemExit, say
        return pack(_told(error))


def _called(module: str, name: str, arguments: Mapping[str, Any]) -> Any:
    fn, signature = _tool(module, name)
    return to_value(fn(**signature.parse(arguments)))


@cache
def _tool(module: str, name: str) -> tuple[Callable[..., Any], Signature]:
    """The function, and its parameters as a tool with a schema of its own has them: the parent knows which was meant."""
    found = getattr(import_module(module), name)
    fn = found if isinstance(found, FunctionType) else found.fn  # by now the name may hold the `Tool` made of it
    return fn, read_signature(fn, name, f"tool {name}", {}, schema={})


def _told(error: BaseException) -> dict[str, str | None]:
    """An error as the parent tells it: a `ToolError`'s text alone, else with the type's name and a traceback for the log."""
    text, _ = guarded(str, error)
    if isinstance(error, ToolError):
        return {"error": _clean(text), "traceback": None}
    return {"error": _clean(f"{type(error).__name__}: {text}"), "traceback": _clean(as_text(error))}


def _clean(text: object) -> str:
    return str(text).encode(errors="backslashreplace").decode()
