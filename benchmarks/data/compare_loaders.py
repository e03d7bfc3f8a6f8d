"""Loaders beside each other: `python benchmarks/data/compare_loaders.py [--rounds 5] [--only SYSTEM]`.

In each round every system has its turn. See the README above for what can mislead.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import tables
from rig import findings, machine, processes, table
from rig.findings import at_least, at_most
from rig.measuring import ROOT, Case, Figures, Measurement, Samples, Target, compile_own_code, measure
from rig.processes import Run

OURS = "Cargobike"
PEERS = {
    "petastorm, dummy pool": ("petastorm", "petastorm"),
    "petastorm, threads": ("petastorm-threads", "petastorm"),
    "torch DataLoader, rows in memory": ("torch", "own"),
    "torch DataLoader, 2 workers": ("torch-2", "own"),
    "tf.data, rows in memory": ("tf.data", "own"),
    "Hugging Face datasets": ("hf-datasets", "hf-datasets"),
    "WebDataset (bytes only)": ("webdataset", "hf-datasets"),
    "Ray Data": ("ray", "ray-data"),
}
PETASTORM = "petastorm, dummy pool"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure loaders beside each other.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=[name for name, _ in PEERS.values()])
    parser.add_argument("--table", action="append", choices=["higgs", "mnist"])
    parser.add_argument("--folder", type=Path, default=ROOT / ".venvs" / "bench-data")
    arguments = parser.parse_args()
    processes.become_subreaper()
    compile_own_code()
    tables.make(arguments.folder)
    folder = str(arguments.folder.absolute())
    judged: list[tuple[str, Target]] = []
    for shape in arguments.table or ("higgs", "mnist"):
        for order in ("shuffled", "sequential"):
            measurement = _comparison(shape, order, folder, arguments.only, arguments.rounds)
            samples = measure(measurement, quick=False)
            judged += [(measurement.name, target) for target in measurement.targets(samples)]
            print(table.render(measurement, samples) + "\n", flush=True)
    own = _own(folder, arguments.rounds)
    samples = measure(own, quick=False)
    judged += [(own.name, target) for target in own.targets(samples)]
    print(table.render(own, samples) + "\n", flush=True)
    print(f"Load {machine.load()}, {machine.facts()['processor']}", flush=True)
    findings.hand_on("loaders", [replace(target, text=f"{name}: {target.text}") for name, target in judged])


def _comparison(shape: str, order: str, folder: str, only: list[str] | None, rounds: int) -> Measurement:
    def cases(_: bool) -> Sequence[Case]:
        chosen = {"Cargobike": ("cargobike", "own")}
        for label, (system, venv) in PEERS.items():
            if (not only or system in only) and (system != "webdataset" or shape == "mnist"):
                chosen[label] = (system, venv)
        slow = {"hf-datasets", "webdataset", "ray", "torch", "torch-2", "tf.data"}
        return [
            Case(
                label=label,
                program="data/loaders.py",
                arguments=(system, shape, order, folder),
                venv=venv,
                timeout_s=180,
                rounds=1 if system in slow else 99,
            )
            for label, (system, venv) in chosen.items()
        ]

    def targets(samples: Samples) -> Sequence[Target]:
        judged = []
        best = max((PETASTORM, "petastorm, threads"), key=lambda label: samples.median(label, "krows_s") or 0.0)
        against = samples.ratio(OURS, best, "krows_s")
        times = 8 if order == "shuffled" else 2
        if shape == "higgs":
            text = f"{order}: at least {times} × petastorm's batched loader ({best})"
            judged.append(at_least(text, against, times, " ×", gate=True))
            cpu = samples.ratio(best, OURS, "cpu_s_per_million")
            judged.append(at_least(f"{order}: the same in processor time", cpu, times, " ×", gate=True))
        rates = {label: samples.median(label, "krows_s") or 0.0 for label in samples.runs if label != OURS}
        ours = samples.median(OURS, "krows_s")
        if rates and ours:
            nearest = max(rates, key=lambda label: rates[label])
            text = f"{order}: faster than every peer ({nearest})"
            judged.append(at_least(text, ours / rates[nearest], 1, " ×", gate=True))
        if shape == "mnist":
            judged.append(at_least(f"bytes, {order}: at least 1,100 krows/s", ours, 1100, " krows/s"))
        return judged

    return Measurement(
        name=f"{shape}-{order}",
        title=f"{'2 M rows of 28 numbers' if shape == 'higgs' else '200 k rows of 784 bytes'}, {order}",
        cases=cases,
        read=_read,
        columns=[
            ("krows_s", "krows/s", ""),
            ("cpu_s_per_million", "CPU s per M rows", ""),
            ("first_s", "first batch s", ""),
            ("grown_mb", "memory grown MiB", ",.0f"),
        ],
        compare=("krows_s", PETASTORM),
        targets=targets,
        rounds=(rounds, 1),
    )


def _own(folder: str, rounds: int) -> Measurement:
    def targets(samples: Samples) -> Sequence[Target]:
        def middle(figure: str) -> float | None:
            return samples.median(OURS, figure)

        return [
            at_most("first batch within 0.3 s of an imported library", middle("first_s"), 0.3, " s"),
            at_most("memory grown by at most 4 row groups", middle("grown_groups"), 4, " groups"),
            at_most("resumed at any point, first batch included, in 50 ms", middle("resumed_ms"), 50, " ms"),
            at_most("eight ranks work at most 5 % more than one", middle("eight_to_one"), 1.05, " ×"),
        ]

    return Measurement(
        name="own",
        title="What only we promise (Higgs's shape, shuffled)",
        cases=lambda _: [Case(label=OURS, program="data/own.py", arguments=(folder,), timeout_s=180)],
        read=lambda _, run: {name: float(value) for name, value in run.answer.items()},
        columns=[
            ("first_s", "first batch s", ".3f"),
            ("grown_groups", "memory grown, row groups", ".1f"),
            ("counted_groups", "as counted", ".1f"),
            ("loaded_ms", "state loaded ms", ".2f"),
            ("resumed_ms", "and first batch ms", ".0f"),
            ("eight_to_one", "CPU, 8 ranks / 1", ".3f"),
        ],
        compare=("first_s", OURS),
        targets=targets,
        rounds=(rounds, 1),
    )


def _read(_: Case, run: Run) -> Figures:
    return {name: float(value) for name, value in run.answer.items()}


if __name__ == "__main__":
    main()
