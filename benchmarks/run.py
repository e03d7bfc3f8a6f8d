"""Measure Cargobike beside its peers: `python benchmarks/run.py [--only NAME] [--quick] [--json FILE]`.

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
from rig import machine, processes, table, venvs
from rig.measuring import ROOT, Measurement, Target, compile_own_code, measure


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
    judged: list[tuple[str, Target]] = []
    for measurement in chosen:
        samples = measure(measurement, quick=arguments.quick)
        targets = list(measurement.targets(samples))
        judged += [(measurement.name, target) for target in targets]
        report["measurements"][measurement.name] = table.as_json(samples, targets)
        print(table.render(measurement, samples) + "\n", flush=True)
    print(table.render_targets(judged), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    missed = any(target.met is False and target.kind == "gate" for _, target in judged)
    return 1 if missed and arguments.gate else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Cargobike beside its peers.")
    names = [one.name for one in ALL]
    parser.add_argument("--only", action="append", choices=names, help="one measurement; may be repeated")
    parser.add_argument("--quick", action="store_true", help="small and few: a smoke test, not a result")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything to a file")
    parser.add_argument("--gate", action="store_true", help="exit with 1 if a gate is missed")
    return parser.parse_args()


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
