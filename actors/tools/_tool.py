"""Tools: functions that a model may call. A decorator marks a method, a class collects its marked methods, a call runs one.

@tool on a method of an agent      marks it; the method stays what it was; `collect` makes the class's `Tool`s, once
tool(fn), a plain function, Tool   in an agent's `tools`; `as_tool` makes each a `Tool`
tool.prepare(agent, arguments, context)    validates what the model sent; calling what it returns runs the function
"""

import asyncio
import inspect
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, TypeVar, get_args, overload

import trio
from attrs import field, frozen

from actors._annotations import nearby_names
from actors._errors import ConfigError
from actors._inherit import INHERIT, Inherit
from actors._outcome import Outcome

from ._context import ToolContext
from ._loop import call_on_loop
from ._process import call_in_process, check_isolated
from ._signature import Signature, read_signature
from ._value import returned

F = TypeVar("F", bound=Callable[..., Any])
Isolation = Literal["task", "process", "asyncio"]
Kind = Literal["async", "stream", "sync"]
NAME_FORM = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
MARK = "__postroom_tool__"
_THREADS = trio.CapacityLimiter(math.inf)  # the tree bounds calls; a second bound here could hold up one that may run


@frozen
class Options:
    """What the author said about a tool, beside the function itself."""

    name: str | None = None
    attach: float | Inherit | None = INHERIT
    timeout: float | None = None
    idempotent: bool = False
    hidden: bool = False
    isolation: Isolation = "task"


@frozen(eq=False)
class Mark:
    """What the decorator leaves on a function; `names` are those its annotations found around it."""

    options: Options
    names: Mapping[str, Any]


