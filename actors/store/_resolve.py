"""From `sqlite:///path` or `postgresql://…` to a store."""

from actors._errors import ConfigError
from actors._extras import load

from ._api import Store
from .memory import MemoryStore
from .sqlite import SQLiteStore

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")


def resolve_store(given: str | Store | None) -> Store:
    """The store that this names; memory for None.

    `sqlite:///agents.db` is a file in the current folder, `sqlite:////var/lib/agents.db` one with its whole path;
    `postgresql://user:secret@host/database` is a database, with whatever else libpq understands in a URL.

    Raises:
        ConfigError: It names none; the text says what would. Or the package that it needs is not installed.
    """
    if given is None:
        return MemoryStore()
    if not isinstance(given, str):
        return given
    if given.startswith(POSTGRES):
        return _postgres(given)
    path = given.removeprefix(SQLITE)
    if not given.startswith(SQLITE) or not path:
        raise ConfigError(
            f'store={given!r} names no store; write "sqlite:///agents.db" (three slashes, then the path: a fourth begins an absolute one) '
            'or "postgresql://user@host/database", or leave it out to keep sessions in memory'
        )
    return SQLiteStore(path)


def _postgres(url: str) -> Store:
    how = {"extra": "postgres", "wanted_by": 'store="postgresql://..."'}
    load("psycopg", **how)
    made: Store = load("actors.store.postgres", **how).PostgresStore(url)
    return made
