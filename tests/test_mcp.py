"""MCP servers as tools: the official SDK's servers, in this process, over HTTP on loopback, and on pipes. Real time."""

import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import trio
from hypercorn.config import Config as Hypercorn
from hypercorn.trio import serve
from mcp_things import make
from process_tools import gone
from scenes import Diary, Scene, Worker, scene

from actors import Agent, ConfigError, MCPServer, Media, StartFailed, Status, _extras
from actors.models import Scripted, ScriptedModel, call, calls, fail, say
from actors.tools._mcp import name_here
from actors.tools._mcp_link import Link
from supervision import open_system

THINGS = Path(__file__).parent / "mcp_things.py"
OWNER = "s/mcp-things"


def on_pipes() -> MCPServer:
    return MCPServer([sys.executable, str(THINGS)], name="things")


@asynccontextmanager
async def with_server(server: MCPServer, *script: Scripted, **options: Any) -> AsyncIterator[Scene]:
    with trio.fail_after(60):
        async with scene(*script, tools=[server], deps=Diary(), **options) as here:
            yield here


@asynccontextmanager
async def over_http(app: Any, bind: str = "127.0.0.1:0") -> AsyncIterator[str]:
    """Serve an app on loopback; its address."""
    config = Hypercorn()
    config.bind, config.graceful_timeout, config.loglevel = [bind], 0.1, "ERROR"
    async with trio.open_nursery() as nursery:
        [url] = await nursery.start(serve, app, config)
        yield url
        nursery.cancel_scope.cancel()


async def until(holds: Callable[[], bool]) -> None:
    with trio.fail_after(30):
        while not holds():  # noqa: ASYNC110  # other processes, files and servers tell nobody
            await trio.sleep(0.01)


def reads(path: Path) -> Callable[[], bool]:
    return lambda: path.exists() and path.read_text() != ""


# ------------------------------------------------------------------ what a model sees
async def test_tools_of_a_server_are_the_agents_under_the_servers_name() -> None:
    """With the description and the schema that the server gives, beside the agent's own."""
    async with with_server(MCPServer(server=make("add")), call("things_add", a=1, b=2), say("three")) as here:
        assert await here.session.ask("go") == "three"
        assert here.results(1) == ["3"]
        shown = {each.name: each for each in here.request(0).tools}
        assert list(shown)[:6] == ["work", "patient", "background", "broken", "things_add", "things_grow"]
        assert shown["things_add"].description == "Add two numbers."
        assert shown["things_add"].parameters["required"] == ["a", "b"]


async def test_what_a_server_answers_is_worded_for_the_model() -> None:
    """Text as it is, structured content as JSON, pictures as pictures, and nothing twice."""
    turn = calls(call("things_where"), call("things_words"), call("things_picture"))
    async with with_server(MCPServer(server=make()), turn, say("ok")) as here:
        await here.session.ask("go")
        values = [result.outcome.value for result in here.last_results(1)]
        assert values == [{"x": 1, "y": 2}, ["one", "two"], ["look", Media("image/png", b"\x89PNG")]]


async def test_what_a_server_reports_as_an_error_is_a_failed_outcome() -> None:
    """Its own words; arguments that do not fit are refused by it, and a tool that nobody has by us."""
    turn = calls(call("things_refuse"), call("things_add", a="x", b=1), call("things_nope"))
    async with with_server(MCPServer(server=make()), turn, say("ok")) as here:
        await here.session.ask("go")
        assert here.outcomes(1) == ["failed"] * 3
        first, second, third = here.results(1)
        assert first == "failed: Error executing tool refuse: ask Ann first"
        assert "a\n  Input should be a valid integer" in second
        assert "there is no tool 'things_nope'; the tools are background, broken" in third


async def test_the_next_request_shows_the_tools_that_a_server_has_by_then() -> None:
    """It said that its list has changed, while a call ran."""
    async with with_server(MCPServer(server=make("add")), call("things_grow"), call("things_grown"), say("ok")) as here:
        await here.session.ask("go")
        assert "things_grown" not in {each.name for each in here.request(0).tools}
        assert "things_grown" in {each.name for each in here.request(1).tools}
        assert here.results(2) == ["new"]


@pytest.mark.parametrize(
    ("tool", "taken", "name"),
    [
        ("read", (), "files_read"),
        ("read.file/v2", (), "files_read_file_v2"),
        ("r" * 58, (), "files_" + "r" * 58),
        ("r" * 59, (), "files_" + "r" * 49 + "_75e7bdd5"),
        ("read", ("files_read",), "files_read_f9d4ce1a"),
    ],
)
def test_a_name_is_one_that_every_provider_takes(tool: str, taken: tuple[str, ...], name: str) -> None:
    """And the same in every session, so that a transcript reads on."""
    made = name_here("files", tool, taken)
    assert made.rpartition("_")[0] == name.rpartition("_")[0] if len(tool) > 58 or taken else made == name
    assert len(made) <= 64
    assert made == name_here("files", tool, taken)


