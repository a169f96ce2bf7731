"""The requests of a session: how each is made, and what they cost so far."""

from collections.abc import Callable, Sequence

from actors import events
from actors._errors import LimitExceeded
from actors.models._api import Request
from actors.models._blocks import Usage
from actors.models._items import Item
from actors.models._past import Past
from actors.models._transcript import Validator

from ._agent import Agent, Config, instructions_for
from ._budget import estimated, refusal
from ._calls import Home
from ._compact import compacted
from ._record import UNSPENT, State
from ._refused import shown


class Requests:
    """Makes them, checks them, counts them. `show` emits an event."""

    def __init__(self, config: Config, state: State, home: Home, show: Callable[..., None]) -> None:
        self._config = config
        self._state = state
        self._home = home
        self._show = show
        self._instructions: str | None = None  # of the run in progress
        self._validator = Validator()
        self._versions: dict[int, tuple[Item, Item]] = {}  # items, each with what is sent in its place
        self._hidden = 0
        self._last = UNSPENT
        self._uncommitted = UNSPENT  # what no commit holds yet

    def next(self, agent: Agent, *, begins: bool, wrapped_up: bool) -> Request:
        """The next request, of a run that begins with it or not.

        Raises:
            LimitExceeded: The run, or those above the session, may make no further one.
            ConfigError: Something is wrong with the instructions, or with what `compact` made.
            TranscriptInvalid: A provider would refuse it.
        """
        if begins:
            self._uncommitted = UNSPENT  # what the run before it spent without an answer
        refused = refusal(self._config.limits, self.spent, "this run") or self._home.over_budget()
        if refused is not None:
            raise LimitExceeded(refused)
        if begins or self._instructions is None:
            self._instructions = instructions_for(self._config, agent)
        options = dict(self._config.model_options)
        choice = options.pop("tool_choice", "auto")
        past = self._past()
        compact = self._config.compact
        transcript = past if compact is None else compacted(self._config.agent.__name__, compact, past)
        request = Request(self._instructions, transcript, self._config.schemas, "none" if wrapped_up else choice, options)
        if compact is None:
            self._validator.check_request(transcript)
        return request

    def _past(self) -> Sequence[Item]:
        """All items; what a provider refused to read as a note. One item has one such version, so that it is checked once."""
        refused = self._state.refused
        if not refused:
            return Past(self._state.items)
        if len(refused) != self._hidden:
            self._hidden = len(refused)
            self._versions.clear()
        return tuple(map(self._version, range(len(self._state.items)), self._state.items))

    def _version(self, place: int, item: Item) -> Item:
        kept = self._versions.get(place)
        if kept is None or kept[0] is not item:
            kept = self._versions[place] = (item, shown(item, self._state.refused))
        return kept[1]

    @property
    def spent(self) -> Usage:
        """What the run has cost so far."""
        return self._state.spent if self._uncommitted is UNSPENT else self._state.spent.plus(self._uncommitted)

    def answered(self, usage: Usage) -> None:
        """One was answered. What it cost is kept with the answer."""
        self._last = usage
        self._count(usage)

    def cut(self, streamed: int) -> None:
        """One was not, after so many characters: nobody says what it cost."""
        self._count(estimated(self._last, streamed))

    def _count(self, usage: Usage) -> None:
        self._uncommitted = self._uncommitted.plus(usage)
        self._home.spent(usage)
        self._show(events.UsageReported, usage=usage)

    def kept(self) -> None:
        """`spent` was committed."""
        self._uncommitted = UNSPENT
