"""The command line, of all scenarios and of each file alone."""

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ._harness import Processes, Report, run
from ._scenario import Scenario
from ._table import draw


def main(scenarios: Sequence[Scenario], argv: Sequence[str] | None = None) -> int:
    """Run what was asked for; 1 if a contestant did not do its work or, with `--check`, if a budget was missed."""
    typed = parser(scenarios)
    options = typed.parse_args(argv)
    if unknown := [name for name in options.names if name not in {scenario.name for scenario in scenarios}]:
        typed.error(f"no benchmark named {', '.join(unknown)}; there are {', '.join(scenario.name for scenario in scenarios)}")
    wanted = [scenario for scenario in scenarios if not options.names or scenario.name in options.names]
    reports: list[Report] = []
    with Processes(shared=options.quick) as processes:
        for scenario in wanted:
            reports.append(run(scenario, processes, peers=options.peers, quick=options.quick, progress=_progress))
            _progress("")
            print(draw(reports[-1], markdown=options.markdown), end="\n\n", flush=True)
    if options.quick:
        print("Quick: this shows that everything works, not how fast it is; no budget was judged.")
    if options.json:
        options.json.write_text(json.dumps({"machine": machine(wanted), "scenarios": [r.to_json() for r in reports]}, indent=1))
    broken = any(report.broken for report in reports)
    return int(broken or (options.check and any(report.over_budget for report in reports)))


def parser(scenarios: Sequence[Scenario]) -> argparse.ArgumentParser:
    """What can be typed."""
    names = [scenario.name for scenario in scenarios]
    made = argparse.ArgumentParser(
        prog="python -m benchmarks" if len(names) > 1 else f"python -m benchmarks.{names[0]}",
        description="\n".join(f"{scenario.name:<12} {scenario.question}" for scenario in scenarios),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if len(names) > 1:
        made.add_argument("names", nargs="*", metavar="name", help="which scenarios (default: all)")
    else:
        made.set_defaults(names=names)
    made.add_argument("--peers", action="store_true", help="also other libraries, in the same run (dependency group `peers`)")
    made.add_argument("--quick", action="store_true", help="little work, one round: does everything run?")
    made.add_argument("--json", type=Path, metavar="FILE", help="write every sample there")
    made.add_argument("--markdown", action="store_true", help="print tables as Markdown")
    made.add_argument("--check", action="store_true", help="exit code 1 if a budget is missed")
    return made


def machine(scenarios: Sequence[Scenario]) -> dict[str, Any]:
    """What the figures were taken on."""
    packages = {c.package for scenario in scenarios for c in scenario.contestants if c.package} | {"trio", "attrs", "msgspec"}
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "packages": {name: _version(name) for name in sorted(packages)},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _progress(text: str) -> None:
    """One line that overwrites itself; nothing where nobody watches."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
