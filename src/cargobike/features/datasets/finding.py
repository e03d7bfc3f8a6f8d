"""Find training datasets."""

from __future__ import annotations

from cargobike.features.datasets.dataset import TrainingDataset
from cargobike.features.datasets.record import find_dataset, read_datasets
from cargobike.store.files import project
from cargobike.store.files.storages import storage_of


def training_dataset(name: str, version: int | None = None) -> TrainingDataset:
    """Return a training dataset of the project, by default its newest version.

    Args:
        name: Its name, or name and version: `team_value:2`.
        version: Its version.

    Raises:
        NotFoundError: If there is none; says which have similar names.
    """
    storage = storage_of(project.current())
    return TrainingDataset(find_dataset(storage, name, version), storage)


def list_training_datasets() -> list[TrainingDataset]:
    """Return all versions of the training datasets of the project, by name and version."""
    storage = storage_of(project.current())
    return [TrainingDataset(record, storage) for record in read_datasets(storage)]
