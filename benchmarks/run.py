"""Measure all rooms of Cargobike beside their peers: `python benchmarks/run.py [--only NAME] [--brief] [--keep]`.

See README.md in this folder for what the figures mean and what can mislead.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from measurements import ALL
from rig import findings, machine, processes, table, venvs
from rig.findings import Finding
from rig.measuring import BENCHMARKS, ROOT, Measurement, compile_own_code, measure
from rooms import ROOMS, Size

EXPERIMENTS = "experiments"
FIGURES = BENCHMARKS / "figures.json"
BRIEF_ROUNDS = 2
PAGE = ROOT / "docs" / "benchmarks.md"
DETAILS = ROOT / "docs" / "benchmarks-details.md"


def main() -> int:
    arguments = _parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # running programs are ended on the way
    processes.become_subreaper()
    compile_own_code()
    chosen = [one for one in ALL if not arguments.only or one.name in arguments.only]
    report: dict[str, Any] = {
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "quick": arguments.quick,
        "machine": machine.facts(),
        "versions": _versions(chosen),
        "measurements": {},
    }
    print(_heading(report), flush=True)
    found: dict[tuple[str, str], Finding] = {}
    took: dict[str, float] = {}
    size: Size = "quick" if arguments.quick else "brief" if arguments.brief else "usual"
    for measurement in chosen:
        began = time.monotonic()
        samples = measure(measurement, quick=arguments.quick, most_rounds=BRIEF_ROUNDS if arguments.brief else 100)
        targets = list(measurement.targets(samples))
        rendered = table.render(measurement, samples)
        found[EXPERIMENTS, measurement.name] = Finding(targets, rendered)
        report["measurements"][measurement.name] = table.as_json(samples, targets)
        print(rendered + "\n", flush=True)
        _keep_if_asked(arguments, found, report)
        took[measurement.name] = time.monotonic() - began
    for program in ROOMS:
        if not arguments.only or program.name in arguments.only or program.room in arguments.only:
            print(f"## {program.room}: {program.question}\n", flush=True)
            began = time.monotonic()
            found[program.room, program.name] = program.run(size)
            took[program.name] = time.monotonic() - began
            print(f"\n{program.name} took {took[program.name]:.0f} s\n", flush=True)
            _keep_if_asked(arguments, found, report)
    judged = [(f"{room}: {name}", target) for (room, name), finding in found.items() for target in finding.targets]
    print(table.render_targets(judged), flush=True)
    print(f"\nTook {sum(took.values()) / 60:.1f} min: " + ", ".join(f"{name} {s:.0f} s" for name, s in took.items()))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    missed = any(target.met is False and target.kind == "gate" for _, target in judged)
    return 1 if missed and arguments.gate else 0


def _keep_if_asked(
    arguments: argparse.Namespace, found: dict[tuple[str, str], Finding], report: dict[str, Any]
) -> None:
    """Keep the newest finding, so that a run of hours that is interrupted was not in vain."""
    if arguments.keep:
        newest = list(found)[-1]
        findings.keep(FIGURES, {newest: found[newest]}, report["versions"]["cargobike"])
        findings.write_page(FIGURES, PAGE)
        findings.write_details(FIGURES, DETAILS)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Cargobike beside its peers.")
    names = [one.name for one in ALL] + list(dict.fromkeys(word for one in ROOMS for word in (one.room, one.name)))
    parser.add_argument("--only", action="append", choices=names, help="one measurement, or a room; may be repeated")
    parser.add_argument("--brief", action="store_true", help="fewer rounds: results in a fraction of the time")
    parser.add_argument("--quick", action="store_true", help="small and few: a smoke test, not a result")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything to a file")
    parser.add_argument("--keep", action="store_true", help="write what was found into docs/benchmarks.md and -details")
    parser.add_argument("--gate", action="store_true", help="exit with 1 if a gate is missed")
    arguments = parser.parse_args()
    if arguments.keep and arguments.quick:
        parser.error("--keep writes results, and --quick gives none: choose one of them")
    return arguments


def _versions(chosen: list[Measurement]) -> dict[str, str]:
    peers = sorted({case.venv for one in chosen for case in one.cases(True)} - {"own"})
    found: dict[str, str] = {}
    for peer in peers:
        try:
            found[peer] = venvs.version_of(peer, venvs.python_of(peer, ROOT))
        except (subprocess.CalledProcessError, OSError) as error:
            found[peer] = f"not installed: {error}"
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    found["cargobike"] = commit.stdout.strip() or "unknown"
    return found


def _heading(report: dict[str, Any]) -> str:
    facts = report["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in sorted(report["versions"].items()))
    return (
        f"{facts['processor']}, {facts['cores']} cores, {facts['memory_gb']} GB, Python {facts['python']}, "
        f"fsync {facts['fsync_ms']} ms, load {machine.load()}; {versions}; {report['started_at']}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
