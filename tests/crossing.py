"""Several processes whose sessions mail each other in their commits, as fast as they can.

    python crossing.py URL OF COMMITS

Process `me` of `OF` holds two sessions, `me` and `me + OF`; each commits so often, and each commit mails to two others and to
itself. It ends once its sessions have all the mail that is theirs, and says how long it waited for the last of it.
"""

import os
import sys
import time
from functools import partial

import trio

from actors import FromSession, UserMessage
from actors.agent._record import Commit, Draft, State
from actors.store.postgres import PostgresStore


def mailed(number: int, commit: int, sessions: int) -> set[int]:
    """To whom the n-th commit of a session sends."""
    return {number, (number + 1 + commit) % sessions, (number + 1 + 3 * commit) % sessions}


def due(number: int, commits: int, sessions: int) -> int:
    """How much mail a session gets in all."""
    return sum(number in mailed(other, commit, sessions) for other in range(sessions) for commit in range(commits))


async def write(store: PostgresStore, state: State, number: int, commits: int, sessions: int) -> None:
    """Commit, again and again."""
    for commit in range(commits):
        mail = tuple(
            Draft(f"s{to}", UserMessage(f"{commit}"), FromSession(state.id, "Crowd"), id=f"{number}.{commit}")
            for to in mailed(number, commit, sessions)
        )
        await store.commit(state, Commit(mail=mail, loop=False))


async def main(url: str, me: int, of: int, commits: int) -> None:
    """Hold two sessions until they have heard all."""
    store, mine = PostgresStore(url), (me, me + of)
    await store.open()
    states = {number: await store.load(f"s{number}") for number in mine}
    async with trio.open_nursery() as nursery:
        for number, state in states.items():
            assert state is not None
            nursery.start_soon(partial(write, store, state, number, commits, 2 * of))
    wrote = time.monotonic()
    for number in mine:
        last, box = due(number, commits, 2 * of), store.mailbox(f"s{number}")
        with trio.fail_after(600):
            await box.receive(last - 1)
        assert [mail.seq for mail in box.unread(0)] == list(range(1, last + 1))
    os.write(1, f"{time.monotonic() - wrote}\n".encode())  # whole: four of them write there
    await store.close()


def apart(url: str, of: int, commits: int) -> int:
    """Each in a fork of its own, which imports nothing anew; 0 if all went well."""
    children = []
    for me in range(of):
        child = os.fork()
        if not child:
            trio.run(main, url, me, of, commits)
            os._exit(0)
        children.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


if __name__ == "__main__":
    sys.exit(apart(sys.argv[1], *map(int, sys.argv[2:])))
