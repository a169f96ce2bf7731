"""The claim: `kill -9` at any instant loses nothing and doubles nothing. A night's worth is a thousand kills of each store."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nightly import NIGHTLY
from postgres_server import VARIABLE, needed, programs

HERE = Path(__file__).parent
KILLS = int(os.environ.get("POSTROOM_KILLS", "1000" if NIGHTLY else "30"))
SEED = int(os.environ.get("POSTROOM_SEED", "1"))
Driven = Callable[[int, str], dict[str, Any]]


@pytest.fixture(params=["sqlite", "postgres"])
def driven(request: pytest.FixtureRequest, tmp_path: Path) -> Driven:
    """Kill a village that keeps its sessions there, and audit it; the report."""
    server = [needed()] if request.param == "postgres" else []
    return lambda kills, how: drive(tmp_path, kills, how, *server)


def drive(folder: Path, kills: int, how: str, *server: str) -> dict[str, Any]:
    """Run the driver; its report."""
    command = [sys.executable, str(HERE / "driver.py"), str(folder), str(kills), str(SEED), how, *server]
    paths = os.pathsep.join([str(HERE), str(HERE.parent), str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=60 + 3 * kills,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_a_killed_village_loses_nothing_and_doubles_nothing(driven: Driven) -> None:
    """Receipts, mail, transcripts and what the tools did all tell the same story."""
    report = driven(KILLS, "plain")
    assert report["wrong"] == []
    assert report["calls"] > KILLS // 2
    assert report["mail"] > 2 * KILLS
    assert report["orphaned"]
    assert report["again"]
    assert report["answered"] > KILLS // 10


def test_a_wrong_order_of_commits_is_found(driven: Driven) -> None:
    """A test of the test: cursors that move before what was read is kept lose mail, and the audit says so."""
    report = driven(8, "broken")
    assert any("stands in 0 turns" in each for each in report["wrong"])


def test_two_processes_share_a_store_whatever_becomes_of_them(driven: Driven) -> None:
    """Stopped past its lease, a process comes back to sessions that another one runs: whatever it still commits is refused."""
    report = driven(max(3, KILLS // 8), "2")
    assert report["wrong"] == []
    assert report["calls"]


@pytest.mark.parametrize("count", ["2", "4"])
def test_processes_share_a_database_that_crashes_too(tmp_path: Path, count: str) -> None:
    """As above, with PostgreSQL going down under all of them and coming back: the same audit."""
    if programs() is None:
        pytest.skip(f"no PostgreSQL to stop and start; a server in {VARIABLE} is left alone")
    report = drive(tmp_path, max(6, KILLS // 8), count, "own")
    assert report["wrong"] == []
    assert report["calls"]
    assert report["answered"]
