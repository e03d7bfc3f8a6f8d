"""Petastorm's names here and in petastorm: `python benchmarks/compat/compare_petastorm.py [--rounds 3] [--case CASE]`.

The same lines read the same data sets, which we write and both read, in turn, each in its own venv.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rig import machine, processes, table
from rig.measuring import ROOT, Case, Figures, Measurement, Samples, Target, compile_own_code, measure, show
from rig.processes import Run

from cargobike.compat.petastorm.codecs import CompressedImageCodec, NdarrayCodec
from cargobike.compat.petastorm.etl.dataset_metadata import materialize_rows
from cargobike.compat.petastorm.unischema import Unischema, UnischemaField

OURS, THEIRS = "Cargobike", "petastorm"
CASES = {
    "numbers": ("make_batch_reader and BatchedDataLoader, 400 k rows of 28 numbers", 1.0),
    "shuffled": ("the same, mixed by a queue of 100,000 rows", 1.5),
    "rows": ("make_reader, 20 k rows with an array of 16 × 16", 5.0),
    "arrays": ("make_reader and DataLoader, the same rows", 5.0),
    "images": ("make_reader and DataLoader, 4,000 PNG images of 64 × 64", 0.8),
}
"""What is read, and how many times as fast it is to be."""


def main() -> None:
    """Measure, and print tables and targets."""
    parser = argparse.ArgumentParser(description="Measure petastorm's names beside petastorm.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--folder", type=Path, default=ROOT / ".venvs" / "bench-petastorm")
    arguments = parser.parse_args()
    processes.become_subreaper()
    compile_own_code()
    write(arguments.folder)
    judged: list[tuple[str, Target]] = []
    for case in arguments.case or CASES:
        measurement = comparison(case, str(arguments.folder.absolute()), arguments.rounds)
        samples = measure(measurement, quick=False)
        judged += [(measurement.name, target) for target in measurement.targets(samples)]
        print(table.render(measurement, samples) + "\n", flush=True)
    print(table.render_targets(judged), f"\n\nLoad {machine.load()}, {machine.facts()['processor']}", flush=True)


def comparison(case: str, folder: str, rounds: int) -> Measurement:
    """Return how one case is measured."""
    title, times = CASES[case]

    def cases(_: bool) -> Sequence[Case]:
        return [
            Case(
                label=label,
                program="compat/petastorm_readers.py",
                arguments=(library, case, folder),
                venv=venv,
                timeout_s=180,
            )
            for label, library, venv in ((OURS, "cargobike", "own"), (THEIRS, "petastorm", "petastorm"))
        ]

    def targets(samples: Samples) -> Sequence[Target]:
        found = []
        for words, ratio in (
            ("rows/s", samples.ratio(OURS, THEIRS, "rows_s")),
            ("rows per CPU second", samples.ratio(THEIRS, OURS, "cpu_us_per_row")),
        ):
            met = None if ratio is None else ratio >= times
            text = f"{case}: at least {times:g} × petastorm's {words}"
            found.append(Target(text=text, found=show(ratio, ".3g", " ×"), met=met, kind="gate"))
        return found

    return Measurement(
        name=f"petastorm-{case}",
        title=title,
        cases=cases,
        read=_read,
        columns=[
            ("rows_s", "rows/s", ",.0f"),
            ("cpu_us_per_row", "CPU µs per row", ".2f"),
            ("first_s", "first batch s", ".2f"),
        ],
        compare=("rows_s", THEIRS),
        targets=targets,
        rounds=(rounds, 1),
    )


def _read(_: Case, run: Run) -> Figures:
    return {name: float(value) for name, value in run.answer.items()}


def write(folder: Path) -> None:
    """Write the data sets, once."""
    if (folder / "whole").exists():
        return
    rng = np.random.default_rng(7)
    (folder / "numbers").mkdir(parents=True, exist_ok=True)
    columns: dict[str, Any] = {f"f{at}": rng.standard_normal(400_000).astype(np.float32) for at in range(28)}
    columns["label"] = rng.integers(0, 2, 400_000)
    pq.write_table(pa.table(columns), folder / "numbers" / "part-0.parquet", row_group_size=20_000)
    arrays = Unischema(
        "Arrays", [UnischemaField("id", np.int64, ()), UnischemaField("grid", np.float32, (16, 16), NdarrayCodec())]
    )
    images = Unischema(
        "Images",
        [
            UnischemaField("id", np.int64, ()),
            UnischemaField("image", np.uint8, (64, 64, 3), CompressedImageCodec("png")),
        ],
    )
    materialize_rows((folder / "arrays").as_uri(), arrays, _rows(rng, "grid", 20_000), rows_per_group=1000)
    materialize_rows((folder / "images").as_uri(), images, _rows(rng, "image", 4_000), rows_per_group=500)
    (folder / "whole").touch()


def _rows(rng: np.random.Generator, name: str, count: int) -> Iterator[dict[str, Any]]:
    slope = np.arange(64 * 64 * 3, dtype=np.uint32).reshape(64, 64, 3)
    for number in range(count):
        value: Any = rng.standard_normal((16, 16), np.float32)
        if name == "image":
            value = (slope // 97 + number).astype(np.uint8)
        yield {"id": np.int64(number), name: value}


if __name__ == "__main__":
    main()
