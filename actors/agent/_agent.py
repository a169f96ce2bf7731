"""Agents as people write them, and what an activation of one makes of them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, ClassVar

from attrs import field, fields, frozen

from actors._actor import Actor
from actors._check import check_type, require
from actors._envelope import Envelope
from actors._errors import ActorsError, ConfigError, sentence
from actors._life import Timer
from actors._limits import SESSION_DEFAULTS, Limits, WakeKind
from actors._text import readable
from actors._waiters import guarded
from actors.models._api import Model, ToolSchema
from actors.models._resolve import resolve_model
from actors.tools._collect import as_tool, by_name, collect
from actors.tools._mcp import MCPServer
from actors.tools._mcp_link import Link
from actors.tools._tool import Tool
from actors.tools._toolset import Toolset

from ._actions import Switches
from ._compact import Compact, compact_of
from ._handlers import check_handled
from ._inbox import Inbox, check_inbox
from ._toolbox import TOOLBOX

SWITCHES = tuple(each.name for each in fields(Switches))
DETACHABLE = ("wait", "get_tool_call_status", "list_running_tool_calls", "cancel_tool_call")


class Agent(Actor):
    """Base of agents: instructions, a model, tools. Open it as a session; it never runs outside one.

    Instructions are the class attribute (a text, or a function evaluated per run), else the nearest docstring below `Agent`.
    An agent is made without arguments, once per activation. Each class attribute here can be overridden by `open(..., name=value)`.

    Attributes:
        model: `provider:name`, a `Model`, or a sequence of these, tried in order; one whose provider asked to be left alone is passed over.
        model_options: Passed to the provider as they are (temperature, ...).
        tools: Functions, `Tool`s and `MCPServer`s beside the `@tool` methods.
        toolbox: Names of system tools; by default those for waiting and calls, if a tool can detach.
        limits: What this agent's sessions may do.
        max_rounds: Requests since a person last spoke before it has to wrap up.
        interrupt_completions: An interrupt cancels the answer in progress; the model is asked again, with the interrupt.
        pause_cancels_calls: A pause cancels the calls that run.
        resume_on_any_mail: Mail that comes after a pause ends it.
        mail_in_tool_result: Mail read together with results stands in the last of them (for models that take no user turn there).
        compact: What a request holds of the transcript, given all its items; what is kept is never touched. A call and its results
            stay together, and a user item comes first. Such as: `items[:1] + items[-40:]`, begun at an `AssistantItem`. What it is
            given is used as a tuple, costs nothing however long the session is, and is good for this request.
        inbox: Strings of the host's, read while a run goes on.
        deps: Whatever `open(..., deps=...)` was given; never stored.
    """

    instructions: ClassVar[str | Callable[..., str] | None] = None
    model: ClassVar[str | Model | Sequence[str | Model]]
    model_options: ClassVar[Mapping[str, Any]] = {}
    tools: ClassVar[Sequence[Callable[..., Any] | Tool | MCPServer]] = ()
    toolbox: ClassVar[Sequence[str]]
    limits: ClassVar[Limits | None] = None
    max_rounds: ClassVar[int] = 10
    interrupt_completions: ClassVar[bool] = False
    pause_cancels_calls: ClassVar[bool] = False
    resume_on_any_mail: ClassVar[bool] = False
    mail_in_tool_result: ClassVar[bool] = False
    compact: ClassVar[Compact | None] = None
    inbox: ClassVar[Inbox | None] = None
    deps: Any = None

    __tools__: ClassVar[Mapping[str, Tool]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for method, kinds in cls.__handled__.items():
            for kind in kinds:
                check_handled(cls.__name__, kind, method)
        cls.__tools__ = tools_of(cls, cls.tools)
        servers_of(cls, cls.tools)

    async def receive(self, match: Any = None, timeout: float | None = None) -> Envelope | None:  # noqa: ARG002, ASYNC109
        """Not in an agent: its mail is read by its loop. Raises `ActorsError`."""
        raise ActorsError("an agent's handler has no `receive`: let each of its messages have a handler, or ask a plain actor")

    def finish(self, value: object = None) -> None:  # noqa: ARG002
        """Not in an agent: a session is for as long as somebody may write to it. Raises `ActorsError`."""
        raise ActorsError("an agent does not `finish`: stop its session, `await system.session(...).stop()`")

    def send_after(self, seconds: float, body: object) -> Timer:  # noqa: ARG002
        """Not in an agent: what a session is told later is kept with it. Raises `ActorsError`."""
        raise ActorsError("an agent has no `send_after`: use the session's, `await system.session(...).send_after(...)`")


OPTIONS = (
    "instructions", "model", "model_options", "tools", "toolbox", "limits", "max_rounds", *SWITCHES, "compact", "inbox", "deps",
)  # fmt: skip


Listed = Sequence[Callable[..., Any] | Tool | MCPServer]


def tools_of(agent: type[Agent], listed: Listed) -> Mapping[str, Tool]:
    """The tools of an agent by name: its methods, and those listed. Not those of servers, which only they know."""
    ours = [as_tool(each) for each in listed if not isinstance(each, MCPServer)]
    named = by_name([*collect(agent).values(), *ours], agent.__name__)
    taken = [name for name in named if name in TOOLBOX]
    if taken:
        raise ConfigError(
            f"{agent.__name__} has a tool called {taken[0]!r}, which is a system tool's name; give it another with name="
        )
    return named


def servers_of(agent: type[Agent], listed: Listed) -> tuple[MCPServer, ...]:
    """The MCP servers among what is listed; ConfigError where two have one name."""
    found = tuple(each for each in listed if isinstance(each, MCPServer))
    names = [each.name for each in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"{agent.__name__} has two MCP servers called {twice[0]!r}; give one another with name=")
    return found


@frozen
class Config:
    """An agent class with its options, resolved: what an activation runs with."""

    agent: type[Agent]
    models: tuple[Model, ...]
    model_options: Mapping[str, Any]
    toolset: Toolset
    toolbox: tuple[str, ...]
    limits: Limits
    max_rounds: int
    instructions: Any
    switches: Switches
    inbox: Inbox | None = None
    deps: Any = field(default=None, eq=False)
    compact: Compact | None = None

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Its tools at this moment, by name."""
        return self.toolset.tools

    @property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """What its model is shown of them at this moment, and of the system tools."""
        return self.toolset.schemas

    @property
    def wake_on(self) -> frozenset[WakeKind]:
        """The kinds of mail that wake it."""
        return frozenset(self.limits.wake_on)  # type: ignore[arg-type]


