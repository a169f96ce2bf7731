"""What a tree is made of, as data: child specs and supervisors. Wrong ones are refused when they are written."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, get_args

from attrs import field, frozen

from actors._actor import Actor
from actors._check import check_choice, check_number, check_type, check_whole, require, wrong
from actors._envelope import SEGMENT_FORM
from actors._errors import ConfigError
from actors._limits import Limits
from actors._text import encodes
from actors.agent._agent import OPTIONS, Agent, Config, check_options, configure

Restart = Literal["permanent", "transient", "temporary"]
RESTARTS = get_args(Restart)
Strategy = Literal["one_for_one", "one_for_all", "rest_for_one"]
Budget = Literal["supervisor", "child"]
AutoShutdown = Literal["never", "any", "all"]
Factory = Callable[..., Actor] | Callable[..., Awaitable[object]]


def check_name(kind: str, name: str) -> str:
    """The name, or ConfigError: it is one segment of an address, and `call_` is the runtime's prefix."""
    given: object = name
    if not isinstance(given, str) or not SEGMENT_FORM.match(given) or given.startswith("call_"):
        raise ConfigError(
            f"{kind} cannot be named {name!r}: write 1 to 64 of A-Z a-z 0-9 . _ - (not starting with call_, which is the runtime's)"
        )
    return name


def check_owner(whose: str, owner: object) -> None:
    """ConfigError unless a session, or a portal, can say whom it speaks for."""
    check_type(whose, "owner", owner, str | None, "the person's name, or None")
    require(owner is None or encodes(str(owner)), whose, f"owner={owner!r}", "text that has UTF-8")


def check_factory(name: str, factory: object) -> None:
    """ConfigError unless the factory can be called afresh for each life."""
    kind = type(factory).__name__
    if isinstance(factory, Actor):
        raise ConfigError(
            f"{name}: found an instance of {kind}; an actor that may be started again is given as its class or a function that "
            f"makes it: write {kind}, ... instead of {kind}(...)"
        )
    if not callable(factory) or (isinstance(factory, type) and not issubclass(factory, Actor)):
        raise wrong(name, f"the factory {factory!r}", "an Actor class, a function that returns one, or an async function")


def check_actor(name: str, factory: object) -> None:
    """ConfigError for an agent, where only plain actors are spawned."""
    if isinstance(factory, type) and issubclass(factory, Agent):
        raise ConfigError(
            f"{name}: found the Agent {factory.__name__}, which runs as a session only; write `await system.open({factory.__name__}, "
            f"session={name!r})`, or put ChildSpec({factory.__name__}, name={name!r}) in a tree"
        )


def check_budget(whose: str, max_restarts: object, within: object) -> None:
    """ConfigError unless restarts can be counted by it."""
    check_whole(whose, "max_restarts", max_restarts, 0)
    check_number(whose, "within", within, 0, above=True, unit="seconds")


def _check_common(spec: "ChildSpec | Supervisor") -> None:
    """What a child and a supervisor have in common."""
    name = spec.name
    check_choice(name, "restart", spec.restart, RESTARTS)
    check_type(name, "significant", spec.significant, bool, "True or False")
    if spec.significant and spec.restart == "permanent":
        what = "child" if isinstance(spec, ChildSpec) else "supervisor"
        found = f"significant=True on a permanent {what}, whose end never counts"
        raise wrong(name, found, "restart='transient' or 'temporary'")
    check_type(name, "backoff", spec.backoff, Backoff | None, "Backoff(...)")
    check_type(name, "limits", spec.limits, Limits | None, "Limits(...)")


def check_limits(path: str, above: Limits | None, spec: "ChildSpec | Supervisor") -> None:
    """ConfigError, with the path, if the limits of a spec, of its agent or of one below it widen the ones above."""
    try:
        here = spec.limits if above is None or spec.limits is None else above.narrow(spec.limits)
        if isinstance(spec, ChildSpec) and spec.agent is not None and above is not None:
            (here or above).narrow((spec.options or {}).get("limits", spec.agent.limits) or Limits())
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    for child in spec.children if isinstance(spec, Supervisor) else ():
        check_limits(f"{path}/{child.name}", here or above, child)


