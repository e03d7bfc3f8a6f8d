"""A training dataset: parts that loaders and train functions read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from cargobike.core.errors import NotFoundError, nearest
from cargobike.core.origins import Origin
from cargobike.core.registering.keeping import KeptTable, table_keeper
from cargobike.core.registering.steps import Kept
from cargobike.features.datasets.record import DatasetRecord, PartRecord
from cargobike.store.files.storage import Storage


class Part:
    """One part of a training dataset; give it to `data.Loader`, or to `launch(data=…)`.

    Args:
        dataset: The dataset, as `team_value:2`.
        record: What it holds.
        storage: The storage of the project.
    """

    def __init__(self, dataset: str, record: PartRecord, storage: Storage) -> None:
        self._dataset = dataset
        self._record = record
        self._storage = storage

    def __repr__(self) -> str:
        return f"<{self.name} of {self._dataset}, {self.num_rows} rows>"

    def __len__(self) -> int:
        return self.num_rows

    def kept_as(self) -> Kept:
        """Return what a pipeline keeps of it."""
        return Kept("dataset-part", f"{self._dataset}/{self.name}")

    @property
    def name(self) -> str:
        """Its name, such as `train`."""
        return self._record.name

    @property
    def num_rows(self) -> int:
        """How many rows it has."""
        return self._record.rows

    @property
    def fingerprint(self) -> str:
        """The same for equal content."""
        return self._record.fingerprint

    @property
    def url(self) -> str:
        """Where its files are, in the format that was asked for."""
        return f"{self._storage.url}/{self._record.exported or self._record.path}"

    def table(self) -> KeptTable:
        """Return the table that holds its rows."""
        return table_keeper().open(f"{self._storage.url}/{self._record.path}", version=self._record.table_version)

    def source(self) -> Any:
        """Return its rows as loaders read them, under the name of the dataset."""
        source = self.table().source()
        name, _, version = self._dataset.partition(":")
        source.origin = Origin("dataset", name, version, self.name)
        source.name = str(source.origin)
        return source

    def to_arrow(self) -> pa.Table:
        """Return its rows as an Arrow table."""
        return self.table().read()

    def to_pandas(self) -> Any:
        """Return its rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()


class TrainingDataset:
    """A version of a training dataset; it never changes.

    `dataset["test"]` is one of its parts. The dataset itself stands for the part that models learn from: `train`, or
    the first. `data.Loader(dataset)` and `launch(data=dataset)` read that.

    Args:
        record: What it holds, and what it was made from.
        storage: The storage of its project.
    """

    def __init__(self, record: DatasetRecord, storage: Storage) -> None:
        self.record = record
        self._storage = storage

    def __repr__(self) -> str:
        parts = ", ".join(f"{part.name}: {part.rows} rows" for part in self.record.parts)
        return f"<TrainingDataset {self.id}; {parts}>"

    def __getitem__(self, part: str) -> Part:
        found = [record for record in self.record.parts if record.name == part]
        if not found:
            names = [record.name for record in self.record.parts]
            raise NotFoundError(f"{self.id} has no part {part!r}; it has {', '.join(names)}.{nearest(part, names)}")
        return Part(self.id, found[0], self._storage)

    def __iter__(self) -> Iterator[Part]:
        return (Part(self.id, record, self._storage) for record in self.record.parts)

    def kept_as(self) -> Kept:
        """Return what a pipeline keeps of it."""
        return Kept("dataset", self.id)

    @property
    def id(self) -> str:
        """Its name and version, such as `team_value:2`."""
        return f"{self.record.name}:{self.record.version}"

    @property
    def name(self) -> str:
        """Its name."""
        return self.record.name

    @property
    def version(self) -> int:
        """Its version."""
        return self.record.version

    @property
    def fingerprint(self) -> str:
        """The same for equal content."""
        return self.record.fingerprint

    @property
    def commits(self) -> dict[str, int]:
        """The commit at which each group was read."""
        return dict(self.record.commits)

    @property
    def num_rows(self) -> int:
        """How many rows all its parts have."""
        return sum(part.rows for part in self.record.parts)

    @property
    def training_part(self) -> Part:
        """The part that models learn from: `train`, or the first."""
        return self[training_part(list(self.record.split))]

    def source(self) -> Any:
        """Return the rows that models learn from, as loaders read them."""
        return self.training_part.source()


def training_part(names: list[str]) -> str:
    """Return which part models learn from."""
    return "train" if "train" in names else names[0]
