"""What a step costs besides its work: `python benchmarks/pipelines/step_overhead.py --peers`, beside its peers."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from rig import findings  # noqa: E402
from rig.venvs import python_of, version_of  # noqa: E402

LIMITS = {"process step cpu ms": 30.0, "cached step cpu ms": 2.0, "resume cpu ms": 1000.0}
QUIET = {
    "PREFECT_LOGGING_LEVEL": "ERROR",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DAGSTER_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
}


def figures_of(python: Path, program: str, *arguments: int) -> dict[str, float]:
    """Run a program in a home of its own, and return what its last line says."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, **QUIET, "PREFECT_HOME": f"{home}/prefect", "DAGSTER_HOME": ""}
        environment.pop("DAGSTER_HOME")
        done = subprocess.run(
            [str(python), str(HERE / program), *map(str, arguments)],
            env=environment,
            cwd=home,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    if done.returncode:
        print(f"{program} failed:\n{done.stderr[-2000:]}", file=sys.stderr)
        return {}
    figures: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--all-steps", type=int, default=10_000)
    parser.add_argument("--peers", action="store_true", help="measure Prefect, Dagster and Airflow, too")
    parser.add_argument("--gate", action="store_true", help="exit with 1 if a limit is missed, in processor time")
    given = parser.parse_args()
    ours = figures_of(Path(sys.executable), "our_steps.py", given.steps, given.all_steps)
    rows = [("cargobike", ours)]
    if given.peers:
        root = HERE.parents[1]
        for peer, count in (("prefect", 30), ("dagster", 5), ("apache-airflow", 10)):
            python, program = python_of(peer, root), f"{peer.removeprefix('apache-')}_steps.py"
            rows.append((f"{peer} {version_of(peer, python)}", figures_of(python, program, count)))
    print("| | figure | |\n| --- | --- | --- |")
    for name, figures in rows:
        for figure, value in figures.items():
            print(f"| {name} | {figure} | {value:,.2f} |")
    targets = [findings.at_most(name, ours.get(name), limit, " ms") for name, limit in LIMITS.items()]
    for name, figures in rows[1:]:
        beside = figures.get("process step ms", figures.get("step in this process ms"))
        if beside and "process step ms" in ours:
            times = beside / ours["process step ms"]
            targets.append(findings.at_least(f"a step: sooner than one of {name}", times, 1, " ×", gate=True))
    findings.hand_on("steps", targets)
    missed = [figure for figure, limit in LIMITS.items() if ours.get(figure, 0.0) > limit]
    if missed:
        print(f"missed: {', '.join(missed)}")
    sys.exit(bool(missed) and given.gate)


if __name__ == "__main__":
    main()
