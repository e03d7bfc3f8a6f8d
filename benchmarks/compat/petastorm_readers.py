"""One reader, one pass: `python petastorm_readers.py LIBRARY CASE FOLDER`; run by the interpreter of its own venv.

Both libraries run the same lines under the same names; only the package that they come from differs. The rate is that
after the first batch.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

sys.path.pop(0)  # this folder has a program called petastorm

from rig.answers import answer

MOST_S = 8.0
PACKAGES = {"cargobike": "cargobike.compat.petastorm", "petastorm": "petastorm"}


def batches(library: str, case: str, folder: str) -> Iterator[int]:
    """Yield how many rows each batch has, or each row."""
    package: Any = importlib.import_module(PACKAGES[library])
    pytorch: Any = importlib.import_module(f"{PACKAGES[library]}.pytorch")
    common = {"workers_count": 2, "num_epochs": 1}
    if case == "rows":
        with package.make_reader(f"file://{folder}/arrays", **common) as reader:
            for _ in reader:
                yield 1
    elif case in ("arrays", "images"):
        reader = package.make_reader(f"file://{folder}/{case}", **common)
        with pytorch.DataLoader(reader, batch_size=256) as loader:
            for batch in loader:
                yield len(batch["id"])
    else:
        capacity = 100_000 if case == "shuffled" else 0
        reader = package.make_batch_reader(f"file://{folder}/numbers", **common)
        with pytorch.BatchedDataLoader(reader, batch_size=1024, shuffling_queue_capacity=capacity) as loader:
            for batch in loader:
                yield len(batch["label"])


def main() -> None:
    """Measure one pass."""
    library, case, folder = sys.argv[1:]
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(1)
    began = time.perf_counter()
    rows = first = 0
    first_s = seconds = spent = 0.0
    for count in batches(library, case, folder):
        seconds = time.perf_counter() - began
        if not rows:
            first, first_s, spent = count, seconds, time.process_time()
        rows += count
        if seconds > first_s + MOST_S:
            break
    spent = time.process_time() - spent
    rest = max(rows - first, 1)
    answer(rows=rows, first_s=first_s, rows_s=rest / (seconds - first_s), cpu_us_per_row=spent / rest * 1e6)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
