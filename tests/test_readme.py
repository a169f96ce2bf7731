"""The README: its code runs as printed, its links lead somewhere, its guarantees name tests that exist."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from source import ROOT

TEXT = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^    (\S.*)$", re.sub(r"^```.*?^```$", "", TEXT, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
LINKS = re.findall(r"\[([^\]]+)\]\((?!https?:)([^)]+)\)", TEXT)
PROVEN = [(name.strip("`"), path) for name, path in LINKS if name.startswith("`test_")]
WARNINGS = "error,ignore:Async generator:ResourceWarning"  # the SDK's own streams
FOUND = "The prod log has 2 warnings and no errors."
ANSWERS = [{"calls": [["read_log", {"name": "prod"}]]}, {"text": FOUND}]


@pytest.fixture
def server() -> Iterator[str]:
    """A strict server that speaks like OpenAI's; its URL."""
    command = [sys.executable, str(ROOT / "tests" / "fake_chat.py"), json.dumps(ANSWERS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_its_code_runs_as_printed(number: int, server: str, tmp_path: Path) -> None:
    """The first thing a reader does is copy it."""
    script = tmp_path / "example.py"
    script.write_text(BLOCKS[number])
    environment = os.environ | {"OPENAI_BASE_URL": server, "OPENAI_API_KEY": "none", "PYTHONWARNINGS": WARNINGS}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert number > 0 or done.stdout == f"{FOUND}\n"


def test_the_first_example_is_short() -> None:
    """Twenty lines that run are what a reader gives us."""
    assert len(BLOCKS[0].rstrip().splitlines()) <= 20


def test_the_first_example_is_also_a_script() -> None:
    """What the README prints and what `supervision.examples` holds must not drift apart."""
    script = (ROOT / "supervision" / "examples" / "investigator.py").read_text()
    body, _, call = BLOCKS[0].rstrip().rpartition("\n")
    squeezed = re.sub(r"\n\n+", "\n", script)
    assert re.sub(r"\n\n+", "\n", body).strip() in squeezed
    assert call in squeezed


def test_it_is_read_at_one_sitting() -> None:
    """What is longer belongs where it leads to."""
    assert len(TEXT.splitlines()) <= 150


@pytest.mark.parametrize(("text", "path"), LINKS)
def test_its_links_lead_somewhere(text: str, path: str) -> None:
    """A dead link is a broken promise."""
    assert (ROOT / path).exists()


@pytest.mark.parametrize(("name", "path"), PROVEN)
def test_a_guarantee_names_a_test_that_exists(name: str, path: str) -> None:
    """What is promised is proven, and the reader can run the proof."""
    assert re.search(rf"^\s*(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE)


def test_each_guarantee_has_its_test() -> None:
    """A promise without a proof is advertising."""
    [section] = re.findall(r"^## Guarantees\n(.*?)^## ", TEXT, re.MULTILINE | re.DOTALL)
    promises = re.split(r"^- ", section, flags=re.MULTILINE)[1:]
    assert promises
    assert [promise for promise in promises if "[`test_" not in promise] == []


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("postroom")])
def test_its_command_lines_are_understood(command: str) -> None:
    """What it tells to type is what can be typed."""
    words = shlex.split(command)[1:]
    done = subprocess.run(
        [sys.executable, "-m", "supervision", *words[:1], "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert all(word in done.stdout for word in words if word.startswith("--"))