# ------------------------------------------------------------------ calls
@pytest.mark.parametrize("kind", ["here", "http", "pipes"])
async def test_cancelling_a_call_cancels_it_in_the_server(kind: str, tmp_path: Path) -> None:
    """On each transport; its progress came through, and the server goes on."""
    noted = tmp_path / "noted"
    script = [call("things_dwell", path=str(noted)), call("things_add", a=1, b=1), say("two")]

    async def run(server: MCPServer) -> None:
        async with with_server(server, *script) as here:
            await here.session.send("go")
            await until(lambda: bool(here.events("tool_progress")))
            await here.session.cancel_calls("call_1")
            assert await here.session.wait_answer() == "two"
            await until(reads(noted))
            assert [event.payload for event in here.events("tool_progress")] == [{"progress": 1, "total": 2, "message": "half"}]

    if kind == "http":
        async with over_http(make().streamable_http_app()) as url:
            await run(MCPServer(url=f"{url}/mcp", name="things"))
    else:
        await run(on_pipes() if kind == "pipes" else MCPServer(server=make()))


async def test_a_list_that_changes_is_followed_over_http() -> None:
    """Where the server has to be asked to tell of it."""
    async with (
        over_http(make("add").streamable_http_app()) as url,
        with_server(MCPServer(url=f"{url}/mcp", name="things"), call("things_grow"), say("ok"), say("again")) as here,
    ):
        await here.session.ask("go")
        await until(lambda: here.system.ref(OWNER).status is Status.IDLE)
        await trio.sleep(0.2)
        await here.session.ask("and now?")
        assert "things_grown" in {each.name for each in here.request(2).tools}


async def test_a_transport_of_ones_own_is_made_for_each_connection() -> None:
    """For headers and proxies: any function that returns what the SDK's client takes."""
    made: list[object] = []

    def transport() -> Any:
        made.append(make("add"))
        return made[-1]

    async with with_server(MCPServer(server=transport, name="things"), call("things_add", a=1, b=2), say("ok")) as here:
        await here.session.ask("go")
        assert (here.results(1), len(made)) == (["3"], 1)


# ------------------------------------------------------------------ death
async def test_a_server_that_dies_is_started_again_and_calls_fail_until_then(caplog: pytest.LogCaptureFixture) -> None:
    """The call that it died in, and those that come too early, say so; later ones work. The session goes on throughout."""
    script = [call("things_pid"), call("things_die"), call("things_add", a=1, b=1), say("down"), call("things_pid"), say("up")]
    async with with_server(on_pipes(), *script) as here:
        assert await here.session.ask("go") == "down"
        assert "gave no answer (MCPError: Connection closed); whether the call took effect is not known" in here.results(2)[0]
        assert "is down (" in here.results(3)[0]
        assert ") and is being started again; nothing was called: try later" in here.results(3)[0]
        await until(lambda: here.system.ref(OWNER).status is Status.RESTARTING)
        await until(lambda: here.system.ref(OWNER).status is Status.IDLE)
        assert await here.session.ask("again") == "up"
        assert int(here.results(5)[0]) != int(here.results(1)[0])
    assert caplog.text.count("crashed in life 1") == 1


async def test_a_server_that_dies_while_nobody_calls_is_noticed() -> None:
    """The next call should not have to find out."""
    script = [call("things_pid"), say("ok"), call("things_pid"), say("ok")]
    async with with_server(on_pipes(), *script) as here:
        await here.session.ask("go")
        first = int(here.results(1)[0])
        os.kill(first, signal.SIGKILL)
        await until(lambda: here.system.ref(OWNER).status is Status.RESTARTING)
        await until(lambda: here.system.ref(OWNER).status is Status.IDLE)
        await here.session.ask("again")
        assert int(here.results(3)[0]) != first


async def serving(bind: str, task_status: trio.TaskStatus[tuple[trio.CancelScope, str]]) -> None:
    """Serve until the scope that it starts with is cancelled."""
    with trio.CancelScope() as scope:
        async with over_http(make("add").streamable_http_app(), bind) as url:
            task_status.started((scope, url))
            await trio.sleep_forever()


async def test_a_server_on_the_web_that_is_gone_is_found_again() -> None:
    """Its subscription breaks off; it is asked again and again until it answers."""
    script = [call("things_add", a=1, b=1), say("down"), call("things_add", a=1, b=1), say("up")]
    async with trio.open_nursery() as nursery:
        scope, url = await nursery.start(serving, "127.0.0.1:0")
        async with with_server(MCPServer(url=f"{url}/mcp", name="things"), *script) as here:
            scope.cancel()
            await until(lambda: here.system.ref(OWNER).status is Status.RESTARTING)
            assert await here.session.ask("go") == "down"
            assert here.outcomes(1) == ["failed"]
            scope, _ = await nursery.start(serving, url.removeprefix("http://"))
            await until(lambda: here.system.ref(OWNER).status is Status.IDLE)
            assert await here.session.ask("again") == "up"
            assert here.results(3) == ["2"]
        scope.cancel()


async def test_the_end_of_a_session_is_the_end_of_its_server() -> None:
    """And no handler of the SDK's is left on the root logger."""
    before = logging.getLogger().handlers[:]
    async with with_server(on_pipes(), call("things_pid"), say("ok")) as here:
        await here.session.ask("go")
        await here.session.stop()
        assert gone(int(here.results(1)[0]), seconds=0)
    assert logging.getLogger().handlers == before


