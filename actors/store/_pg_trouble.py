"""What PostgreSQL could not do, as an error that says what to do; and which of it may pass by itself."""

import psycopg
from psycopg.conninfo import conninfo_to_dict

from actors._errors import ConfigError, StoreError

_WHAT = {
    "28": "does not let this user in; check user, password and pg_hba.conf",
    "3D000": "does not exist; create it (createdb), or name another one",
    "25006": "is read-only; give the address of the primary, or end its recovery",
    "25P03": "ended a session that stood still inside a transaction (idle_in_transaction_session_timeout); try again",
    "42P01": "lacks a table; restore it, or see that search_path names the schema in which they are",
    "42501": "denies this user something; grant it CREATE and USAGE on the schema, or own its tables",
    "53100": "is on a disk that is full; free some space, then try again",
    "53200": "is out of memory; try again",
    "53300": "takes no more connections; raise max_connections, or close some, then try again",
    "53400": "has reached a limit of its configuration; try again",
    "57014": "ended the query (statement_timeout?); try again",
    "40": "could not put this in order with what others did at the same time; try again",
    "55P03": "is locked by another transaction; end it, then try again",
    "3F000": "has no schema to make tables in; create the one that search_path names",
    "XX001": "is damaged; restore it from a backup",
    "XX002": "is damaged; restore it from a backup (an index can be rebuilt: REINDEX)",
}
GONE = "cannot be reached; see that the server runs and takes connections from here, then try again"
_PASSING = ("08", "57P", "40", "53300", "55P03")  # the server restarts, is full for a moment, or chose a victim


def place_of(url: str) -> str:
    """What a URL names, in words without a password. `ConfigError` if it names nothing."""
    try:
        found = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise ConfigError(f"store={url.partition('://')[0]}://... names no database: {_said(error)}") from None
    host, port = found.get("host") or found.get("hostaddr"), found.get("port")
    database = found.get("dbname") or found.get("user") or "postgres"
    return f"{database!r} on {host or 'this machine'}{f':{port}' if port else ''}"


def trouble(place: str, error: psycopg.Error, kept: str = "nothing was kept of what was asked") -> StoreError:
    """The error as a person should read it. `kept`: what became of what was asked."""
    state = _state(error)
    told = next((text for code, text in _WHAT.items() if state.startswith(code)), None)
    if told is None:
        told = GONE if lost(error) else "failed"
    return StoreError(f"the store {place} {told} ({kept}; PostgreSQL says: {_said(error)})")


def _state(error: psycopg.Error) -> str:
    """Its SQLSTATE; a connection that was refused has it in words alone."""
    if error.sqlstate is not None:
        return error.sqlstate
    text = str(error)
    known = {
        "authentication failed": "28P01",
        "no password supplied": "28P01",
        "no pg_hba.conf entry": "28000",
        "too many clients": "53300",
        "remaining connection slots": "53300",
        "too many connections": "53300",
        "role ": "28000",
    }
    if "database " in text and "does not exist" in text:
        return "3D000"
    return next((state for words, state in known.items() if words in text), "")


def _said(error: psycopg.Error) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, or never was: what was asked on it may have been done."""
    state = _state(error)
    return state.startswith(("08", "57P", "25P03")) or (
        not state and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    )


def unfit(error: psycopg.Error) -> bool:
    """Whether another connection may do what this one cannot: it was begun when the server was read-only, or leads to a standby."""
    return _state(error) == "25006"


def passing(error: psycopg.Error) -> bool:
    """Whether it is worth a second try within seconds."""
    return lost(error) or _state(error).startswith(_PASSING)
