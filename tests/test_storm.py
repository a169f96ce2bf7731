"""Any run of a session, and fifty at once: whatever happens, nothing is lost or doubled, and each call ends once."""

import os
import secrets
import time

import hypothesis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nightly import NIGHTLY
from storms import STORMS, Storm, play, play_all

SECONDS = 60 if NIGHTLY else 4


@given(STORMS)
@settings(max_examples=20_000 if NIGHTLY else 150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_happens_nothing_is_lost_or_doubled_and_each_call_ends_once(storm: Storm) -> None:
    """Random models, tools, people and stores: each request is valid, and the session answers in the end."""
    play(storm)


@given(st.lists(STORMS, min_size=50, max_size=50))
@settings(
    max_examples=3, deadline=None, database=None, phases=[hypothesis.Phase.generate], suppress_health_check=list(HealthCheck)
)
def _fifty(storms: list[Storm]) -> None:
    """The first example that Hypothesis draws is the emptiest there is; the others are random."""
    play_all(storms)


def test_fifty_sessions_in_one_process_are_as_safe_as_one() -> None:
    """Random interrupts, pauses, stops, crashes and results at once, for as long as there is time: a minute by night."""
    until = time.monotonic() + SECONDS
    given_seed = os.environ.get("POSTROOM_SEED")
    while time.monotonic() < until:
        seed = secrets.randbits(32) if given_seed is None else int(given_seed)
        try:
            hypothesis.seed(seed)(_fifty)()
        except Exception as error:  # noqa: BLE001  # whatever it is, it can be played again
            pytest.fail(f"POSTROOM_SEED={seed} plays it again: {error!r}")
