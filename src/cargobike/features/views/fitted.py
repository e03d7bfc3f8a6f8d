"""How views were fitted: `views/<name>/<version>/fitted/<dataset>-<version>.json`, written before the dataset is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from cargobike.features.datasets.record import manifest_of
from cargobike.features.views.record import ViewRecord, decode, encode, fitted_path
from cargobike.store.files.storage import Storage


class Fitted(msgspec.Struct, frozen=True):
    """How the transformations of a view were fitted: on the training part of a training dataset."""

    dataset: str
    at: float
    states: dict[str, dict[str, Any]]


def keep_fitted(storage: Storage, record: ViewRecord, fitted: Fitted) -> None:
    """Write how a view was fitted for a training dataset, which counts from when the dataset is visible."""
    storage.create(fitted_path(record.name, record.version, fitted.dataset), encode(fitted))


def read_fitted(storage: Storage, record: ViewRecord, dataset: str = "") -> Fitted | None:
    """Return how a view was fitted: for a training dataset, by default for the last one; `None` if it never was."""
    return next(fitted_for(storage, record, dataset), None)


def fitted_for(storage: Storage, record: ViewRecord, dataset: str = "") -> Iterator[Fitted]:
    """Yield how a view was fitted for each of its training datasets, or for one, the last one first."""
    folder = fitted_path(record.name, record.version, dataset).rpartition("/")[0]
    everything: list[Fitted] = [decode(storage, entry.path, Fitted) for entry in storage.list(folder)]
    wanted = [each for each in everything if not dataset or each.dataset == dataset]
    for each in sorted(wanted, key=lambda each: (each.at, each.dataset), reverse=True):
        name, _, version = each.dataset.partition(":")
        if version.isdecimal() and storage.stat(manifest_of(name, int(version))) is not None:
            yield each