def check_options(agent: type[Agent], options: Mapping[str, Any]) -> None:
    """TypeError for an option that no agent has; the text names near ones."""
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        near = get_close_matches(unknown[0], OPTIONS, n=2, cutoff=0.5)
        hint = f"; did you mean {' or '.join(near)}?" if near else f"; there are {', '.join(OPTIONS)}"
        raise TypeError(f"{agent.__name__} has no option {unknown[0]!r}{hint}")


def configure(agent: type[Agent], options: Mapping[str, Any], above: Limits | None = None) -> Config:
    """Resolve an agent class with `open`'s options.

    Raises:
        ConfigError: Something cannot be: no model, an unknown model string, a bad tool, limits wider than those above.
        TypeError: An unknown option; the text names near ones. An inbox whose reader takes no name.
    """
    check_options(agent, options)
    listed = options.get("tools", agent.tools)
    tools = tools_of(agent, listed) if "tools" in options else agent.__tools__
    given = options.get("toolbox", getattr(agent, "toolbox", DETACHABLE if _any_detaches(tools) else ()))
    require(not isinstance(given, str), agent.__name__, f"toolbox={given!r}", f"a list, such as [{given!r}]")
    toolbox = tuple(given)
    strange = [name for name in toolbox if name not in TOOLBOX]
    if strange:
        raise ConfigError(f"{agent.__name__}: there is no system tool {strange[0]!r}; there are {', '.join(TOOLBOX)}")
    model_options = options.get("model_options", agent.model_options)
    check_type(agent.__name__, "model_options", model_options, Mapping, "a mapping of what the provider is told")
    max_rounds = options.get("max_rounds", agent.max_rounds)
    if not isinstance(max_rounds, int) or isinstance(max_rounds, bool) or max_rounds < 1:
        raise ConfigError(f"{agent.__name__}: found max_rounds={max_rounds!r}; write a whole number, 1 or more")
    limits = _limits(agent, above or Limits(), options.get("limits", agent.limits))
    links = tuple(Link(server) for server in servers_of(agent, listed))
    toolset = Toolset(tools, tuple(TOOLBOX[name].schema for name in toolbox), links)
    return Config(
        agent, _models(agent, options), model_options, toolset, toolbox, limits, max_rounds,
        _checked(agent, options.get("instructions", _instructions(agent))), _switches(agent, options),
        check_inbox(agent.__name__, options.get("inbox", agent.inbox)), options.get("deps", agent.deps),
        compact_of(agent.__name__, options.get("compact", agent.compact)),
    )  # fmt: skip