@frozen(init=False, eq=False)
class Tool:
    """A function that a model may call.

    `attach` is how many seconds a call is waited for before it goes on by itself and its result comes as mail: None for
    ever, 0 not at all, absent as the policy says. `timeout` is how many seconds it may run. `idempotent`: it may be started
    again after a crash, with the same key. `hidden`: models are not told of it. `schema` is a JSON Schema object; an author
    who gives one answers for it.

    Processes that a call started, through trio, asyncio or `subprocess`, do not survive it if it is cancelled or out of time:
    they, their groups and their descendants get SIGTERM, and SIGKILL 100 ms later. A tool says no more than
    `await trio.run_process(...)`; a call that ends by itself may leave some running.

    `isolation="process"` runs it in a worker process (a plain sync function at the top of a module, without a `ToolContext`;
    needs the extra `postroom[process]`). A call that is cancelled or out of time is then really killed, also in C code, and
    with it what it started, unless that made a session of its own; a crash of the process is a failed outcome. The first call
    waits until a process has started and imported the program; later ones reuse it until the run ends. A script has to start
    what it runs below `if __name__ == "__main__":`.

    `isolation="asyncio"` is for an async function or generator written for asyncio (aiohttp, asyncpg, playwright): all of them
    share one event loop in a thread of its own, which lives until the run ends, so a client made in one call can be used in the
    next. A cancelled call cancels its asyncio task and waits for its cleanup; what cancels the task from within ends the call as
    `cancelled`. Context variables and `ToolContext.progress` work there. From there an actor is written to with
    `await asyncio.to_thread(ref.send_from_thread, ...)`, and nothing that blocks may stand there.

    Raises:
        ConfigError: It cannot be a tool as it is written. The text names it and the parameter, and says what to write.
    """

    fn: Callable[..., Any]
    name: str
    description: str
    schema: Mapping[str, Any]
    attach: float | Inherit | None
    timeout: float | None
    idempotent: bool
    hidden: bool
    isolation: Isolation
    kind: Kind = field(repr=False)
    _signature: Signature = field(repr=False)
    _method: Any = field(repr=False)

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        schema: Mapping[str, Any] | None = None,
        attach: float | Inherit | None = INHERIT,
        timeout: float | None = None,
        idempotent: bool = False,
        hidden: bool = False,
        isolation: Isolation = "task",
    ) -> None:
        frame = inspect.currentframe()
        names = nearby_names(fn, frame.f_back if frame else None)
        mark = Mark(Options(name, attach, timeout, idempotent, hidden, isolation), {**mark_of(fn, UNMARKED).names, **names})
        fields = compiled(fn, mark, where_of(fn), schema=schema)
        self.__attrs_init__(**fields if description is None else {**fields, "description": description})

    def parse(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The function's arguments from what a model sent, without the context.

        Raises:
            BadArguments: They do not fit; the text tells the model every problem with its path.
        """
        return self._signature.parse(arguments)

    def prepare(self, instance: object, arguments: Mapping[str, Any], context: ToolContext | None) -> Callable[[], Any]:
        """Validate a call; calling what this returns runs it. `instance` is the agent, for a method; else it is not used.

        What comes out of that call is, by `kind`: a coroutine ("async"), an async generator ("stream"), or the result ("sync": it
        may block, so call it in a thread). `to_value` makes JSON of the result.

        Raises:
            BadArguments: As `parse`; nothing ran.
        """
        given = self._signature.parse(arguments)
        if self._signature.context is not None:
            given[self._signature.context] = context
        if self._method is None:
            return partial(self.fn, **given)
        return partial(self._method.__get__(instance, type(instance)), **given)

    async def call(self, instance: object, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """Validate and run a call; the result as JSON with media in it, or the outcome by which it defers. What the function raises comes through.

        A sync function runs in a worker thread. Cancelled, the thread is abandoned: it goes on, and its result is dropped. With
        `isolation="process"` it runs in a worker process, which is killed; what it raises comes as a `ToolError` that tells it.
        With `isolation="asyncio"` it runs on the event loop, and its cleanup is over when `Cancelled` leaves. Each item of an async
        generator is noted as progress when it comes; the last one is the result. Cancelled, it is closed.

        Raises:
            BadArguments: As `parse`; nothing ran.
            CodecError: It ran, and its result has no JSON.
        """
        if self.isolation == "process":
            self.parse(arguments)  # the process reads them again, into its own objects
            return await call_in_process(self.fn, arguments, context)
        run = self.prepare(instance, arguments, context)
        if self.kind == "sync":
            return returned(await trio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=_THREADS))
        on_loop = self.isolation == "asyncio"
        if self.kind == "stream":
            run = partial(_last, run, context, partial(asyncio.sleep, 0) if on_loop else trio.lowlevel.checkpoint)
        if on_loop:
            return returned(await call_on_loop(run, f"{context.session}/{context.call}"))
        return returned(await run())


async def _last(run: Callable[[], Any], context: ToolContext, pause: Callable[[], Awaitable[None]]) -> Any:
    """The last item of an async generator. Between two a cancel gets in, also where the generator waits for nothing."""
    last = None
    async with aclosing(run()) as items:
        async for item in items:
            last = returned(item)
            if not isinstance(last, Outcome):
                context.progress(last)
            await pause()
    return last


UNMARKED = Mark(Options(), MappingProxyType({}))


def compiled(
    fn: Callable[..., Any], mark: Mark, where: str, *, schema: Mapping[str, Any] | None = None, method: Any = None
) -> dict[str, Any]:
    """A tool's fields. `method` is what stands in a class, where it binds: its first parameter is not the model's."""
    options = mark.options
    name = options.name if options.name is not None else getattr(fn, "__name__", "")
    _check(name, options, where)
    skip = 0 if method is None or isinstance(method, staticmethod) else 1
    signature, kind = read_signature(fn, name, where, mark.names, skip=skip, schema=schema), _kind(fn, where)
    if options.isolation == "process":
        check_isolated(fn, kind, signature, where, method=method is not None)
    if options.isolation == "asyncio" and kind == "sync":
        raise ConfigError(
            f'{where}: isolation="asyncio" runs async functions, and this is sync; leave it out: it runs in a thread'
        )
    return {
        "fn": fn,
        "name": name,
        "description": signature.description,
        "schema": signature.schema,
        "attach": options.attach,
        "timeout": options.timeout,
        "idempotent": options.idempotent,
        "hidden": options.hidden,
        "isolation": options.isolation,
        "kind": kind,
        "signature": signature,
        "method": method,
    }


def _check(name: object, options: Options, where: str) -> None:
    if not (isinstance(name, str) and NAME_FORM.match(name)):
        raise ConfigError(f"{where}: its name {name!r} is not 1 to 64 of A-Z a-z 0-9 _ -; give it one with name=")
    if options.isolation not in get_args(Isolation):
        raise ConfigError(f"{where}: found isolation={options.isolation!r}; there are {', '.join(get_args(Isolation))}")
    if options.attach is not None and options.attach is not INHERIT and not _seconds(options.attach, least=0):
        raise ConfigError(f"{where}: attach={options.attach!r} is no time; write seconds, 0 (not at all) or None (for ever)")
    if options.timeout is not None and (not _seconds(options.timeout, least=0) or options.timeout == 0):
        raise ConfigError(f"{where}: timeout={options.timeout!r} is no time; write seconds, or None (as long as it takes)")


def _seconds(value: object, *, least: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= least


def _kind(fn: Any, where: str) -> Kind:
    runs = fn if inspect.isroutine(fn) or isinstance(fn, partial) else type(fn).__call__
    if inspect.isasyncgenfunction(runs):
        return "stream"
    if inspect.iscoroutinefunction(runs):
        return "async"
    if inspect.isgeneratorfunction(runs):
        raise ConfigError(f"{where} is a generator; write an async generator (its items are progress), or return a list")
    return "sync"


def where_of(fn: Any) -> str:
    """A function as errors name it."""
    return f"tool {getattr(fn, '__qualname__', repr(fn)).rpartition('<locals>.')[2]}"


def mark_of(raw: Any, default: Any = None) -> Any:
    """The mark on what stands in a class, on or below a `staticmethod` or `classmethod`."""
    return getattr(raw, MARK, None) or getattr(getattr(raw, "__func__", None), MARK, None) or default


@overload
def tool(fn: F, /) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    attach: float | Inherit | None = INHERIT,
    timeout: float | None = None,
    idempotent: bool = False,
    hidden: bool = False,
    isolation: Isolation = "task",
) -> Callable[[F], F]: ...
def tool(
    fn: F | None = None,
    /,
    *,
    name: str | None = None,
    attach: float | Inherit | None = INHERIT,
    timeout: float | None = None,
    idempotent: bool = False,
    hidden: bool = False,
    isolation: Isolation = "task",
) -> F | Callable[[F], F]:
    """Let models call this: a method of an agent, or a function that an agent has in its `tools`.

    Its name, docstring and annotations are what a model is shown: the docstring's `Args:` section and `Annotated[..., "text"]`
    describe the arguments. It may be sync (it then runs in a thread), async, or an async generator, whose items are progress and
    whose last one is the result. It stays callable as it was. A subclass's method of the same name replaces it, with its options
    if it is not decorated anew; `name = None` in a subclass takes it away. For the options see `Tool`.

    Raises:
        ConfigError: When the class is made, or the `Tool`: see `Tool`.
    """
    options = Options(name, attach, timeout, idempotent, hidden, isolation)
    frame = inspect.currentframe()
    around = frame.f_back if frame else None

    def mark(function: F) -> F:
        try:
            setattr(function, MARK, Mark(options, nearby_names(function, around)))
        except AttributeError:
            raise ConfigError(f"{where_of(function)} cannot be marked; write Tool({where_of(function)[5:]}, ...)") from None
        return function

    return mark if fn is None else mark(fn)
