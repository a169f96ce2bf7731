"""Lives: how one begins, ends, is buried, and what follows.

All lives are tasks of one root nursery; which belongs under which is data. The scope of a life is made, shielded, before
its task starts, so a stop can come first, and an outer cancellation reaches nobody before the ordered stop does. A task
always ends in `bury`; no child's error reaches the nursery.

The order at an end
===================

    1  mail is refused                      (a final stop only; between two lives mail is accepted)
    2  the handler is cancelled             (or it raised, or returned)
    3  the children are stopped             newest first, all at once; a supervisor's one by one, in reverse
    4  `on_stop` runs                       shielded; it and the handler's own cleanup share one clock of `shutdown` seconds
    5  the generation is revoked            what this life still does is `Fenced`
    6  what must fail fails                 the asker of the message in progress, deferred replies; the message is a dead letter
    7  if no next life: the exit is set, the name is free, unread asks fail, unread mail is dead letters
    8  the watchers hear                    after 7, so that a watcher can reuse the name
    9  else: the next life begins

trio cannot kill a task. A life that is still there when its clock ran out is a zombie: steps 3 and 5 to 9 are done without
it, its voice is revoked, and the tree shows it until its task ends.
"""

import logging
from collections.abc import Sequence
from functools import partial
from logging import ERROR
from math import inf
from typing import Any

import trio
from trio.lowlevel import disable_ki_protection, enable_ki_protection

from actors._actor import Actor
from actors._deadlines import Entry
from actors._errors import ActorCrashed, ActorStopped, RecipientStopped, StartFailed
from actors._exit import Exit, Failed, Killed, Status, Stopped
from actors._identity import current
from actors._life import Life
from actors._ref import StopMode
from actors._verdict import as_text, for_the_root, strip, verdict

from ._place import Place

log = logging.getLogger("postroom.supervision")
MOMENT = 0.01


class InitTimeoutError(Exception):
    """An actor was not ready within its `init_timeout`."""


