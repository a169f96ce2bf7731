"""What follows the end of a life: steps 7 to 9 of the order at an end (`_lives.py`).

the place                          what follows
is being stopped                   it ends
ended in a Ctrl-C or SystemExit    it ends; the system stops and raises it
is halted by a group restart       its supervisor begins the next life
never was ready                    it ends; whoever starts it raises what happened
is a session whose loop crashed    it is begun again after a delay, from its last commit; too often in a row: its run has failed
is a child of a supervisor         the supervisor decides
is on its own (spawned, opened)    its own restart budget decides
"""

import logging
from functools import partial
from math import inf
from typing import Any

import trio
from trio.lowlevel import enable_ki_protection

from actors._envelope import Envelope
from actors._errors import ActorStopped, RecipientStopped, RestartIntensityExceeded
from actors._exit import Exit, Failed, Status
from actors._life import Life

from ._intensity import Window
from ._place import Place
from ._spec import Backoff
from ._strategy import RESTARTS
from ._supervisor import Report, SupervisorPlace, report

log = logging.getLogger("postroom.supervision")


class Succession:
    """Decides and carries out what follows, for one system."""

    def __init__(self, root: Any) -> None:
        self.root = root

    @enable_ki_protection
    def after(self, place: Place, life: Life, exit: Exit, traceback: str) -> None:
        """Steps 7 to 9 for a buried life: the place ends, waits for its supervisor, or begins again."""
        place.crash = (exit, traceback) if isinstance(exit, Failed) else None
        place.untold = exit
        if place.asked is not None or self.root.closing:
            self.log_crash(place, "it was being stopped")
            self.finish(place, exit)
        elif for_nobody(exit):
            self.log_crash(place, "the system stops")
            self.finish(place, exit)
        elif place.halted is not None:
            self.log_crash(place, "it restarts with its group")
            place.status = Status.RESTARTING
            place.halted.set()
        elif not place.started and place.ready is not None and _starter_waits(place):
            self.finish(place, exit)  # its starter raises what happened
        elif place.backoff is not None and place.outlives(exit):
            self._alone_later(place, exit, place.backoff)
        elif isinstance(place.parent, SupervisorPlace):
            place.status = Status.RESTARTING
            if place.ready is not None:
                place.ready.set()
            report(place.parent, Report(place, life.generation, exit))
        else:
            self._alone(place, exit)

    def _alone(self, place: Place, exit: Exit) -> None:
        """A place whose restarts are its own affair: spawned, or started as a tree of one."""
        if not RESTARTS[place.spec.restart][exit.normal] or isinstance(place, SupervisorPlace):
            self.log_crash(place, "it is not restarted")
            self.finish(place, exit)
            return
        if place.spec.backoff is not None:
            self._alone_later(place, exit, place.spec.backoff)
            return
        window = place.window = place.window or Window(*self.budget(place))
        if window.allows(trio.current_time()):
            nth = len(window.times)
            self.log_crash(place, f"restart {nth} of at most {window.max_restarts} within {window.within:g} s")
            self.root.lives.begin(place)
            return
        self._give_up(place, exit, window.max_restarts, window.within)

    def _alone_later(self, place: Place, exit: Exit, backoff: Backoff) -> None:
        """As `_alone`, with a delay before each restart and a count of failures in a row."""
        delay = place.next_attempt(backoff, trio.current_time(), self.root.random.uniform(-1, 1))
        if delay is None:
            self._give_up(place, exit, backoff.max_attempts, inf)
            return
        self.log_crash(place, f"restart {place.attempts} of at most {backoff.max_attempts} in {delay:.3g} s")
        place.status = Status.RESTARTING
        self.announce(place)
        place.timer = self.root.deadlines.after(delay, partial(self._begin_again, place))

    def _begin_again(self, place: Place) -> None:
        place.timer = None
        if place.exit is None and place.life is None:
            self.root.lives.begin(place)

    def _give_up(self, place: Place, exit: Exit, restarts: int, within: float) -> None:
        error = exit.error if isinstance(exit, Failed) else None
        spent = RestartIntensityExceeded(
            address=place.address, child=place.address, restarts=restarts, within=within, error=error
        )
        self.log_crash(place, f"no more than {restarts} restarts: it has failed")
        if place.survive(spent):
            self.root.lives.begin(place).resigned = True
        else:
            self.finish(place, Failed(spent))

    @staticmethod
    def budget(place: Place) -> tuple[int, float]:
        """Restarts and seconds of a place with a budget of its own."""
        return place.budget or (3, 5.0)

    @enable_ki_protection
    def announce(self, place: Place) -> None:
        """Tell the watchers of the last life's end, once, now that it is decided that another one follows."""
        if place.untold is not None:
            exit, place.untold = place.untold, None
            self.root.watches.ended(place, exit, restarting=True)

    def log_crash(self, place: Place, follows: str) -> None:
        """Log the crash that ended the last life of a place, once, with what follows."""
        if place.crash is not None:
            (exit, traceback), place.crash = place.crash, None
            assert isinstance(exit, Failed)
            self.root.crashes += 1
            facts = {"address": place.address, "exit": repr(exit), "attempt": place.generation, "follows": follows}
            log.error(
                "%s crashed in life %d: %r; %s\n%s",
                place.address,
                place.generation,
                exit.error,
                follows,
                traceback,
                extra=facts,
            )

    @enable_ki_protection
    def finish(self, place: Place, exit: Exit) -> None:
        """The end for good: refuse mail, free the name, fail and dead-letter what is left, tell the watchers."""
        if place.exit is not None:
            return
        if place.started:  # else its starter raises it
            self.log_crash(place, "it was being stopped")
        if isinstance(place.parent, SupervisorPlace) and place.asked is not None:
            place.parent.stopped.add(place.spec.name)
        place.exit = exit
        place.untold = None
        place.status = Status.FAILED if isinstance(exit, Failed) else Status.STOPPED
        place.mailbox.close(lambda: RecipientStopped(address=place.address, exit=exit))
        self._take_out(place, exit)
        for envelope in place.left():
            if envelope.token is None:
                self.root.dead_letter(envelope, place.address, f"never handled: its actor ended ({exit!r})")
            else:
                envelope.token.fail(ActorStopped(address=place.address, exit=exit))
        place.ended()
        for event in (place.ready, place.done, place.halted):
            if event is not None:
                event.set()
        self._tell(place, exit)
        if place.parent is None and place.escalates and isinstance(exit, Failed) and place.started:
            self.root.escalate(exit.error)

    def _tell(self, place: Place, exit: Exit) -> None:
        if place.leaving:
            return
        self.root.watches.ended(place, exit, restarting=False)
        if place.kind != "call":
            self.root.hub.ended(place.address, exit)

    def _take_out(self, place: Place, exit: Exit) -> None:
        """Free its name, and its seat beside its siblings."""
        if place.timer is not None:
            self.root.deadlines.drop(place.timer)
        self.root.router.remove(place, exit)
        self.root.spending.forget(place)
        siblings = place.parent.children if place.parent is not None else None
        name = place.address.rpartition("/")[2]
        if siblings is not None and siblings.get(name) is place:
            del siblings[name]
        if place in self.root.trees:
            self.root.trees.remove(place)

    @enable_ki_protection
    def fail_asks(self, place: Place, exit: Exit, skip: Envelope | None) -> None:
        """Fail the asks that wait in the mailbox of a place that is stopping; what is being handled may still answer."""
        for envelope in place.mailbox.unread(place.mailbox.cursor):
            if envelope.token is not None and envelope is not skip:
                envelope.token.fail(ActorStopped(address=place.address, exit=exit))


def _starter_waits(place: Place) -> bool:
    """Whether this is the first start. Below a supervisor that has started it is a restart of its group that failed, mostly."""
    parent = place.parent
    at_work = isinstance(parent, SupervisorPlace) and parent.life is not None and parent.life.ready
    return place.joining or (place.generation == 1 and not at_work)


def for_nobody(exit: Exit) -> bool:
    """Whether it is an end that no restart may answer: a KeyboardInterrupt or SystemExit."""
    return isinstance(exit, Failed) and isinstance(exit.error, KeyboardInterrupt | SystemExit)
