"""One thread writes: all that waits becomes one transaction.

Theory
======

A durable commit costs a flush of the disk, whatever is in it. So the thread takes everything that waits, runs each job
under a savepoint of its own, commits once, and wakes everybody: one waiter costs what one flush does, two hundred hardly
more. A job that fails is rolled back alone; where the commit itself fails, everything of the batch does. Letters need no
savepoint: they are refused before anything is written, and written together.

Jobs are handed to the thread when trio's scheduler has let every task run that could, and not one by one: two hundred senders
that were woken together send together, and the thread does not fight them for the interpreter meanwhile.

What follows from a job in memory (`then`) is done in trio's thread, in the order of the transaction and before anybody is
woken: mail reaches a mailbox in the order of its seqs, and no task sees a commit on disk that memory does not have.

Other processes may write to the file too. A transaction that finds that one did looks first at what it did (`foreign`), so that
its mail reaches the mailboxes here before any that comes after it.

A job that was begun is never taken back. Whoever is cancelled while it waits has not been told; the job is done all the same.
"""

import sqlite3
import threading
from collections.abc import Callable, Coroutine, Iterator
from math import inf
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import outcome
import trio
from attrs import define
from trio.lowlevel import enable_ki_protection

from actors._errors import ActorsError, StoreError

from ._admit import Accepted, Letter
from ._post import Intake
from ._trouble import trouble

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], Any]
PATIENCE = 32  # passes of trio's scheduler
MOST = 256  # jobs in one transaction: it bounds how long a commit can take


@define(eq=False)
class Job:
    """Work to do, or a letter to accept, and what came of it: a value, or an error."""

    work: Any  # None for a letter
    letter: Letter | None
    then: Callable[[Any], Any] | None
    task: trio.lowlevel.Task | None = None
    value: Any = None
    error: BaseException | None = None

    def unwrap(self) -> Any:
        """What came of it, as of an outcome: making one for each job costs a tenth of a send."""
        if self.error is not None:
            raise self.error
        return self.value

    def leave(self, _raise_cancel: Any) -> trio.lowlevel.Abort:
        """Nobody waits for it any more."""
        self.task = None
        return trio.lowlevel.Abort.SUCCEEDED

    def stay(self, _raise_cancel: Any) -> trio.lowlevel.Abort:
        """It is waited for to the end, as under a shield."""
        return trio.lowlevel.Abort.FAILED


class _HandOver(trio.abc.Instrument):
    """Calls a function whenever trio's scheduler has run all that could run, with how long it will wait for more."""

    def __init__(self, fn: Callable[[float], object]) -> None:
        self._fn = fn

    def before_io_wait(self, timeout: float) -> None:
        """Call it."""
        self._fn(timeout)