class Lives:
    """Begins and ends the lives of one system."""

    def __init__(self, runtime: Any) -> None:
        self.runtime = runtime
        self.running: dict[Life, Place] = {}
        self.zombies: dict[Life, Place] = {}
        self.hurried = False  # a second Ctrl-C: no cleanup gets time any more
        self._clocks: dict[Life, Entry] = {}
        self._goodbyes: dict[Life, trio.CancelScope] = {}

    # -------------------------------------------------------------- beginning
    @enable_ki_protection
    def begin(self, place: Place) -> Life:
        """Start the next life of a place; it accepts mail from here on."""
        self.runtime.succession.log_crash(place, "it restarts with its group")  # unless that was told already
        self.runtime.succession.announce(place)  # likewise
        place.generation += 1
        life = Life(place.address, place.sender, self.runtime, place.mailbox, place.generation)
        life.max_wait = place.max_wait
        place.life = life
        place.status = Status.STARTING if place.generation == 1 else Status.RESTARTING
        place.cleanup_by = None
        self.running[life] = place
        if place.spec.init_timeout != inf:
            self._clocks[life] = self.runtime.deadlines.after(place.spec.init_timeout, partial(self._not_ready, place, life))
        self.runtime.tasks += 1
        place.context.run(partial(self.runtime.nursery.start_soon, self.run, place, life, name=place.address))
        return life

    def _not_ready(self, place: Place, life: Life) -> None:
        life.late = InitTimeoutError(f"not ready within {place.spec.init_timeout:g} s")
        self._cancel(place, life)

    @enable_ki_protection
    def on_ready(self, life: Life) -> None:
        """Its `on_start` is done: whoever waits for the start goes on."""
        place = self.running.get(life)
        if place is None:  # killed, or given up, while it started
            life.check()
            return
        if life.late is not None:
            raise life.late
        self._stop_clock(life)
        life.ready = True
        place.started = True
        if place.spec.backoff is not None and place.kind != "session":
            place.since = trio.current_time()
        place.status = Status.IDLE
        if place.ready is not None:
            place.ready.set()
        if life.generation > 1 and not life.resigned:
            self.runtime.restarts += 1
            self.runtime.hub.restarted(place.address, place.attempts or life.generation - 1)

    async def start(self, place: Place) -> None:
        """Begin the first life and wait until it is ready; `StartFailed` if it never was. Cancelled, it stops the place first."""
        place.ready = trio.Event()
        self.begin(place)
        waited = False
        try:
            await place.ready.wait()
            waited = True
        finally:
            if not waited:  # also where it became ready in the very moment of the cancel
                with trio.CancelScope(shield=True):
                    self.request_stop(place, "now", "its start was cancelled")
                    await place.wait()
        if not place.started:
            assert place.exit is not None
            error = place.exit.error if isinstance(place.exit, Failed) else ActorStopped(address=place.address, exit=place.exit)
            raise error if isinstance(error, StartFailed) else StartFailed(path=place.address, error=error)

    # -------------------------------------------------------------- running
    @enable_ki_protection
    async def run(self, place: Place, life: Life) -> None:
        """The task of a life."""
        current.set(life)
        exit: Exit | None = None
        try:
            with life.scope:
                exit = await place.body(self, life)
        except BaseException as error:  # noqa: BLE001  # the one place where a failure becomes an exit
            exit = verdict(error, cancelled=life.scope.cancel_called)
        try:
            if life in self.running:
                await self._end(place, life, self._named(place, life, exit))
        finally:
            life.gone = True
            self.running.pop(life, None)
            if self.zombies.pop(life, None) is not None:
                log.warning("%s: a zombie has ended", place.address, extra={"address": place.address})
            self.runtime.task_ended()

    def _named(self, place: Place, life: Life, exit: Exit | None) -> Exit:
        """What to call this end: a failed start and a stop that was asked for go before what the task reported."""
        if life.late is not None and not life.ready:
            return Failed(life.late)
        if place.asked == "kill":
            return Killed(place.reason)
        if exit is None or (place.asked is not None and isinstance(exit, Stopped)):
            return Stopped(place.reason)
        return exit

    # -------------------------------------------------------------- ending
    async def _end(self, place: Place, life: Life, exit: Exit) -> None:
        """Steps 3 to 9, in the life's own task."""
        life.failure = exit if isinstance(exit, Failed) else None
        place.status = Status.STOPPING
        if place.outlives(exit):
            self.bury(place, life, exit)
            return
        by = place.cleanup_by
        if by is None and (place.children or life.actor is not None):
            by = place.cleanup_by = trio.current_time() + place.spec.shutdown
            self._watch_clock(place, life, place.spec.shutdown)
        if place.children and by is not None:
            self._stop_clock(life)
            life.over = True
            with trio.CancelScope(shield=True):
                by = place.cleanup_by = by + await self._stop_children(place)
            self._watch_clock(place, life, max(0.0, by - trio.current_time()))
        life.over = True
        if life.actor is not None and life.ready and life in self.running and not isinstance(exit, Killed):
            exit = await self._say_goodbye(place, life, exit)
        if life in self.running:
            self.bury(place, life, exit)

    async def _stop_children(self, place: Place) -> float:
        began = trio.current_time()
        children = place.children or {}
        if place.kind == "supervisor":
            for spec in reversed(place.spec.children):  # type: ignore[union-attr]
                if spec.name in children:
                    await self.stop_all([children[spec.name]], "its supervisor stops")
        else:
            await self.stop_all(list(reversed(children.values())), "its parent stops")
        return trio.current_time() - began

    async def stop_all(self, places: Sequence[Place], reason: str) -> None:
        """Stop these at once; wait until each has its exit."""
        for place in places:
            self.request_stop(place, "now", reason)
        for place in places:
            if place.exit is None:  # else its wait would be a checkpoint, and a thousand of them a while
                await place.wait()

    async def _say_goodbye(self, place: Place, life: Life, exit: Exit) -> Exit:
        assert place.cleanup_by is not None
        if type(life.actor).on_stop is Actor.on_stop:  # nobody has anything to say
            return exit
        scope = self._goodbyes[life] = trio.CancelScope(shield=True, deadline=-inf if self.hurried else place.cleanup_by)
        try:
            with scope:
                await on_stop(life.actor, exit)
            if scope.cancelled_caught:
                cut = "%s: on_stop was cut off after %g s"
                log.warning(cut, place.address, place.spec.shutdown, extra={"address": place.address})
        except BaseException as error:  # noqa: BLE001  # a cleanup's failure is this life's
            failed = verdict(error)
            if isinstance(failed, Failed) and exit.normal:
                return failed
            if isinstance(failed, Failed):
                self.runtime.to_the_root(for_the_root(error))
                log.log(ERROR, "%s: on_stop raised\n%s", place.address, as_text(error), extra={"address": place.address})
        finally:
            del self._goodbyes[life]
        return exit

    @enable_ki_protection
    def hurry(self) -> None:
        """Cancel every life and every cleanup at once."""
        self.hurried = True
        for life in tuple(self.running):
            life.scope.cancel()
        for scope in self._goodbyes.values():
            scope.cancel()

    @enable_ki_protection
    def bury(self, place: Place, life: Life, exit: Exit) -> None:
        """Steps 5 to 9: sync, so nobody sees half of it."""
        self._stop_clock(life)
        self.running.pop(life, None)
        life.revoke()
        place.life = None
        if isinstance(exit, Failed):
            self.runtime.to_the_root(for_the_root(exit.error))
        text = ""
        if isinstance(exit, Failed):
            if log.isEnabledFor(ERROR):  # wording a traceback costs five times what the restart does
                text = as_text(exit.error)
            strip(exit.error)
        self._settle(place, life, exit)
        for entry in life.timers.values():
            self.runtime.deadlines.drop(entry)
        self.runtime.watches.drop_all(place)
        self.runtime.succession.after(place, life, exit, text)

    def _settle(self, place: Place, life: Life, exit: Exit) -> None:
        """Step 6: the message in progress, what its `receive` took, and the replies this life still owed."""
        box = place.mailbox
        begun = [*((life.mail,) if life.mail is not None and place.kind != "session" else ()), *(life.taken or ())]
        life.mail = life.taken = None
        again = [envelope for envelope in begun if self._again(place, envelope.seq, exit)]
        for envelope in again:  # first: what is handled moves the cursor past what is not put back
            box.put_back(envelope)
        owed = (life.deferred or set()).difference(envelope.token for envelope in again)
        for envelope in begun:
            if envelope in again:
                continue
            box.handled(envelope)
            if envelope.token is None or isinstance(exit, Failed):
                self.runtime.dead_letter(envelope, place.address, f"being handled when its actor ended: {exit!r}")
            if envelope.token is not None:
                owed.add(envelope.token)
        for token in owed:
            token.fail(self.failure(place, exit))
        life.deferred = None

    def _again(self, place: Place, seq: int, exit: Exit) -> bool:
        """Whether a message that was being handled in a crash is handled once more (`max_deliveries`)."""
        if (
            place.spec.max_deliveries == 1
            or not isinstance(exit, Failed)
            or place.asked is not None
            or seq <= place.mailbox.cursor
        ):
            return False
        cursor = place.mailbox.cursor
        counts = place.deliveries = {each: count for each, count in (place.deliveries or {}).items() if each > cursor}
        counts[seq] = counts.get(seq, 1) + 1
        if counts[seq] <= place.spec.max_deliveries:
            return True
        del counts[seq]
        return False

    @staticmethod
    def failure(place: Place, exit: Exit) -> Exception:
        """A fresh error for one asker."""
        if isinstance(exit, Failed):
            return ActorCrashed(address=place.address, error=exit.error)
        return ActorStopped(address=place.address, exit=exit)

    # -------------------------------------------------------------- stopping
    @enable_ki_protection
    def request_stop(self, place: Place, mode: StopMode, reason: str) -> None:
        """Ask for the end, for good. The first wish is kept, but `kill` and `now` overtake a `drain`."""
        order = ("drain", "now", "kill")
        if place.exit is not None or (place.asked is not None and order.index(mode) <= order.index(place.asked)):
            return
        place.asked = mode
        place.reason = reason
        place.mailbox.close(lambda: RecipientStopped(address=place.address, exit=Stopped("stopping")))
        life = place.life_to_end()
        if life is None:
            self.runtime.succession.finish(place, Stopped(reason))
            return
        place.status = Status.STOPPING
        if mode == "drain" and life.ready and place.drain():
            life.draining = True
            self._clocks[life] = self.runtime.deadlines.after(
                place.spec.shutdown, partial(self.request_stop, place, "now", "drained too long")
            )
            return
        self.runtime.succession.fail_asks(place, Stopped("stopping"), skip=life.mail)
        if mode == "kill":
            self._kill(place, life)
        else:
            self._cancel(place, life)

    def _cancel(self, place: Place, life: Life) -> None:
        if place.cleanup_by is None and place.spec.shutdown != inf:
            place.cleanup_by = trio.current_time() + place.spec.shutdown
            self._watch_clock(place, life, place.spec.shutdown)
        life.scope.cancel()
        place.mailbox.disturbed = True  # the loop begins no more messages

    def _kill(self, place: Place, life: Life) -> None:
        life.revoke()
        life.scope.cancel()
        place.mailbox.disturbed = True
        if not life.gone:
            self.runtime.deadlines.after(MOMENT, partial(self._still_there, place, life, "was killed and is still there"))
        self._without_it(place, life, Killed(place.reason))

    async def halt(self, place: Place, reason: str) -> None:
        """End the current life but not the place: a group restart begins the next one."""
        life = place.life_to_end()
        if life is None or place.asked is not None:
            if place.asked is not None:
                await place.wait()
            return
        place.halted = trio.Event()
        place.reason = reason
        try:
            self._cancel(place, life)
            await place.halted.wait()
        finally:
            place.halted = None

    # -------------------------------------------------------------- zombies
    def _watch_clock(self, place: Place, life: Life, seconds: float) -> None:
        self._stop_clock(life)
        if seconds != inf:
            # A moment past the clock: what ends exactly in time is no zombie.
            self._clocks[life] = self.runtime.deadlines.after(seconds + MOMENT, partial(self._overdue, place, life))

    def _stop_clock(self, life: Life) -> None:
        entry = self._clocks.pop(life, None)
        if entry is not None:
            self.runtime.deadlines.drop(entry)

    def _overdue(self, place: Place, life: Life) -> None:
        if life not in self.running:
            return
        life.revoke()
        self._still_there(place, life, f"outlived its {place.spec.shutdown:g} s of shutdown")
        failed = life.failure or (Failed(life.late) if life.late is not None and not life.ready else None)
        self._without_it(place, life, failed or Killed(f"still there after {place.spec.shutdown:g} s"))

    def _still_there(self, place: Place, life: Life, why: str) -> None:
        if not life.gone:
            self.zombies[life] = place
            facts = {"address": place.address}
            log.error("%s %s; its voice is revoked and it stays as a zombie", place.address, why, extra=facts)

    def _without_it(self, place: Place, life: Life, exit: Exit) -> None:
        """Steps 3 and 5 to 9 for a life that does not do them itself."""
        if place.children:
            self.running.pop(life, None)
            self.runtime.nursery.start_soon(self._bury_later, place, life, exit, name=f"{place.address} (burial)")
            self.runtime.tasks += 1
        else:
            self.bury(place, life, exit)

    async def _bury_later(self, place: Place, life: Life, exit: Exit) -> None:
        try:
            with trio.CancelScope(shield=True):
                await self._stop_children(place)
            self.bury(place, life, exit)
        finally:
            self.runtime.task_ended()


@disable_ki_protection
async def on_stop(actor: Any, exit: Exit) -> None:
    """An actor's goodbye; a Ctrl-C may land in it."""
    await actor.on_stop(exit)
