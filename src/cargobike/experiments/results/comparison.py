"""What differs between two experiments: what was asked for, code, environment, results."""

from __future__ import annotations

import difflib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.experiments.finding import ExperimentLike, find_experiment
from cargobike.experiments.reading import read_record
from cargobike.store.history.environment import Environment
from cargobike.store.history.snapshot import Snapshot, read_snapshot

Pair = tuple[Any, Any]

_KNOWN_BEFORE: Final = frozenset(
    {
        "name",
        "description",
        "function",
        "params",
        "optimizer",
        "num_trials",
        "direction",
        "metric",
        "objectives",
        "constraints",
        "warm_start",
        "seed",
        "workers",
        "gang",
        "engine",
        "isolation",
        "deterministic",
        "user",
        "host",
        "cargobike",
    }
)
"""What journals of version 1 hold; what else was asked for then is not known."""
_SURROUNDINGS: Final = ("python", "implementation", "os", "machine", "cpu", "cores", "gpus", "gpu_driver", "variables")
_MOST_DIFF_LINES: Final = 5000


class FileDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A file that differs, with a unified diff of its text."""

    name: str
    status: Literal["changed", "added", "removed"]
    diff: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that differs; each pair is (first, second), `None` where one of them has no such thing.

    Attributes:
        first: Id of the first experiment.
        second: Id of the second.
        settings: What was asked for.
        space: Parameters of the search space.
        code: The train function and the user's own files.
        environment: Python, operating system, processors, and the commit.
        packages: Versions of installed packages.
        resources: Hashes of versioned resources.
        results: How they ended and what came out.
        warnings: What could not be compared.
    """

    first: str
    second: str
    settings: dict[str, Pair]
    space: dict[str, Pair]
    code: tuple[FileDifference, ...]
    environment: dict[str, Pair]
    packages: dict[str, Pair]
    resources: dict[str, Pair]
    results: dict[str, Pair]
    warnings: tuple[str, ...] = ()


def compare(one: ExperimentLike | ExperimentFolder, other: ExperimentLike | ExperimentFolder) -> Comparison:
    """Compare two experiments: their results, ids, summaries or folders.

    Raises:
        NotFoundError: If there is no such experiment.
        StoreError: If one of their journals cannot be read.
    """
    first, second = (each if isinstance(each, ExperimentFolder) else find_experiment(each) for each in (one, other))
    records = read_record(first), read_record(second)
    snapshots = read_snapshot(first), read_snapshot(second)
    empty = Snapshot(at=0.0)
    left, right = (snapshot or empty for snapshot in snapshots)
    both = None not in snapshots
    return Comparison(
        first=first.id,
        second=second.id,
        settings=_differing(*_settings(*records)),
        space=_differing(*map(_space, records)),
        code=tuple(_code(first, second)),
        environment=_differing(_surroundings(left), _surroundings(right)) if both else {},
        packages=package_changes(left.environment, right.environment) if both else {},
        resources=_differing(
            {resource.name: resource.sha256 for resource in left.resources},
            {resource.name: resource.sha256 for resource in right.resources},
        ),
        results=_differing(*map(_results, records)),
        warnings=(
            *(
                f"{folder.id} has no snapshot: its files and its environment are unknown"
                for folder, snapshot in zip((first, second), snapshots, strict=True)
                if snapshot is None
            ),
            *(
                f"{record.id} was written before all settings were kept: only some of them can be compared"
                for record in records
                if record.header.version < 2
            ),
        ),
    )


def environment_changes(left: Environment, right: Environment) -> dict[str, Pair]:
    """Return what differs between two environments, packages apart."""
    return _differing(*({name: getattr(one, name) for name in _SURROUNDINGS} for one in (left, right)))


def package_changes(left: Environment, right: Environment) -> dict[str, Pair]:
    """Return the packages whose versions differ."""
    return _differing(left.packages, right.packages)


