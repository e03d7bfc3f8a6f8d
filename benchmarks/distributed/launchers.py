"""Compares launchers of distributed PyTorch on this machine: steps per second, time to the first step, recovery.

    python benchmarks/distributed/launchers.py --rounds 5
    python benchmarks/distributed/launchers.py --rounds 3 --steps 4500 --torchdistributor --ray --no-recovery

In each round everybody has a turn, in a fresh process tree; ratios are taken within rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from rig.processes import cpu_of_children_s, plain_environment  # noqa: E402 - neighbours of this folder
from rig.venvs import python_of  # noqa: E402

PROGRAM = str(HERE / "ddp_program.py")
ROOT = HERE.parents[1]
SOURCES = str(ROOT / "src")
TIMEOUT_S = 300
FIGURES = ("steps_per_s", "cpu_ms_per_step", "first_step_s", "total_s", "cpu_total_s", "recover_s")


def command(launcher: str, folder: Path, *arguments: str, restarts: int = 0) -> list[str]:
    """Return how a launcher is called."""
    if launcher == "torchrun":
        start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        start += [f"--max-restarts={restarts}"]
    else:
        start = [str(python_of("ray-train", ROOT)) if launcher == "ray" else sys.executable]
    return [*start, PROGRAM, launcher, str(folder), *arguments]


def run(launcher: str, *arguments: str, restarts: int = 0) -> dict[str, float]:
    """Run one training; returns what it wrote down, in seconds since it was called."""
    folder = Path(tempfile.mkdtemp(prefix="launchers-"))
    environment = {
        **plain_environment(),
        **({} if launcher == "ray" else {"PYTHONPATH": SOURCES}),
        "CARGOBIKE_PROJECT": str(folder / "project"),
        "OMP_NUM_THREADS": "1",
    }
    began, processor = time.time(), cpu_of_children_s()
    process = subprocess.Popen(
        command(launcher, folder, *arguments, restarts=restarts),
        env=environment,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        words = "it did not end in time"
        with contextlib.suppress(subprocess.TimeoutExpired):
            words = process.communicate(timeout=TIMEOUT_S)[1]
        ended = time.time()
        found = {path.name: float(path.read_text()) for path in folder.iterdir() if path.is_file()}
    finally:
        if process.poll() is None:
            leader = psutil.Process(process.pid)
            for each in [*leader.children(recursive=True), leader]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
        shutil.rmtree(folder, ignore_errors=True)
    if "speed" not in found:
        print(f"{launcher} failed:\n{words[-1000:]}")
        return {}
    figures = {
        "steps_per_s": found["speed"],
        "cpu_ms_per_step": 1000 * found["processor"],
        "total_s": ended - began,
        "cpu_total_s": cpu_of_children_s() - processor,
    }
    if "killed" in found:
        begun_again = next(at for name, at in found.items() if name.startswith("first-") and name != "first-0")
        figures["recover_s"] = begun_again - found["killed"]
    else:
        figures["first_step_s"] = found["first-0"] - began
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--torchdistributor", action="store_true", help="Spark's launcher too; needs pyspark and Java")
    parser.add_argument("--ray", action="store_true", help="Ray Train too, in an environment of its own")
    parser.add_argument("--no-recovery", action="store_true", help="do not kill ranks")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    launchers = ["torchrun", "cargobike"]
    launchers += [name for name in ("torchdistributor", "ray") if getattr(options, name)]
    samples: dict[str, dict[str, list[float]]] = {name: {} for name in launchers}
    for number in range(options.rounds):
        order = launchers if number % 2 == 0 else launchers[::-1]
        for name in order:
            figures = run(name, str(options.steps))
            if name in ("torchrun", "cargobike") and not options.no_recovery:
                figures |= {k: v for k, v in run(name, "30", "10", restarts=2).items() if k == "recover_s"}
            for key in FIGURES:
                samples[name].setdefault(key, []).append(figures.get(key, math.nan))
            print(number, name, {key: round(value, 3) for key, value in figures.items()}, flush=True)
    print(
        f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; medians, and the ratio to torchrun within rounds"
    )
    for key in FIGURES:
        for name in launchers:
            pairs = list(zip(samples[name][key], samples["torchrun"][key], strict=True))
            own = [value for value, _ in pairs if not math.isnan(value)]
            ratios = [value / other for value, other in pairs if not math.isnan(value / other)]
            if own:
                ratio = f"{statistics.median(ratios):.2f}x" if ratios else "-"
                print(
                    f"{key:14} {name:16} {statistics.median(own):9.3f}   {ratio:>6}   {len(own)} of {len(pairs)} runs"
                )
    if options.json:
        options.json.write_text(json.dumps(samples, indent=1))


if __name__ == "__main__":
    main()