@frozen(init=False)
class ChildSpec:
    """How to start one child of a supervisor, and what to do when its life ends.

    An `Agent` class as the factory makes the child a session: its address, `tree/name`, is its id. A session supervises its own loop:
    crashes of that are restarted by its `backoff`, and when this is exhausted its run has `failed`, with the reason and all its
    mail kept, until a person writes or resumes it. None of that is an end: its supervisor restarts and counts nothing, so a
    provider's outage takes no tree down. What its supervisor answers, with `restart`, strategy and intensity, is an activation
    that fails, of which a group restart begins a new one: the calls are cancelled, the agent is made afresh, and the run goes on
    from its last commit, mailbox and all. The stop of the tree shuts a session down as the end of the process would: it is
    found again as it was left at the next start. `stop` through its own ref is for good; a tree that starts later passes it over.

    Args:
        factory: An `Actor` class, a function that returns an actor, or an async function `(context, *args)`. Called afresh for each life.
            Or an `Agent` class.
        args: Given to it each time.
        name: The child's segment of the address, unique in its supervisor.
        restart: `permanent` always, `transient` unless the exit was normal, `temporary` never (OTP's).
        shutdown: Seconds that its stop may take, cleanup included.
        init_timeout: Seconds until it must be ready.
        significant: Whether its end can end the supervisor (`auto_shutdown`).
        backoff: Delays between restarts, instead of the supervisor's count; of a session's loop `Backoff()` if absent.
        max_deliveries: How often one message may be begun; 1 means that what was being handled in a crash is not handled again.
        options: For an agent: what `System.open` takes, `owner` included.

    Raises:
        ConfigError: One of these cannot be; the text names the spec, what was found and what to write.
        TypeError: The agent has no such option; the text names near ones.
    """

    factory: Factory
    args: tuple[Any, ...]
    name: str
    restart: Restart
    shutdown: float
    init_timeout: float
    significant: bool
    backoff: "Backoff | None"
    limits: Limits | None
    max_deliveries: int
    options: Mapping[str, Any] | None

    def __init__(
        self,
        factory: Factory,
        *args: Any,
        name: str,
        restart: Restart = "transient",
        shutdown: float = 5.0,
        init_timeout: float = 10.0,
        significant: bool = False,
        backoff: "Backoff | None" = None,
        limits: Limits | None = None,
        max_deliveries: int = 1,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.__attrs_init__(
            factory, args, name, restart, shutdown, init_timeout, significant, backoff, limits, max_deliveries, options
        )
        check_name("a child", name)
        check_factory(name, factory)
        _check_common(self)
        check_number(name, "shutdown", shutdown, 0, unit="seconds")
        check_number(name, "init_timeout", init_timeout, 0, above=True, unit="seconds")
        check_whole(name, "max_deliveries", max_deliveries, 1)
        if self.agent is None:
            what = "arguments of the factory; options are an Agent's, for `open`"
            check_type(name, "options", options, type(None), what)
        else:
            self._check_agent(self.agent)

    @property
    def agent(self) -> type[Agent] | None:
        """The class of the session that it starts, if it is one."""
        return self.factory if isinstance(self.factory, type) and issubclass(self.factory, Agent) else None

    def _check_agent(self, agent: type[Agent]) -> None:
        name, what = self.name, agent.__name__
        require(
            not self.args, name, f"arguments {self.args!r} for the Agent {what}", "options={...}; an agent is made without any"
        )
        require(
            self.max_deliveries == 1,
            name,
            f"max_deliveries={self.max_deliveries} for a session",
            "none; its mail is never lost",
        )
        check_type(name, "options", self.options, Mapping | None, f"a mapping of {', '.join(OPTIONS)}")
        check_owner(name, (self.options or {}).get("owner"))
        try:
            check_options(agent, self.given)
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
        try:
            self.configured(self.limits)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from None

    @property
    def given(self) -> dict[str, Any]:
        """The agent's options."""
        return {key: value for key, value in (self.options or {}).items() if key != "owner"}

    def configured(self, limits: Limits | None) -> Config:
        """What its session runs with, below these limits."""
        assert self.agent is not None
        return configure(self.agent, self.given, limits)


@frozen
class Backoff:
    """Delays between restarts: `first`, then `factor` times as long each time up to `maximum` seconds, each +- `jitter` of itself.

    After `max_attempts` failures in a row the restarts end. A life that made progress resets the count: a session's that committed
    an answer, an actor's or a supervisor's that was up for `maximum` seconds.
    """

    first: float = 0.1
    factor: float = 2
    maximum: float = 30
    jitter: float = 0.1
    max_attempts: int = 5

    def __attrs_post_init__(self) -> None:
        check_number("Backoff", "first", self.first, 0, unit="seconds")
        check_number("Backoff", "maximum", self.maximum, self.first, unit="seconds")
        check_number("Backoff", "factor", self.factor, 1)
        check_number("Backoff", "jitter", self.jitter, 0)
        require(self.jitter < 1, "Backoff", f"jitter={self.jitter}", "a fraction, less than 1")
        check_whole("Backoff", "max_attempts", self.max_attempts, 1)

    def delay(self, attempt: int, draw: float) -> float:
        """Seconds before restart number `attempt` (from 1); `draw`, from -1 to 1, places it within the jitter."""
        exact = min(self.maximum, self.first * self.factor ** min(attempt - 1, 64))
        return exact * (1 + self.jitter * draw)


@frozen(init=False)
class Supervisor:
    """Children that are started in order, watched, and stopped in reverse; how many restarts are allowed, and what then.

    Args:
        children: Specs and supervisors, in starting order.
        name: Its segment of the address; a child's address is `name/child`.
        strategy: Which children a failure restarts: `one_for_one` that one, `one_for_all` all, `rest_for_one` it and those after it.
        max_restarts: Restarts allowed `within` seconds (a sliding window, its edge inclusive); the next failure escalates.
        within: Length of that window in seconds.
        budget: `supervisor`: one window for all its children; `child`: one for each.
        auto_shutdown: Whether the end of `significant` children ends it.
        restart: As a child of another supervisor: what to do when it escalates.
    """

    children: "tuple[ChildSpec | Supervisor, ...]"
    name: str
    strategy: Strategy
    max_restarts: int
    within: float
    budget: Budget
    auto_shutdown: AutoShutdown
    restart: Restart
    significant: bool
    backoff: Backoff | None
    limits: Limits | None
    shutdown: float = field(init=False, default=float("inf"), repr=False)
    init_timeout: float = field(init=False, default=float("inf"), repr=False)
    max_deliveries: int = field(init=False, default=1, repr=False)

    def __init__(
        self,
        *children: "ChildSpec | Supervisor",
        name: str = "supervisor",
        strategy: Strategy = "one_for_one",
        max_restarts: int = 3,
        within: float = 5.0,
        budget: Budget = "supervisor",
        auto_shutdown: AutoShutdown = "never",
        restart: Restart = "transient",
        significant: bool = False,
        backoff: Backoff | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.__attrs_init__(
            children, name, strategy, max_restarts, within, budget, auto_shutdown, restart, significant, backoff, limits
        )
        check_name("a supervisor", name)
        for child in children:
            check_type(name, "the child", child, ChildSpec | Supervisor, "ChildSpec(factory, ..., name=...) or a Supervisor")
        names = [child.name for child in children]
        twice = sorted({each for each in names if names.count(each) > 1})
        require(not twice, name, f"two children named {', '.join(twice)}", "a name once per supervisor")
        check_choice(name, "strategy", strategy, get_args(Strategy))
        check_choice(name, "budget", budget, get_args(Budget))
        check_choice(name, "auto_shutdown", auto_shutdown, get_args(AutoShutdown))
        check_budget(name, max_restarts, within)
        _check_common(self)
        for child in children:
            check_limits(f"{name}/{child.name}", limits, child)
