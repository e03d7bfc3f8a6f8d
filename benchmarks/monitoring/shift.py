"""How fast states are summed and windows judged, how many false alarms there are, and which shifts are found.

    python benchmarks/monitoring/shift.py [--windows 1000] [--large 100] [--peer-windows 40] [--no-peers]

28 columns, a reference of 100,000 rows, windows of 1,000 and of 10,000 rows, 5 % false alarms. Processor times are
those of one thread (`OPENBLAS_NUM_THREADS=1`), so that a busy machine changes them little.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pyarrow as pa
from drawn import COLUMNS, KINDS, MOVED_SHARES, SHAPES, errors, kinds, usual
from rig import findings
from rig.venvs import python_of

from cargobike import monitoring

ROOT = Path(__file__).resolve().parents[2]
REFERENCE_ROWS = 100_000
PEERS = {
    "alibi-ks": "alibi-detect",
    "frouros-ks": "frouros",
    "frouros-mmd": "frouros",
    "evidently-ks": "evidently",
    "river-adwin": "river",
}
_SLOW = {"frouros-mmd": 6}
"""Peers that need seconds for a window judge only so many of each kind."""


def table_of(values: Any) -> pa.Table:
    """Return rows as a table with named columns."""
    return pa.table({f"f{column}": np.ascontiguousarray(values[:, column]) for column in range(COLUMNS)})


def summing(reference: monitoring.Reference, table: pa.Table) -> float:
    """Return how many rows a second are summed, in processor time; the best of five."""
    rates: list[float] = []
    for _ in range(5):
        began = time.process_time()
        reference.summarize(table)
        rates.append(table.num_rows / (time.process_time() - began))
    return max(rates)


def shapes(reference: monitoring.Reference, rows: int, windows: int, random: Any) -> dict[str, float]:
    """Return the share of alarms for shifts that the design has not seen."""
    return {
        shape: sum(reference.judge(table_of(draw(rows, random))).alarm for _ in range(windows)) / windows
        for shape, draw in SHAPES.items()
    }


def categories(rows: int, windows: int, random: Any) -> dict[str, float]:
    """Return the share of alarms where four of 28 columns are categories: without a shift, moved, and a new one."""

    def drawn(count: int, **first: Any) -> pa.Table:
        table = table_of(usual(count, random))
        for number in range(4):
            values = first.get("values") if number == 0 and first else kinds(count, random)
            table = table.set_column(number, f"f{number}", pa.array(values))
        return table

    reference = monitoring.Reference(drawn(REFERENCE_ROWS), window=rows)

    def new() -> Any:
        values = kinds(rows, random)
        values[: max(1, rows // 250)] = "teal"
        return values

    made: dict[str, Callable[[], pa.Table]] = {
        "usual": lambda: drawn(rows),
        "shares": lambda: drawn(rows, values=kinds(rows, random, MOVED_SHARES)),
        "never seen": lambda: drawn(rows, values=new()),
    }
    return {name: sum(reference.judge(make()).alarm for _ in range(windows)) / windows for name, make in made.items()}


def judging(reference: monitoring.Reference, rows: int, windows: int, random: Any) -> dict[str, float]:
    """Return the share of alarms for each kind of window, and what judging one takes."""
    answer: dict[str, float] = {}
    cpu, wall = [], []
    for kind, draw in KINDS.items():
        count = windows if kind == "usual" else max(windows // 2, 20)
        alarms = 0
        for _ in range(count):
            table = table_of(draw(rows, random))
            began, before = time.perf_counter(), time.process_time()
            alarms += reference.judge(table).alarm
            cpu.append(time.process_time() - before)
            wall.append(time.perf_counter() - began)
        answer[kind] = alarms / count
    return {**answer, "cpu_ms": 1000 * float(np.median(cpu)), "wall_ms": 1000 * float(np.median(wall))}


def change_points() -> dict[str, float]:
    """Find a change in streams of errors, as `drift_peers.py` does with river."""
    random = np.random.default_rng(3)
    values = errors(200_000, random).tolist()
    began = time.process_time()
    monitoring.ChangePoints().update(values)
    taken_s = time.process_time() - began
    delays, false = [], 0
    for _ in range(50):
        points = monitoring.ChangePoints().update(errors(4000, random).tolist())
        false += sum(point.at < 2000 for point in points)
        late = [point.at - 2000 for point in points if point.at >= 2000]
        delays += late[:1]
    return {"values_per_s": 200_000 / taken_s, "delay": float(np.median(delays)), "found": len(delays), "false": false}


def ask_peer(peer: str, windows: int) -> dict[str, float]:
    """Judge windows with a peer, in its own venv."""
    program = Path(__file__).with_name("drift_peers.py")
    command = [str(python_of(PEERS[peer], ROOT)), str(program), peer, str(windows), "1000"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1800, env=dict(os.environ))
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def print_row(name: str, figures: dict[str, float]) -> None:
    """Print one line of the table."""
    shares = "  ".join(f"{kind} {figures[kind]:.3f}" for kind in KINDS)
    print(f"{name:24} {shares}  {figures['cpu_ms']:8.1f} CPU ms a window", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=1000)
    parser.add_argument("--large", type=int, default=100)
    parser.add_argument("--peer-windows", type=int, default=40)
    parser.add_argument("--no-peers", action="store_true")
    given = parser.parse_args()
    random = np.random.default_rng(1)
    table = table_of(usual(REFERENCE_ROWS, random))
    began, before = time.perf_counter(), time.process_time()
    reference = monitoring.Reference(table, window=1000)
    wall, cpu = time.perf_counter() - began, time.process_time() - before
    print(f"load {os.getloadavg()[0]:.1f}; a reference of {REFERENCE_ROWS:,} rows: {wall:.2f} s, {cpu:.2f} CPU s")
    rate = summing(reference, table)
    print(f"states: {rate:,.0f} rows per CPU second, {len(reference.state.encode()):,} bytes")
    small = judging(reference, 1000, given.windows, random)
    print_row("ours, 1,000 rows", small)
    print(f"{'':24} {small['wall_ms']:.1f} ms a window by the clock")
    large = judging(reference, 10_000, given.large, random)
    print_row("ours, 10,000 rows", large)
    print(f"ours, other shapes, 1,000 rows: {shapes(reference, 1000, given.windows // 4, random)}", flush=True)
    print(f"ours, categories, 1,000 rows: {categories(1000, given.windows // 4, random)}", flush=True)
    print(f"ours, change points: {change_points()}", flush=True)
    for peer in () if given.no_peers else PEERS:
        try:
            answer = ask_peer(peer, _SLOW.get(peer, given.peer_windows))
        except (subprocess.SubprocessError, OSError) as error:
            said = getattr(error, "stderr", "") or str(error)
            print(f"{peer}: does not run here: {said.strip().splitlines()[-1][:200] if said.strip() else error!r}")
            continue
        if "usual" in answer:
            print_row(peer, answer)
        else:
            print(f"{peer}: {answer}", flush=True)
    findings.hand_on(
        "shift",
        [
            findings.at_least("rows summed into states", rate, 500_000, " a CPU second"),
            findings.at_most("a window of 1,000 rows is judged", small["wall_ms"], 10, " ms"),
            findings.at_most("false alarms at 5 %", 100 * small["usual"], 7, " %"),
            findings.at_least("moved means are found, 1,000 rows", small["moved"], 0.9),
            findings.at_least("a changed correlation is found, 1,000 rows", small["bound"], 0.4),
            findings.at_least("a changed correlation is found, 10,000 rows", large["bound"], 0.95),
        ],
    )


if __name__ == "__main__":
    main()
