"""`postroom worker`: what it is given, and what it says where that will not do. What workers do together is in `test_workers.py`."""

from pathlib import Path

import pytest
import trio
from command import running
from test_cli_sessions import told

from actors import Agent
from actors.models import ScriptedModel
from actors.store import _pg_pool
from supervision import open_system

MODULE = '''
from actors import Agent
from actors.models import ScriptedModel, say

class Clerk(Agent):
    """You answer."""

    model = ScriptedModel([say("seen " + word) for word in ("one", "two")])
'''
EMPTY = "from actors import Agent\n"
ODD = "from actors import Agent\nclass Clerk(Agent):\n    pass\ndeps = 3\n"


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with modules, which is the working directory."""
    for name, text in {"worked_agents": MODULE, "worked_empty": EMPTY, "worked_odd": ODD}.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("POSTROOM_STORE", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["worked_agents"], 2, "no store: write --store sqlite:///agents.db, or set POSTROOM_STORE"),
        (["no_such", "--store", "sqlite:///a.db"], 2, "there is no module 'no_such'"),
        (
            ["worked_agents.py", "--store", "sqlite:///a.db"],
            2,
            "write it as Python imports it from here, such as worked_agents",
        ),
        (["worked_agents:Clerk", "--store", "sqlite:///a.db"], 2, "names no module; write it as Python imports it"),
        (["worked_empty", "--store", "sqlite:///a.db"], 2, "the module worked_empty has no agent"),
        (["worked_odd", "--store", "sqlite:///a.db"], 2, "worked_odd.deps is 3"),
        (["worked_agents", "--store", "mongodb://here"], 2, "mongodb://here"),
        (["worked_agents", "--store", "postgresql://postroom@127.0.0.1:1/none"], 1, "127.0.0.1"),
        (["worked_agents", "--store", "sqlite:///a.db", "--max-live", "0"], 2, "max_live"),
    ],
)
@pytest.mark.usefixtures("modules")
def test_a_worker_that_cannot_work_says_why(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, which says what to write instead, and an exit code."""
    monkeypatch.setattr(_pg_pool, "PATIENCE", 0.2)
    shown = told(capsys, "worker", *words, code=code)
    assert said in shown
    assert shown.startswith("postroom: ")


async def test_a_worker_answers_what_waits_and_what_comes(modules: Path) -> None:
    """It runs sessions that others made, by the name of their class; SIGTERM ends it in order."""

    class Clerk(Agent):
        """Of the same name."""

        model = ScriptedModel([])

    store = f"sqlite:///{modules / 'agents.db'}"
    async with open_system(store=store) as system:
        await (await system.open(Clerk, session="s")).stop_run()
    async with open_system(store=store) as system:
        await system.ref("s").send("one")
    async with running("worker", "worked_agents", "--store", store, url="") as worker:
        await worker.until("this worker runs the sessions of Clerk")
        async with open_system(store=store) as system:
            with trio.fail_after(30):
                assert await system.session("s").ask("two", timeout=None) in {"seen one", "seen two"}
        worker.process.terminate()
        assert await worker.end() == 143
