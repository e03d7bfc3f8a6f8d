"""Training datasets in plain data: what commands, pages and the API tell about them, written once."""

from __future__ import annotations

from typing import Any

from cargobike.core.values.times import on_calendar
from cargobike.features.datasets.dataset import training_part
from cargobike.features.datasets.record import DatasetRecord
from cargobike.store.files.storage import Storage
from cargobike.store.history.environment import without_credentials


def listed(dataset: DatasetRecord) -> dict[str, Any]:
    """Return what a list tells about a version of a training dataset."""
    return {
        "id": f"{dataset.name}:{dataset.version}",
        "name": dataset.name,
        "version": dataset.version,
        "view": dataset.view,
        "view_version": dataset.view_version,
        "label": dataset.label,
        "rows": sum(part.rows for part in dataset.parts),
        "parts": {part.name: part.rows for part in dataset.parts},
        "fingerprint": dataset.fingerprint,
        "format": dataset.format,
        "written_at": on_calendar(dataset.at).isoformat(timespec="milliseconds"),
        "user": dataset.user,
    }


def described(storage: Storage, dataset: DatasetRecord) -> dict[str, Any]:
    """Return everything about a version of a training dataset but its rows."""
    place = without_credentials(storage.url)
    learned = training_part(list(dataset.split)) if dataset.split else ""
    return {
        **listed(dataset),
        "split": dict(dataset.split),
        "seed": dataset.seed,
        "by": dataset.by,
        "time": dataset.time,
        "known_at": dataset.known_at,
        "commits": [
            {"group": group, "version": version, "commit": dataset.commits.get(group)}
            for group, version in dataset.group_versions.items()
        ],
        "part_list": [
            {
                "name": part.name,
                "rows": part.rows,
                "is_learned_from": part.name == learned,
                "fingerprint": part.fingerprint,
                "url": f"{place}/{part.exported or part.path}",
            }
            for part in dataset.parts
        ],
    }