def _switches(agent: type[Agent], options: Mapping[str, Any]) -> Switches:
    given = {name: options.get(name, getattr(agent, name)) for name in SWITCHES}
    strange = [name for name, value in given.items() if not isinstance(value, bool)]
    if strange:
        raise ConfigError(f"{agent.__name__}: found {strange[0]}={given[strange[0]]!r}; write True or False")
    return Switches(**given)


def _any_detaches(tools: Mapping[str, Tool]) -> bool:
    return any(isinstance(tool.attach, int | float) for tool in tools.values())


def _limits(agent: type[Agent], above: Limits, given: Limits | None) -> Limits:
    """What binds a session: its own limits below those above, and defaults where nobody set one."""
    check_type(agent.__name__, "limits", given, Limits | None, "Limits(...)")
    try:
        return above.narrow(given or Limits()).over(SESSION_DEFAULTS)
    except ConfigError as error:
        raise ConfigError(f"{agent.__name__}: {error}") from None


def _instructions(agent: type[Agent]) -> Any:
    """The attribute, wherever it was written; else the nearest docstring below `Agent`."""
    given = inspect.getattr_static(agent, "instructions")
    if isinstance(given, staticmethod | classmethod):
        return agent.instructions
    if given is not None:
        return given
    docs = (vars(base).get("__doc__") for base in agent.__mro__[: agent.__mro__.index(Agent)])
    return next((inspect.cleandoc(doc) for doc in docs if doc), "")


def _checked(agent: type[Agent], instructions: Any) -> Any:
    if (
        instructions is None
        or isinstance(instructions, str)
        or (callable(instructions) and not inspect.iscoroutinefunction(instructions))
    ):
        return instructions
    raise ConfigError(
        f"{agent.__name__}: found instructions={instructions!r}; write a text, or a function (not async) that returns one"
    )


def _models(agent: type[Agent], options: Mapping[str, Any]) -> tuple[Model, ...]:
    given = options.get("model", getattr(agent, "model", None))
    if given is None or given == "":
        raise ConfigError(
            f'{agent.__name__} has no model; write `model = "openai:gpt-5.2"` in the class, or give model= when it is opened'
        )
    listed = given if isinstance(given, list | tuple) else (given,)
    if not listed:
        raise ConfigError(f"{agent.__name__}: found model={given!r}; write at least one model, such as 'openai:gpt-5.2'")
    return tuple(resolve_model(each) if isinstance(each, str) else _model(agent, each) for each in listed)


def _model(agent: type[Agent], given: Any) -> Model:
    if not callable(getattr(given, "stream", None)):
        raise ConfigError(
            f"{agent.__name__}: found model={given!r}; write a string such as 'openai:gpt-5.2', or a Model object"
        )
    model: Model = given
    return model


def instructions_for(config: Config, agent: Agent) -> str:
    """The instructions of a run: the text, or what the function says now."""
    given = config.instructions
    if not callable(given):
        return readable(str(given or ""))
    said, error = guarded(given, *((agent,) if inspect.signature(given).parameters else ()))
    if error is not None:
        raise ConfigError(f"the instructions of {config.agent.__name__} could not be made: {sentence(error)}") from error
    return readable(str(said or ""))
