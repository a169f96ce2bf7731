"""From `sqlite:///path` to a store."""

from actors._errors import ConfigError

from ._api import Store
from .memory import MemoryStore
from .sqlite import SQLiteStore

SQLITE = "sqlite:///"


def resolve_store(given: str | Store | None) -> Store:
    """The store that this names; memory for None.

    `sqlite:///agents.db` is a file in the current folder, `sqlite:////var/lib/agents.db` one with its whole path.

    Raises:
        ConfigError: It names none; the text says what would.
    """
    if given is None:
        return MemoryStore()
    if not isinstance(given, str):
        return given
    path = given.removeprefix(SQLITE)
    if not given.startswith(SQLITE) or not path:
        raise ConfigError(
            f'store={given!r} names no store; write "sqlite:///agents.db" (three slashes, then the path: a fourth begins an absolute one), '
            "or leave it out to keep sessions in memory"
        )
    return SQLiteStore(path)
