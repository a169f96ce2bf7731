"""OTP's tables: every restart, exit, strategy and position."""

from itertools import product
from typing import get_args

import pytest
from cast import Boom, Crash, Noting

from actors import Exit, Failed, Finished, Killed, Stopped, handle
from supervision import ChildSpec, Supervisor, open_system
from supervision._spec import Restart, Strategy
from supervision._strategy import Leave, Regroup, Sibling, decide

EXITS: list[Exit] = [Finished(1), Stopped("stop"), Failed(ValueError()), Killed("kill")]
RESTARTED = {
    "permanent": [True, True, True, True],
    "transient": [False, False, True, True],
    "temporary": [False, False, False, False],
}
GROUPS = {  # strategy, who ended -> who is stopped, who is started, of a, b, c
    ("one_for_one", "a"): ("", "a"),
    ("one_for_one", "b"): ("", "b"),
    ("one_for_one", "c"): ("", "c"),
    ("one_for_all", "a"): ("cb", "abc"),
    ("one_for_all", "b"): ("ca", "abc"),
    ("one_for_all", "c"): ("ba", "abc"),
    ("rest_for_one", "a"): ("cb", "abc"),
    ("rest_for_one", "b"): ("c", "bc"),
    ("rest_for_one", "c"): ("", "c"),
}


@pytest.mark.parametrize(
    ("restart", "exit", "strategy", "name"), [*product(get_args(Restart), EXITS, get_args(Strategy), "abc")]
)
def test_every_end_is_answered_as_otp_does(restart: Restart, exit: Exit, strategy: Strategy, name: str) -> None:
    """The first table says whether, the second who goes with it; stops in reverse, starts in order."""
    siblings = [Sibling(each, restart if each == name else "permanent", alive=each != name) for each in "abc"]
    action = decide(strategy, siblings, name, exit)
    if RESTARTED[restart][EXITS.index(exit)]:
        stop, start = GROUPS[strategy, name]
        assert action == Regroup(tuple(stop), tuple(start))
    else:
        assert action == Leave()


CRASH = Failed(ValueError())


def group(*siblings: Sibling) -> Regroup | Leave:
    """What the crash of `a` in a group does to its siblings."""
    return decide("one_for_all", [Sibling("a", "permanent", alive=False), *siblings], "a", CRASH)


@pytest.mark.parametrize(
    ("sibling", "wanted"),
    [
        (Sibling("b", "transient", alive=False), Regroup((), ("a", "b"))),
        (Sibling("b", "temporary", alive=True), Regroup(("b",), ("a",))),
        (Sibling("b", "temporary", alive=False), Regroup((), ("a",))),
        (Sibling("b", "permanent", alive=False, stopped=True), Regroup((), ("a",))),
        (Sibling("b", "permanent", alive=True, stopped=True), Regroup(("b",), ("a",))),
    ],
    ids=[
        "a finished one starts again",
        "a temporary one goes down",
        "a gone one stays",
        "a stopped one stays",
        "a stopping one",
    ],
)
def test_who_goes_with_a_group(sibling: Sibling, wanted: Regroup) -> None:
    """A group is started whole, but for those that are never restarted and those that somebody stopped."""
    assert group(sibling) == wanted


# ------------------------------------------------------------------ at work
class Noted(Noting):
    """Can end by itself."""

    @handle
    def done(self, message: bytes) -> None:
        self.finish(message)


@pytest.mark.virtual_time
@pytest.mark.parametrize("end", ["finished", "failed"])
@pytest.mark.parametrize("restart", get_args(Restart))
@pytest.mark.parametrize(("strategy", "name"), GROUPS)
async def test_a_tree_does_what_its_tables_say(strategy: Strategy, name: str, restart: Restart, end: str) -> None:
    """Every cell that a life can end in by itself, seen from outside: who stopped, who started, in which order."""
    diary: list[str] = []
    specs = [ChildSpec(Noted, diary, each, name=each, restart=restart if each == name else "permanent") for each in "abc"]
    async with open_system() as system:
        await system.start(Supervisor(*specs, name="p", strategy=strategy))
        system.ref(f"p/{name}").send_nowait(b"" if end == "finished" else Crash(Boom()))
        await system.wait_idle()
        stop, start = GROUPS[strategy, name] if RESTARTED[restart][0 if end == "finished" else 2] else ("", "")
        if restart == "temporary":
            assert f"p/{name}" not in {node.address for node in system.tree()}
        assert diary[3:] == [f"-{name}", *(f"-{each}" for each in stop), *(f"+{each}" for each in start)]
