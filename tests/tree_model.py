"""What a tree does, short enough to be believed: the reference that `test_tree_model.py` holds the real one against.

No tasks: each order is carried out to its end, on a clock that only hanging lives and drains move.
"""

from collections import Counter, defaultdict

from attrs import define, field
from tree_world import Msg, Node, Spec

SHUTDOWN, MOMENT, WITHIN = 1.0, 0.01, 5.0
RESTARTED = {"permanent": ("Finished", "Failed", "Killed"), "transient": ("Failed", "Killed"), "temporary": ()}
ANSWERS, ENDINGS = {"odd": "Unhandled", "reject": "Rejected"}, {"finish": "Finished", "stop_self": "Stopped"}


@define(eq=False)
class Model:
    """A system; what it predicts stands in the last fields."""

    clock: float = 0.0
    bad_starts: Counter[str] = field(factory=Counter)  # how many of the next starts at an address fail
    bad_stops: Counter[str] = field(factory=Counter)
    tops: dict[str, Node] = field(factory=dict)
    asks: dict[str, str] = field(factory=dict)  # who gets what
    entered: defaultdict[str, list[str]] = field(factory=lambda: defaultdict(list))  # what was begun, in order
    heard: defaultdict[tuple[str, str], list[str]] = field(factory=lambda: defaultdict(list))  # (hearer, whose) -> how it ended
    dead: list[tuple[str, str]] = field(factory=list)
    zombies: list[str] = field(factory=list)
    restarts: int = 0

    def spawn(self, spec: Spec, parent: Node | None = None, *, watched: bool = False) -> bool:
        node = Node(spec.name if parent is None else f"{parent.address}/{spec.name}", spec, parent)
        node.home(self.tops)[spec.name] = node
        if not self.begin(node):
            self.finish(node, "Failed")
        node.watched = watched
        return node.up

    def stop(self, node: Node, mode: str = "now") -> None:
        node.asked = True
        if mode == "drain" and not node.spec.strategy and node.up:
            self.run(node)
            self.clock += SHUTDOWN if node.doing is not None else 0
        self.finish(node, self.end(node, "Killed" if mode == "kill" else "Stopped") if node.up else "Stopped")

    def settle(self) -> None:
        while sum(self.run(node) + self.attend(node) for top in list(self.tops.values()) for node in list(top.walk())):
            pass

    def run(self, node: Node) -> bool:
        """Handle mail until something is in the way; whether there was any."""
        any_ = False
        while node.up and node.doing is None and node.mail:
            any_, mail = True, node.mail.pop(0)
            if not mail.gone:
                self.handle(node, mail)
        return any_

    def handle(self, node: Node, mail: Msg) -> None:
        grown = mail.act == "spawn" and mail.arg not in node.kids and self.spawn(Spec(mail.arg), node, watched=True)
        crash = mail.act == "crash" or (mail.act == "spawn" and not grown)
        if mail.act == "Ended":
            crash = node.spec.naive and mail.arg == "Failed"
            self.heard[node.address, mail.n] += [] if node.spec.naive else [mail.arg]
        elif mail.act != "odd":
            self.entered[node.address].append(mail.n)
        if mail.act in {"block", "hang", "stop_self"} or crash:
            node.doing = mail
        else:
            self.answer(mail, ANSWERS.get(mail.act, "ok"))
        if mail.act == "odd" or (mail.act == "reject" and not mail.ask):
            self.dead.append((mail.n, node.address))
        node.asked = node.asked or mail.act == "stop_self"
        if crash or mail.act in ENDINGS:
            self.ended(node, ENDINGS.get(mail.act, "Failed"))

    def answer(self, mail: Msg, what: str) -> None:
        if mail.ask and not mail.gone:
            self.asks[mail.n] = what

    def begin(self, node: Node) -> bool:
        """The next life; False if it does not become ready."""
        self.tell(node, node.untold and f"{node.untold}...")
        node.life, node.untold, node.stopped, node.reports = node.life + 1, "", set(), []
        node.window = [] if node.spec.strategy else node.window
        if not all(self.spawn(spec, node) for spec in node.spec.kids):
            self.end(node, "Failed")
        elif self.bad_starts[node.address]:
            self.bad_starts[node.address] -= 1
        else:
            node.up = True
            self.restarts += node.life > 1
        return node.up

    def end(self, node: Node, exit: str) -> str:
        """The end of a life: children, cleanup, the message in progress. How it ended in the end."""
        mail = node.doing
        if mail is not None and mail.act == "hang":
            self.zombies.append(node.address)
            self.clock, exit = self.clock + MOMENT + SHUTDOWN * (exit != "Killed"), "Killed"
        began, latest, order = self.clock, self.clock, [spec.name for spec in node.spec.kids]
        for kid in sorted(node.kids.values(), key=lambda kid: -order.index(kid.spec.name) if order else 0):
            self.clock = self.clock if node.spec.strategy else began
            self.stop(kid)
            latest = max(latest, self.clock)
        self.clock = latest
        if exit != "Killed" and node.up and self.bad_stops[node.address]:
            self.bad_stops[node.address] -= 1
            exit = "Failed"
        node.doing, node.up = None, False
        if mail is not None:
            self.dead += [(mail.n, node.address)] if exit == "Failed" or not mail.ask else []
            self.answer(mail, "ActorCrashed" if exit == "Failed" else "ActorStopped")
        return exit

    def ended(self, node: Node, exit: str) -> None:
        """A life ended by itself: what follows."""
        node.untold = exit = self.end(node, exit)
        again = exit in RESTARTED[node.spec.restart]
        if node.parent is not None and node.parent.spec.strategy and not node.asked:
            node.parent.reports.append((node, node.life, exit))
        elif node.asked or not (again and self.allows(node)):
            self.finish(node, "Failed" if again and not node.asked else exit)
        elif not self.begin(node):
            self.ended(node, "Failed")

    def allows(self, node: Node) -> bool:
        node.window = [when for when in node.window if self.clock - when <= WITHIN] + [self.clock]
        return len(node.window) <= node.spec.most

    def finish(self, node: Node, exit: str) -> None:
        """The end for good."""
        if node.over:
            return
        node.over = True
        del node.home(self.tops)[node.spec.name]
        if node.parent is not None and node.asked:
            node.parent.stopped.add(node.spec.name)
        for mail in node.mail:
            self.answer(mail, "ActorStopped")
            self.dead += [] if mail.ask else [(mail.n, node.address)]
        self.tell(node, exit)

    def tell(self, node: Node, how: str) -> None:
        above = node.parent if node.parent is not None and not node.parent.spec.strategy else None
        if node.watched and how and above is None:
            self.heard["watcher", node.address].append(how)
        elif node.watched and how and above is not None and not above.asked:
            above.mail.append(Msg(node.address, "Ended", how))

    def attend(self, boss: Node) -> bool:
        """A supervisor answers the ends of its children; whether there was any."""
        before = len(boss.reports)
        while boss.up and boss.reports:
            kid, life, exit = boss.reports.pop(0)
            current, again = not kid.over and kid.life == life and not kid.up, exit in RESTARTED[kid.spec.restart]
            if current and again and self.allows(boss):
                self.regroup(boss, kid)
            elif current:
                self.finish(kid, exit)
                if again:
                    self.ended(boss, "Failed")
        return before > 0

    def regroup(self, boss: Node, ended: Node) -> None:
        all_, at = boss.spec.kids, boss.spec.kids.index(ended.spec)
        group = {"one_for_one": all_[at : at + 1], "one_for_all": all_, "rest_for_one": all_[at:]}[boss.spec.strategy]
        for kid in [boss.kids[spec.name] for spec in reversed(group) if spec.name in boss.kids]:
            if kid.up and kid.spec.restart == "temporary":
                self.stop(kid)
            elif kid.up:
                kid.untold = self.end(kid, "Stopped")
        for spec in group:
            if spec.restart != "temporary" and spec.name not in boss.stopped:
                kid = boss.kids.setdefault(spec.name, Node(f"{boss.address}/{spec.name}", spec, boss))
                while not self.begin(kid):
                    kid.untold = "Failed"
                    if not self.allows(boss):
                        self.finish(kid, "Failed")
                        self.ended(boss, "Failed")
                        return
