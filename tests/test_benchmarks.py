"""The benchmarks count before they boast: what is refused, what is judged, and that every scenario runs."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.__main__ import NAMES, scenarios
from benchmarks._budget import judge, promise, ratios
from benchmarks._cli import main
from benchmarks._harness import Measure, Processes, Round, run
from benchmarks._scenario import ASYNCIO, OURS, AtLeast, AtMost, Budget, Contestant, Scenario
from benchmarks._table import draw, figure

TWIN = Contestant("twin", "twin")
GHOST = Contestant("ghost", "Ghost", kind="peer", package="ghost-lib", module="no_such_module_anywhere")
SCENE = Scenario(
    "scene",
    "How fast?",
    "piece",
    n=100,
    quick=10,
    contestants=(OURS, TWIN, ASYNCIO, GHOST),
    budgets=(AtLeast(4, "twin"),),
    rounds=3,
)


def costing(ours: float, twin: float, lost: int = 0) -> Measure:
    """A measurement that is invented: `lost` pieces of the twin's work are not done."""

    def measure(_scenario: Scenario, contestant: Contestant, n: int) -> Round:
        cost = {"ours": ours, "twin": twin}.get(contestant.key, 1.0)
        return Round(n - lost if contestant is TWIN else n, n, {"": cost})

    return measure


def test_work_that_was_lost_gets_no_row() -> None:
    """A fast number for messages that never arrived is no number."""
    report = run(SCENE, costing(1, 0.1, lost=1))
    twin = next(row for row in report.rows if row.title == "twin")
    assert (twin.samples, twin.refused) == ([], "no row: did 99 of 100 (round 1)")
    assert report.broken
    assert "0.10" not in draw(report)


def test_a_budget_against_a_refused_row_is_not_judged() -> None:
    """Neither kept nor broken: there is nothing to hold ours against."""
    (verdict,) = run(SCENE, costing(1, 9, lost=1)).verdicts
    assert (verdict.passed, verdict.found) == (None, "no row for twin")


def test_contestants_take_turns() -> None:
    """A slow minute of the machine falls on all of them."""
    turns: list[str] = []

    def measure(_scenario: Scenario, contestant: Contestant, n: int) -> Round:
        turns.append(contestant.key)
        return Round(n, n, {"": 1.0})

    run(SCENE, measure, peers=True)
    assert turns == ["ours", "twin", "asyncio_queue"] * 3


def test_a_peer_that_is_not_installed_is_shown_with_what_to_type() -> None:
    """A comparison that silently lost its rival flatters."""
    report = run(SCENE, costing(1, 9), peers=True)
    assert "not installed: pip install ghost-lib" in draw(report)
    assert not report.broken


def test_without_peers_only_ours_and_the_twins_run() -> None:
    """The twin needs no install, so it always stands beside ours."""
    assert [row.title for row in run(SCENE, costing(1, 9)).rows] == ["ours", "twin"]


def test_a_quick_run_judges_nothing() -> None:
    """One short round says that it works, not how fast it is."""
    assert run(SCENE, costing(9, 1), quick=True).verdicts == []


@pytest.mark.parametrize(("ours", "code"), [(1.0, 0), (5.0, 1)])
def test_check_turns_a_missed_budget_into_an_exit_code(
    ours: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """For a pipeline; without `--check` a slow machine breaks nothing."""
    monkeypatch.setattr("benchmarks._cli.run", lambda scenario, *_, **__: run(scenario, costing(ours, 10)))
    assert (main([SCENE], ["--check"]), main([SCENE], [])) == (code, 0)
    assert ("pass" if code == 0 else "FAIL") in capsys.readouterr().out


@pytest.mark.parametrize(
    ("budget", "passed", "value"),
    [
        (AtLeast(4, "twin"), True, 4.0),
        (AtLeast(4.1, "twin"), False, 4.0),
        (AtMost(2), True, 2.0),
        (AtMost(1.9), False, 2.0),
        (AtMost(0.25, of="twin"), True, 0.25),
        (AtMost(0.2, of="twin"), False, 0.25),
        (AtMost(1, of="nobody"), None, None),
        (AtLeast(1, "twin", row="nobody"), None, None),
    ],
)
def test_a_budget_is_judged_by_the_median_of_its_rounds(budget: Budget, passed: bool | None, value: float | None) -> None:
    """One wild round neither saves nor sinks it."""
    verdict = judge(budget, {"ours": [2.0, 2.0, 50.0], "twin": [8.0, 8.0, 1.0]}, "us")
    assert (verdict.passed, verdict.value) == (passed, value)


def test_a_ratio_pairs_what_ran_side_by_side() -> None:
    """Round k against round k, whatever the weather was."""
    assert ratios([4.0, 40.0, 9.0], [1.0, 10.0]) == [4.0, 4.0]


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (AtLeast(0.8, "the channel"), "ours: at least 0.8 x as fast as the channel"),
        (AtMost(6, row="idle actor"), "idle actor: at most 6 us"),
        (AtMost(2, of="nursery.start"), "ours: at most 2 x the cost of nursery.start"),
    ],
)
def test_a_promise_reads_as_a_sentence(budget: Budget, words: str) -> None:
    """Whoever reads the table should not need the code."""
    assert promise(budget, "us") == words


@pytest.mark.parametrize(("value", "text"), [(0.6123, "0.61"), (12.34, "12.3"), (1234.5, "1,234")])
def test_figures_show_what_they_mean(value: float, text: str) -> None:
    """Digits that the noise made up are left out."""
    assert figure(value) == text


@pytest.mark.parametrize("drawn", [draw, lambda report: draw(report, markdown=True)])
def test_a_table_shows_the_spread_and_the_ratio(drawn: Callable[..., str]) -> None:
    """A median alone hides how much to believe it."""
    text = drawn(run(SCENE, costing(2, 9)))
    assert "9.00 … 9.00" in text
    assert "4.50 x" in text


def test_an_unknown_name_lists_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    """A typo costs one line."""
    with pytest.raises(SystemExit):
        main(scenarios(), ["tel"])
    assert "no benchmark named tel; there are tell, tell_idle" in capsys.readouterr().err


def test_json_holds_every_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever doubts the median can look."""
    monkeypatch.setattr("benchmarks._cli.run", lambda scenario, *_, **__: run(scenario, costing(2, 9)))
    path = tmp_path / "found.json"
    main([SCENE], ["--json", str(path)])
    (scenario,) = json.loads(path.read_text())["scenarios"]
    assert scenario["rows"][0] == {"title": "ours", "samples": [2.0] * 3, "refused": None, "busy": 1.0}


def test_a_contestant_that_breaks_says_how() -> None:
    """Its last words are the row."""
    broken = Contestant("no_such_function", "broken")
    with Processes() as measure:
        assert "no_such_function" in (measure(scenarios()[0], broken, 1).refusal or "")


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    """One process for all of ours, as in a quick run."""
    with Processes(shared=True) as made:
        yield made


@pytest.mark.parametrize("name", NAMES)
def test_every_scenario_does_all_its_work(name: str, processes: Processes) -> None:
    """No time is asserted: that all was done is."""
    scenario = next(scenario for scenario in scenarios() if scenario.name == name)
    report = run(scenario, processes, quick=True)
    assert [row.refused for row in report.rows] == [None] * len(report.rows)
    assert {row.contestant for row in report.rows} == {one for one in scenario.contestants if one.kind != "peer"}