async def test_what_a_server_writes_on_stderr_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """It must not write over what a person reads."""
    caplog.set_level("INFO", "postroom.tools")
    async with with_server(on_pipes(), call("things_complain"), say("ok")) as here:
        await here.session.ask("go")
        await until(lambda: "MCP server things: the disk is nearly full" in caplog.text)


async def test_a_crash_of_the_loop_keeps_the_connection() -> None:
    """The server holds what the agent did there; the next life of the loop finds it so."""
    script = [call("things_add", a=1, b=2), fail(RuntimeError("loop")), say("ok")]
    async with with_server(MCPServer(server=make("add")), *script) as here:
        assert await here.session.ask("go") == "ok"
        [owner] = [node for node in here.system.tree().nodes[0].children if node.address == OWNER]
        assert here.system.tree().nodes[0].generation == 2
        assert owner.generation == 1


async def test_a_server_that_is_downloaded_first_has_time_to_start() -> None:
    """Its session waits for it."""
    async with with_server(MCPServer(server=make("add"))) as here:
        assert here.session._session().spec.init_timeout > 90


# ------------------------------------------------------------------ what cannot be
@pytest.mark.parametrize(
    ("server", "told"),
    [
        (
            MCPServer(["/no/such/server", "KEY=secret"]),
            "MCP server server (/no/such/server KEY=...) did not start: FileNotFoundError",
        ),
        (
            MCPServer([sys.executable, "-c", "raise SystemExit('no key given')"]),
            "did not start: MCPError: Connection closed; no key given",
        ),
        (
            MCPServer(url="http://ann:secret@127.0.0.1:1/mcp?key=secret"),
            "(http://127.0.0.1:1/mcp) could not be reached: ConnectError",
        ),
        (MCPServer(server=lambda: 1 / 0, name="x"), "MCP server x (in this process) could not be reached: ZeroDivisionError"),
    ],
    ids=["no command", "ends at once", "nobody there", "raises"],
)
async def test_a_server_that_cannot_be_reached_is_told_to_whoever_opens_the_session(server: MCPServer, told: str) -> None:
    """An agent without its tools would only say that it cannot."""
    async with open_system() as system:
        with pytest.raises(StartFailed) as caught:
            await system.open(Worker, session="s", model=ScriptedModel([]), tools=[server])
        assert told in str(caught.value)
        assert "secret" not in f"{caught.value}{server!r}"


def named_tools(*servers: MCPServer) -> type[Agent]:
    class Careless(Agent):
        tools = servers

    return Careless


@pytest.mark.parametrize(
    ("make_it", "told"),
    [
        (MCPServer, "takes one of a command, url= and server="),
        (lambda: MCPServer(["x"], url="http://x"), "takes one of"),
        (lambda: MCPServer("python server.py"), "write its words"),
        (lambda: MCPServer([]), "write its words"),
        (lambda: MCPServer(url="ftp://x"), "begins with http"),
        (lambda: MCPServer(["x"], name="a b"), "found name='a b'"),
        (lambda: named_tools(MCPServer(["x"]), MCPServer(["y/x"])), "Careless has two MCP servers called 'x'"),
    ],
)
def test_what_is_no_server_is_refused_when_it_is_written(make_it: Callable[[], object], told: str) -> None:
    """Its author reads what to write."""
    with pytest.raises(ConfigError) as caught:
        make_it()
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("server", "name"),
    [
        (MCPServer(["python", "-m", "weather"]), "weather"),
        (MCPServer(["npx", "-y", "@model/server-git", "--x"]), "server-git"),
        (MCPServer(["env", "TOKEN=1", "uv", "run", "src/my.server.py"]), "my_server"),
        (MCPServer(["python"]), "python"),
        (MCPServer(url="https://mcp.example.com/x"), "mcp_example_com"),
        (MCPServer(server=make("add")), "things"),
        (MCPServer(["x"], name="mine"), "mine"),
    ],
)
def test_a_server_without_a_name_is_named_for_what_it_is(server: MCPServer, name: str) -> None:
    """Where that reads badly, give it one."""
    assert server.name == name


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the agent is written, not when it is opened."""
    monkeypatch.setattr(_extras, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'postroom\[mcp\]'"):
        MCPServer(["x"])


async def test_a_list_of_pages_is_read_to_its_end_or_to_a_bound() -> None:
    """A server that never ends its list does not hold the session for ever."""

    class Endless:
        asked: ClassVar[list[Any]] = []

        async def list_tools(self, cursor: Any, cache_mode: str) -> Any:
            self.asked.append(cursor)
            tools = [SimpleNamespace(name=f"t{cursor}", description=None, title="A title", input_schema={})]
            return SimpleNamespace(tools=tools, next_cursor=str(len(self.asked)))

    link = Link(MCPServer(["x"]))
    await link._list(Endless())
    assert Endless.asked[:3] == [None, "1", "2"]
    assert len(link.offers) == 100
    assert link.offers[0].description == "A title"
