"""One thread writes: all that waits becomes one transaction.

Theory
======

A durable commit costs a flush of the disk, whatever is in it. So the thread takes everything that waits, runs each job
under a savepoint of its own, commits once, and wakes everybody: one waiter costs what one flush does, two hundred hardly
more. A job that fails is rolled back alone; where the commit itself fails, everything of the batch does. Letters need no
savepoint: they are refused before anything is written, and written together.

What follows from a job in memory (`then`) is done in trio's thread, in the order of the transaction and before anybody is
woken: mail reaches a mailbox in the order of its seqs, and no task sees a commit on disk that memory does not have.

Other processes may write to the file too. A transaction that finds that one did looks first at what it did (`foreign`), so that
its mail reaches the mailboxes here before any that comes after it.

A job that was begun is never taken back. Whoever is cancelled while it waits has not been told; the job is done all the same.
"""

import sqlite3
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import outcome
import trio
from attrs import define, field
from trio.lowlevel import enable_ki_protection

from actors._errors import StoreError
from actors._waiters import wait

from ._admit import Accepted, Letter
from ._post import Intake
from ._trouble import trouble

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], Any]
MOST = 256  # jobs in one transaction: it bounds how long a commit can take


@define(eq=False)
class _Job:
    work: Callable[[Any], Any]
    then: Callable[[Any], Any] | None
    task: trio.lowlevel.Task | None
    result: Any = field(default=None)
    light: bool = False


class Writer:
    """The writer thread of one file. `do` gives it a job; nothing else changes the file."""

    def __init__(self, path: str, db: sqlite3.Connection, foreign: Work, then: Callable[[Any], Any]) -> None:
        self.commits = 0
        self._foreign = (foreign, then)
        self._version: int | None = None  # of the file; only other processes' commits change it
        self._path = path
        self._db = db
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._token = trio.lowlevel.current_trio_token()
        self._over = False
        self._thread = threading.Thread(target=self._run, name=f"postroom store {path}", daemon=True)
        self._thread.start()

    # -------------------------------------------------------------- in trio's thread
    @enable_ki_protection
    async def take_in(self, letter: Letter, then: Callable[[Accepted], Any]) -> Any:
        """As `do`: accept a letter."""
        return await self._wait(_Job(lambda intake: intake.accept(letter), then, trio.lowlevel.current_task(), light=True))

    @enable_ki_protection
    async def do(self, work: Callable[[sqlite3.Connection], T], then: Callable[[T], Any] | None = None) -> Any:
        """Run `work` in a transaction; what `then` makes of its result, or the result, once it is durable.

        Cancelled meanwhile, it is done all the same. Raises what `work` raises, and `StoreError` for what SQLite could not do.
        """
        return await self._wait(_Job(work, then, trio.lowlevel.current_task()))

    async def _wait(self, job: _Job) -> Any:
        if self._over:
            raise StoreError(f"the store {self._path} is closed; use it inside the block of its system")
        self._jobs.put(job)

        def leave() -> None:
            job.task = None

        return await wait(leave)

    def post(self, work: Work) -> None:
        """Run `work` without waiting for it; what becomes of it is nobody's business."""
        self._jobs.put(_Job(work, None, None))

    async def close(self) -> None:
        """Finish what was begun and end the thread."""
        self._over = True
        self._jobs.put(None)
        await trio.to_thread.run_sync(self._thread.join)

    @enable_ki_protection
    def _settle(self, batch: list[_Job]) -> None:
        for job in batch:
            if isinstance(job.result, outcome.Value) and job.then is not None:
                job.result = outcome.capture(job.then, job.result.value)
        for job in batch:
            if job.task is not None:
                trio.lowlevel.reschedule(job.task, job.result)

    # -------------------------------------------------------------- in its own thread
    def _run(self) -> None:
        more = True
        while more:
            first = self._jobs.get()
            if first is None:
                return
            batch = [first]
            while more and len(batch) < MOST:
                try:
                    job = self._jobs.get_nowait()
                except Empty:
                    break
                more = job is not None
                if job is not None:
                    batch.append(job)
            self._commit(batch)
            try:
                self._token.run_sync_soon(self._settle, batch)
            except trio.RunFinishedError:
                return

    def _commit(self, batch: list[_Job]) -> None:
        """One transaction. Whatever happens, each job has its result, no transaction stays open, and the thread lives."""
        done = outcome.capture(self._transact, batch)
        if isinstance(done, outcome.Error):
            failed = trouble(self._path, done.error)
            for job in batch:
                if not isinstance(job.result, outcome.Error):
                    job.result = outcome.Error(type(failed)(*failed.args))
            self._roll_back()

    def _transact(self, batch: list[_Job]) -> None:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        [version] = db.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            batch.insert(0, _Job(*self._foreign, None))
        intake, lonely = Intake(db), len(batch) == 1
        for job in batch:
            job.result = self._taken_in(job.work, intake) if job.light else self._alone(job.work, intake, lonely=lonely)
        intake.flush()
        if lonely and isinstance(batch[0].result, outcome.Error):
            self._roll_back()
            return
        db.execute("COMMIT")
        self.commits += 1
        self._version = version

    @staticmethod
    def _taken_in(work: Callable[..., Any], *given: Any) -> Any:
        result = outcome.capture(work, *given)
        if isinstance(result, outcome.Error) and isinstance(result.error, sqlite3.Error):
            raise result.error
        return result

    def _alone(self, work: Work, intake: Intake, *, lonely: bool) -> Any:
        """Run one job under its savepoint. Raises `sqlite3.Error` where the whole transaction is lost, as that of a lonely job is."""
        db = self._db
        if lonely:
            return self._taken_in(work, db)
        intake.flush()
        db.execute("SAVEPOINT job")
        result: Any = outcome.capture(work, db)
        if isinstance(result, outcome.Error):
            if isinstance(result.error, sqlite3.Error):
                if not db.in_transaction:
                    raise result.error
                result = outcome.Error(trouble(self._path, result.error))
            db.execute("ROLLBACK TO job")
        db.execute("RELEASE job")
        return result

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            try:
                self._db.execute("ROLLBACK")
            except sqlite3.Error:
                self._db.close()  # it will not go on, and says so to whoever comes next
