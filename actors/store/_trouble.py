"""What SQLite could not do, as an error that says what to do."""

import sqlite3

from actors._errors import StoreError

_WHAT = {
    sqlite3.SQLITE_BUSY: "is locked by another process; end what holds it (a shell in a transaction, a backup), then try again",
    sqlite3.SQLITE_LOCKED: "is locked; try again",
    sqlite3.SQLITE_FULL: "could not grow: the disk is full; free some space, then try again",
    sqlite3.SQLITE_READONLY: "is read-only; make the file and its folder writable, then try again",
    sqlite3.SQLITE_PERM: "may not be read and written by this user; change its permissions",
    sqlite3.SQLITE_CANTOPEN: "could not be opened; see that its folder exists and is writable",
    sqlite3.SQLITE_CORRUPT: "is damaged; restore it from a backup, or save what is left with `sqlite3 FILE .recover`",
    sqlite3.SQLITE_NOTADB: "is no SQLite database; give the path of another file",
    sqlite3.SQLITE_IOERR: "could not be read or written by the system; look at the disk, then try again",
}


def trouble(path: str, error: BaseException) -> StoreError:
    """The error as a person should read it."""
    code = getattr(error, "sqlite_errorcode", 0) or 0
    told = _WHAT.get(code & 0xFF, f"failed ({type(error).__name__}); please report it")
    return StoreError(f"the store {path} {told} (nothing was kept of what was asked; SQLite says: {error})")