def file_differences(left: Mapping[str, str], right: Mapping[str, str]) -> list[FileDifference]:
    """Return how texts differ, by name."""
    differences = []
    for name in sorted({*left, *right}):
        before, after = left.get(name), right.get(name)
        if before == after:
            continue
        lines = list(
            difflib.unified_diff(
                (before or "").splitlines(), (after or "").splitlines(), f"a/{name}", f"b/{name}", lineterm="", n=3
            )
        )
        if len(lines) > _MOST_DIFF_LINES:
            lines = [*lines[:_MOST_DIFF_LINES], f"… {len(lines) - _MOST_DIFF_LINES} more lines"]
        status: Literal["changed", "added", "removed"] = (
            "added" if before is None else "removed" if after is None else "changed"
        )
        differences.append(FileDifference(name=name, status=status, diff="\n".join(lines)))
    return differences


def _code(first: ExperimentFolder, second: ExperimentFolder) -> list[FileDifference]:
    texts = [{**_own_files(folder), **_function(folder)} for folder in (first, second)]
    return file_differences(*texts)


def _function(folder: ExperimentFolder) -> dict[str, str]:
    try:
        return {"the train function": folder.function.read_text("utf-8", "replace")}
    except OSError:
        return {}


def _own_files(folder: ExperimentFolder) -> dict[str, str]:
    """Return the kept files by their path below the folder that they were imported from."""
    snapshot = read_snapshot(folder)
    if snapshot is None:
        return {}
    texts: dict[str, str] = {}
    try:
        with zipfile.ZipFile(folder.sources) as packed:
            for entry in packed.namelist():
                short = entry.partition("/")[2]
                texts[entry if short in texts else short] = packed.read(entry).decode("utf-8", "replace")
    except (OSError, zipfile.BadZipFile, RuntimeError):
        return {}
    return texts


def _surroundings(snapshot: Snapshot) -> dict[str, Any]:
    git = snapshot.git
    return {
        **{name: getattr(snapshot.environment, name) for name in _SURROUNDINGS},
        "git commit": git.commit if git else None,
        "git branch": git.branch if git else None,
        "uncommitted files": len(git.changed) if git else None,
        "launched by": Path(snapshot.launcher.path).name if snapshot.launcher and snapshot.launcher.path else None,
        "directory": snapshot.directory,
    }


def _settings(*records: ExperimentRecord) -> list[dict[str, Any]]:
    """Return what was asked for, by whom and where, without search spaces; only what is known of all of them."""
    settings = []
    for record in records:
        header = record.header
        asked = {name: value for name, value in header.asked.settings().items() if name != "space"}
        settings.append({**asked, "user": header.user, "host": header.host, "cargobike": header.cargobike})
    if all(record.header.version > 1 for record in records):
        return settings
    return [{name: value for name, value in each.items() if name in _KNOWN_BEFORE} for each in settings]


def _space(record: ExperimentRecord) -> dict[str, Any]:
    return {
        str(one.get("name")): {key: value for key, value in one.items() if key != "name"}
        for one in record.header.space or []
    }


def _results(record: ExperimentRecord) -> dict[str, Any]:
    best = record.best
    return {
        "state": record.state.value,
        "reason": record.reason or None,
        **{f"{state.value} trials": count for state, count in record.counts.items() if count},
        "best value": best.value if best else None,
        "best trial": best.number if best else None,
        **({f"best {name}": value for name, value in best.params.items()} if best else {}),
        **({f"its metric {name}": value for name, value in best.metrics.items()} if best else {}),
        "duration_s": round(record.duration_s, 3),
        "worker_seconds": round(record.worker_seconds, 3),
    }


def _differing(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Pair]:
    names = list(dict.fromkeys([*left, *right]))
    pairs = {name: (left.get(name), right.get(name)) for name in names}
    # By representation: NaN is the same as NaN here, and 1 is not True.
    return {name: pair for name, pair in pairs.items() if repr(pair[0]) != repr(pair[1])}
