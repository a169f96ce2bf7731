"""What a benchmark is made of: a question, those who answer it, and what we promised.

A **scenario** asks one question and names its **contestants**: ours, the **twins** (plain trio doing the same work,
nothing to install, always run) and the **peers** (other libraries, run with `--peers`). A contestant is a function of
a count `n` that does n pieces of work and says how many were really done and what they cost. A **figure** is one cost
of one round, in the scenario's unit, smaller is better. A **budget** is a promise about figures, as a ratio within
one run wherever it can be: machines differ, ratios much less.
"""

from importlib.util import find_spec
from typing import Literal, Self

from attrs import Factory, evolve, frozen

Unit = Literal["us", "KB"]


@frozen
class Contestant:
    """Who takes part.

    Attributes:
        key: The function in the scenario's file; or the file in `benchmarks/peers` whose function has the scenario's name
            (or, `file.function`, another).
        title: How its row reads.
        kind: Twins run always, peers with `--peers`.
        package: What pip calls it, None if there is nothing to install.
        module: What Python calls it.
        share: Of the scenario's count, for those who would need minutes for all of it.
    """

    key: str
    title: str
    kind: Literal["ours", "twin", "peer"] = "twin"
    package: str | None = None
    module: str = "sys"
    share: float = 1.0

    @property
    def missing(self) -> str | None:
        """What to type to have it take part, None if it can."""
        return None if find_spec(self.module) else f"pip install {self.package}"

    def part(self, share: float) -> Self:
        """The same, doing that share of the work."""
        return evolve(self, share=share)


OURS = Contestant("ours", "ours", kind="ours")
ASYNCIO = Contestant("asyncio_queue", "asyncio.Queue(256)", kind="peer")
PYKKA = Contestant("pykka", "Pykka", kind="peer", package="pykka", module="pykka")
THESPIAN = Contestant("thespian", "Thespian (simple base)", kind="peer", package="thespian", module="thespian")
AUTOGEN = Contestant("autogen_core", "AutoGen core", kind="peer", package="autogen-core", module="autogen_core")
PYDANTIC_AI = Contestant("pydantic_ai", "pydantic-ai", kind="peer", package="pydantic-ai-slim", module="pydantic_ai")
LANGGRAPH = Contestant("langgraph", "LangGraph", kind="peer", package="langgraph", module="langgraph")
LANGGRAPH_SQLITE = Contestant(
    "langgraph_sqlite", "LangGraph, SQLite", kind="peer", package="langgraph-checkpoint-sqlite", module="langgraph"
)
OPENAI_AGENTS = Contestant("openai_agents", "OpenAI Agents SDK", kind="peer", package="openai-agents", module="agents")


@frozen
class AtLeast:
    """`row` is at least `times` as fast as `than`; rows are named by title."""

    times: float
    than: str
    row: str = "ours"


@frozen
class AtMost:
    """`row` costs at most `limit`: times what `of` costs, or in the scenario's unit where there is no `of`."""

    limit: float
    of: str | None = None
    row: str = "ours"


Budget = AtLeast | AtMost


@frozen
class Scenario:
    """One question.

    Attributes:
        name: Its file, and its name on the command line.
        question: What is asked, in one line.
        piece: One piece of work, as the table's head calls it.
        n: Pieces of work a round.
        quick: The same with `--quick`.
        rounds: How often each contestant runs; they take turns.
        fresh: Each round in a new process: what is measured is left behind in an old one.
        cpus: Where a contestant's process and those that it starts run: on one CPU all together, or wherever there is room.
        absent: Which usual peers do not take part, and why.
    """

    name: str
    question: str
    piece: str
    n: int
    quick: int
    contestants: tuple[Contestant, ...]
    budgets: tuple[Budget, ...] = Factory(tuple)
    unit: Unit = "us"
    rounds: int = 15
    fresh: bool = False
    cpus: Literal["one", "all"] = "one"
    absent: str = ""
