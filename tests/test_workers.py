"""Several processes on one PostgreSQL: they share the sessions, take over from each other, and lose and double nothing."""

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE

import pytest
import trio
from attrs import evolve
from command import COMMAND
from crossing import mailed
from crowd import LOG, Member
from nightly import NIGHTLY
from postgres_server import VARIABLE, Server, empty, programs
from postgres_stores import opened, rows

from actors._limits import SESSION_DEFAULTS
from actors.agent._record import State
from actors.models._items import Item
from actors.models._transcript import Validator
from actors.store.postgres import PostgresStore
from supervision import System, open_system
from supervision._elsewhere import mail_in

HERE = Path(__file__).parent
PLACE = {"PYTHONPATH": f"{HERE.parent}:{HERE}"}
MEMBERS = [f"m-{number}" for number in range(8)]
LENGTH = 6  # of a chain
LEASE = 1.2  # seconds
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
Started = Callable[[], Awaitable[trio.Process]]


@pytest.fixture
def url() -> str:
    """An empty schema."""
    return empty()


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of our own, to stop and start."""
    if programs() is None:
        pytest.skip(f"no PostgreSQL to stop and start; a server in {VARIABLE} is left alone")
    made = Server()
    yield made
    made.end()


# ------------------------------------------------------------------ the load
@asynccontextmanager
async def workers(command: list[str], log: Path) -> AsyncIterator[Started]:
    """What starts a worker, and waits until it works; none is left behind."""
    started: list[trio.Process] = []
    place = PLACE | {LOG: str(log)}

    async def start() -> trio.Process:
        process = await trio.lowlevel.open_process(command, stdout=PIPE, stderr=PIPE, env=os.environ | place)
        started.append(process)
        said = b""
        while b"work" not in said:
            for stream in (process.stdout, process.stderr):
                with trio.move_on_after(0.05):
                    said += bytes(await stream.receive_some())  # type: ignore[union-attr]
            assert process.poll() is None, said
        nursery.start_soon(silent, process)
        return process

    async with trio.open_nursery() as nursery:
        try:
            yield start
        finally:
            for each in started:
                if each.returncode is None:
                    each.kill()
                    with trio.CancelScope(shield=True):
                        await each.wait()
            nursery.cancel_scope.cancel()


async def silent(process: trio.Process) -> None:
    """Read what it says, so that it never waits for a reader."""
    async with trio.open_nursery() as nursery:
        for stream in (process.stdout, process.stderr):
            nursery.start_soon(drained, stream)


async def drained(stream: trio.abc.ReceiveStream | None) -> None:
    assert stream is not None
    async for _ in stream:
        pass


def crowd(url: str) -> list[str]:
    """A worker whose lease is short."""
    return [sys.executable, str(HERE / "crowd.py"), url, str(LEASE)]


@asynccontextmanager
async def host(url: str) -> AsyncIterator[System]:
    """A process that runs no session: it made them, and people write from there."""
    async with open_system(store=PostgresStore(url, LEASE)) as system:
        for member in MEMBERS:
            await system.open(Member, session=member, deps="")
    async with open_system(store=PostgresStore(url, LEASE)) as system:
        yield system


async def talk(system: System, chains: range) -> None:
    """Begin some chains, as a person would; a moment between two, so that the trouble comes in their midst."""
    for number in chains:
        await system.session(MEMBERS[number % len(MEMBERS)]).send(f"c{number} {LENGTH}", id=f"web-{number}", wait=20)
        await trio.sleep(0.03)


async def at_rest(url: str, most: int) -> dict[str, tuple[Item, ...]]:
    """Wait until all was passed on and nothing is open; the transcripts."""
    async with opened(url, seconds=300 if NIGHTLY else 60) as store:
        while True:
            found = [await store.look(member) for member in MEMBERS]
            states = {each[0].id: each[0] for each in found if each is not None}
            if (
                len(words_of(url)) >= most
                and all(not state.live for state in states.values())
                and not any(each[1] for each in found if each)
            ):
                return {id: tuple(state.items) for id, state in states.items()}
            await trio.sleep(0.1)


def words_of(url: str) -> Counter[str]:
    """What was said to anybody, and how often."""
    return Counter(
        text for (text,) in rows(url, "SELECT body::json ->> 'text' FROM mail WHERE kind = 0 AND body LIKE '%message%'")
    )


# ------------------------------------------------------------------ what has to hold
def hold(url: str, log: Path, transcripts: dict[str, tuple[Item, ...]], chains: int) -> None:
    """Nothing lost, nothing doubled, each call settled, each transcript valid."""
    said = {f"c{chain} {left}": 1 for chain in range(chains) for left in range(LENGTH + 1)}
    assert words_of(url) == said
    for box, seqs in rows(url, "SELECT box, array_agg(seq ORDER BY seq) FROM mail GROUP BY box"):
        assert seqs == list(range(1, len(seqs) + 1)), box
    conversational = {
        (address, seq)
        for address, seq in rows(
            url, "SELECT address, seq FROM mail JOIN mailboxes USING (box) WHERE body NOT LIKE '%tool_call_finished%'"
        )
    }
    told = Counter((id, mail.seq) for id, items in transcripts.items() for mail in mail_in(items))
    assert {each: told[each] for each in conversational} == dict.fromkeys(conversational, 1)
    for items in transcripts.values():
        Validator().check(items)
    did = Counter((line["tool"], line["key"]) for line in map(json.loads, log.read_text().splitlines()))
    assert max(count for (tool, _), count in did.items() if tool == "mark") == 1
    assert rows(url, "SELECT count(*) FROM calls WHERE outcome IS NULL") == [(0,)]


def who_worked(log: Path) -> set[int]:
    """The processes that ran calls."""
    return {json.loads(line)["process"] for line in log.read_text().splitlines()} if log.exists() else set()


# ------------------------------------------------------------------ sharing
async def test_two_workers_share_the_sessions_and_one_hands_over_at_once(url: str, tmp_path: Path) -> None:
    """SIGTERM finishes what is being written and frees the rest: nobody waits for its lease, which has 30 s."""
    log = tmp_path / "log"
    command = [*COMMAND, "worker", "crowd", "--store", url]
    async with host(url) as system, workers(command, log) as start:
        first = await start()
        await start()
        await talk(system, range(12))
        first.terminate()
        with trio.fail_after(20):  # less than the lease
            assert await first.wait() == 128 + signal.SIGTERM
            await talk(system, range(12, 16))
        transcripts = await at_rest(url, 16 * (LENGTH + 1))
    hold(url, log, transcripts, 16)
    assert len(who_worked(log)) == 2


async def trouble(some: list[trio.Process], start: Started, server: Server) -> None:
    """One is killed and replaced, one sleeps past its lease and has to go on alone, and the database crashes under it."""
    some.pop(0).kill()
    some.append(await start())
    await trio.sleep(LEASE / 2)
    some[0].send_signal(signal.SIGSTOP)
    await trio.sleep(2 * LEASE)  # its sessions go to the others
    some[0].send_signal(signal.SIGCONT)
    await trio.sleep(0.2)
    for other in some[1:]:
        other.terminate()
    server.stop()
    await trio.sleep(0.3)
    await trio.to_thread.run_sync(server.start)


@pytest.mark.parametrize("count", [2, 4] if NIGHTLY else [2])
async def test_whatever_becomes_of_workers_nothing_is_lost_or_doubled(server: Server, tmp_path: Path, count: int) -> None:
    """People write meanwhile; what the one that slept still commits is refused, and then it works on."""
    url, log = server.url(), tmp_path / "log"
    chains = 600 if NIGHTLY else 60
    async with host(url) as system, workers(crowd(url), log) as start:
        some = [await start() for _ in range(count)]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(talk, system, range(chains))
            for _ in range(5 if NIGHTLY else 1):
                await trio.sleep(0.3)
                await trouble(some, start, server)
                del some[1:]
                some += [await start() for _ in range(count - 1 if NIGHTLY else 0)]
        transcripts = await at_rest(url, chains * (LENGTH + 1))
    hold(url, log, transcripts, chains)


# ------------------------------------------------------------------ crossing
async def test_sessions_that_mail_each_other_never_lock_each_other_out(url: str) -> None:
    """Commits of four processes, each with mail to others and to itself: no deadlock, no gap, nobody left asleep."""
    of, commits = 4, 250 if NIGHTLY else 30
    sessions = range(2 * of)
    async with opened(url) as store:
        for number in sessions:
            await store.create(State(f"s{number}", "Crowd", limits=evolve(SESSION_DEFAULTS, max_unread=100_000)))
    before = rows(url, DEADLOCKS)
    command = [sys.executable, str(HERE / "crossing.py"), url, str(of), str(commits)]
    done = await trio.run_process(command, capture_stdout=True, env=os.environ | PLACE)
    sent = {
        (f"s{to}", f"{number}.{commit}")
        for number in sessions
        for commit in range(commits)
        for to in mailed(number, commit, 2 * of)
    }
    assert sorted(rows(url, "SELECT address, id FROM mail JOIN mailboxes USING (box)")) == sorted(sent)
    gaps = "SELECT address FROM mailboxes WHERE last <> (SELECT count(*) FROM mail WHERE mail.box = mailboxes.box)"
    assert rows(url, gaps) == []
    assert rows(url, DEADLOCKS) == before
    assert len(done.stdout.split()) == of