class Writer:
    """The writer thread of one file. `do` gives it a job; nothing else changes the file."""

    def __init__(self, path: str, db: sqlite3.Connection, foreign: Work, then: Callable[[Any], Any]) -> None:
        self.commits = 0
        self._foreign = (foreign, None, then)
        self._version: int | None = None  # of the file; only other processes' commits change it
        self._path = path
        self._db = db
        self._gathered: list[Job] = []  # in trio's thread, until it has nothing else to do
        self._passes = 0  # of the scheduler, that they may still wait for a job that somebody waits for
        self._jobs: SimpleQueue[list[Job] | None] = SimpleQueue()
        self._token = trio.lowlevel.current_trio_token()
        self._hand_over = _HandOver(self._send_off)
        trio.lowlevel.add_instrument(self._hand_over)
        self._over = False
        self._thread = threading.Thread(target=self._run, name=f"postroom store {path}", daemon=True)
        self._thread.start()

    # -------------------------------------------------------------- in trio's thread
    def take_in(self, letter: Letter, then: Callable[[Accepted], Any]) -> Coroutine[Any, Any, Any]:
        """As `do`: accept a letter."""
        return self._wait(Job(None, letter, then))

    def do(self, work: Callable[[sqlite3.Connection], T], then: Callable[[T], Any] | None = None) -> Coroutine[Any, Any, Any]:
        """Run `work` in a transaction; what `then` makes of its result, or the result, once it is durable.

        Cancelled meanwhile, it is done all the same. Raises what `work` raises, and `StoreError` for what SQLite could not do.
        """
        return self._wait(Job(work, None, then))

    def carry_out(self, work: Work, then: Callable[[Any], Any]) -> Coroutine[Any, Any, Any]:
        """As `do`, and a cancel that comes meanwhile waits until it is done."""
        return self._wait(Job(work, None, then), shielded=True)

    @enable_ki_protection
    async def _wait(self, job: Job, *, shielded: bool = False) -> Any:
        if self._over:
            raise StoreError(f"the store {self._path} is closed; use it inside the block of its system")
        job.task = trio.lowlevel.current_task()
        self._gathered.append(job)
        self._passes = 0
        return await trio.lowlevel.wait_task_rescheduled(job.stay if shielded else job.leave)

    def withdraw(self, posted: Job) -> bool:
        """Take back what was posted, if it is not on its way yet and nothing came after it."""
        newest = bool(self._gathered) and self._gathered[-1] is posted
        if newest:
            self._gathered.pop()
        return newest

    def post(self, work: Work, then: Callable[[Any], Any] | None = None) -> Job:
        """Run `work` without waiting for it; `then` hears if it is kept, nobody if it is not.

        It goes with the next job that somebody waits for, or as soon as trio has nothing to do.
        """
        if not self._gathered:
            self._passes = PATIENCE
        job = Job(work, None, then)
        self._gathered.append(job)
        return job

    def _send_off(self, pause: float) -> None:
        if self._gathered and (pause > 0 or self._passes <= 0):
            self._jobs.put(self._gathered)
            self._gathered = []
        self._passes -= 1

    async def close(self) -> None:
        """Finish what was begun and end the thread."""
        self._over = True
        trio.lowlevel.remove_instrument(self._hand_over)
        self._send_off(inf)
        self._jobs.put(None)
        await trio.to_thread.run_sync(self._thread.join)

    @enable_ki_protection
    def _settle(self, batch: list[Job]) -> None:
        for job in batch:
            if job.error is None and job.then is not None:
                try:
                    job.value = job.then(job.value)
                except Exception as error:  # noqa: BLE001  # whoever waits for it shall see it, and nobody else
                    job.error = error
        for job in batch:
            if job.task is not None:
                trio.lowlevel.reschedule(job.task, job)  # type: ignore[arg-type]  # all that trio asks of an outcome is `unwrap`

    # -------------------------------------------------------------- in its own thread
    def _run(self) -> None:
        for batch in self._batches():
            self._commit(batch)
            try:
                self._token.run_sync_soon(self._settle, batch)
            except trio.RunFinishedError:
                return

    def _batches(self) -> Iterator[list[Job]]:
        """All that waits, as it came, at most `MOST` jobs at a time, until the end."""
        waiting: list[Job] = []
        over = False
        while waiting or not over:
            while not over and len(waiting) < MOST:
                try:
                    more = self._jobs.get(block=not waiting)
                except Empty:
                    break
                over = more is None
                waiting += more or ()
            if waiting:
                yield waiting[:MOST]
                waiting = waiting[MOST:]

    def _commit(self, batch: list[Job]) -> None:
        """One transaction. Whatever happens, each job has its result, no transaction stays open, and the thread lives."""
        done = outcome.capture(self._transact, batch)
        if isinstance(done, outcome.Error):
            failed = trouble(self._path, done.error)
            for job in batch:
                job.error = job.error or type(failed)(*failed.args)
            self._roll_back()

    def _transact(self, batch: list[Job]) -> None:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        [version] = db.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            batch.insert(0, Job(*self._foreign))
        intake, lonely = Intake(db), len(batch) == 1
        for job in batch:
            if job.letter is None:
                self._work(job, intake, lonely=lonely)
                continue
            try:
                job.value = intake.accept(job.letter)
            except ActorsError as refusal:
                job.error = refusal
        intake.flush()
        if lonely and batch[0].error is not None:
            self._roll_back()
            return
        db.execute("COMMIT")
        self.commits += 1
        self._version = version

    def _work(self, job: Job, intake: Intake, *, lonely: bool) -> None:
        """Do one job, under a savepoint if it is not alone. Raises `sqlite3.Error` where the whole transaction is lost."""
        db = self._db
        if not lonely:
            intake.flush()
            db.execute("SAVEPOINT job")
        done = outcome.capture(job.work, db)
        if isinstance(done, outcome.Value):
            job.value = done.value
        else:
            failed = isinstance(done.error, sqlite3.Error)
            if failed and (lonely or not db.in_transaction):
                raise done.error
            job.error = trouble(self._path, done.error) if failed else done.error
            if not lonely:
                db.execute("ROLLBACK TO job")
        if not lonely:
            db.execute("RELEASE job")

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            try:
                self._db.execute("ROLLBACK")
            except sqlite3.Error:
                self._db.close()  # it will not go on, and says so to whoever comes next
