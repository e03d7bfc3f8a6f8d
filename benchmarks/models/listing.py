"""How long a registry with ten thousand versions takes to list: `python benchmarks/models/listing.py`.

Manifests are written directly, as writers would have left them; no version has files. Three shapes, since a list looks
at each model and not at each version: one model with all versions, a hundred with a hundred each, a thousand with ten.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rig import findings

from cargobike import models, project
from cargobike.models.catalogue.catalogue import Catalogue
from cargobike.models.record import FileEntry, Manifest, fingerprint_of, path_of
from cargobike.store.assets.manifests import encode_manifest

SHAPES = ((1, 10_000), (100, 100), (1_000, 10))
TURNS = 15
LIMIT_MS = 50.0


def fill(root: Path, names: int, versions: int) -> None:
    """Write a registry of so many models with so many versions each."""
    project.use(root)
    catalogue = Catalogue(project.prepare())
    files = (FileEntry("model/model.bin", 1000, "0" * 64),)
    manifest = Manifest(
        name="model0",
        version=1,
        fingerprint=fingerprint_of("files", {}, None, files),
        flavour="files",
        metrics={"accuracy": 0.9, "loss": 0.3, "latency_ms": 12.0},
        description="A model of a benchmark.",
        tags=("small", "fast"),
        files=files,
        token="0" * 12,
        at=time.time(),
        user="bench",
    )
    for number in range(names):
        name = f"model{number}"
        catalogue.announce(name)
        for version in range(1, versions + 1):
            path = root / path_of(name, version)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode_manifest(replace(manifest, name=name, version=version)))


def median_ms(work: Callable[[], object]) -> float:
    """Return the median of some turns."""
    times = []
    for _ in range(TURNS):
        begun = time.perf_counter()
        work()
        times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gate", action="store_true", help="exit with 1 if a list takes more than 50 ms")
    gate = parser.parse_args().gate
    slowest_ms = 0.0
    print("| models × versions | first time | `models.list()` | `models.list(name)` |")
    print("| --- | --- | --- | --- |")
    for names, versions in SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            fill(root, names, versions)
            begun = time.perf_counter()
            assert len(models.list()) == names
            first_ms = (time.perf_counter() - begun) * 1000
            assert len(models.list("model0")) == versions
            all_ms, one_ms = median_ms(models.list), median_ms(lambda: models.list("model0"))
            slowest_ms = max(slowest_ms, all_ms, one_ms)
            words = (f"{value:,.1f} ms" for value in (first_ms, all_ms, one_ms))
            print(f"| {names:,} × {versions:,} | {' | '.join(words)} |", flush=True)
    findings.hand_on("registry", [findings.at_most("10,000 versions are listed", slowest_ms, LIMIT_MS, " ms")])
    sys.exit(slowest_ms > LIMIT_MS and gate)


if __name__ == "__main__":
    main()
