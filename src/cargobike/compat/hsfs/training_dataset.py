"""Training datasets as hsfs 2 made them, without a feature view: `create_training_dataset(…).save(query)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from cargobike import features
from cargobike.compat.hsfs.constructor.query import Query
from cargobike.compat.hsfs.frames import give, read_names
from cargobike.compat.hsfs.job import Job
from cargobike.compat.hsfs.kept_views import KeptView, make_view, versions_of
from cargobike.compat.hsfs.lookups import Lookups
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError, NotFoundError

_DATASET: Final = "hsfs.training_dataset.TrainingDataset"
_FORMATS: Final = {"tfrecords": "tfrecord", "npy": "numpy"}


class TrainingDataset:
    """Rows of a query, split and written once; what it takes is kept as a view of the same name.

    Args:
        name: Its name.
        version: Its version.
        data_format: The format of its files.
        splits: The share of each part; one part if there are none.
        seed: Draws the parts.
        label: The columns that a model learns.
        description: What it is for.
    """

    def __init__(
        self,
        name: str,
        version: int,
        data_format: str = "tfrecords",
        splits: Mapping[str, float] | None = None,
        seed: int | None = None,
        label: Sequence[str] = (),
        description: str = "",
    ) -> None:
        self.name = name
        self.version = version
        self.data_format = data_format
        self.splits = dict(splits or {})
        self.seed = seed
        self.label = list(label)
        self.description = description

    def __repr__(self) -> str:
        return f"TrainingDataset({self.name!r}, {self.version})"

    @formerly(f"{_DATASET}.save")
    def save(self, features: Any, write_options: Any = None) -> Job:
        """Write the rows of a query.

        Raises:
            InvalidInputError: If something else is given, or it was written before.
        """
        if not isinstance(features, Query):
            raise InvalidInputError(
                f"A {type(features).__name__} was given; give a query: insert the frame into a feature group, and "
                "select from that."
            )
        if any(kept.version == self.version for _, kept in versions_of(self.name)):
            raise InvalidInputError(f"{self.name} has a version {self.version} already; make the next one.")
        view = make_view(self.name, self.version, features.asked, self.label, [], self.description)
        dataset = view.create_training_dataset(
            self._kept_name,
            features.asked.query(),
            split=self.splits or None,
            seed=self.seed or 0,
            format=_FORMATS.get(self.data_format, self.data_format),
        )
        return Job(f"{self.name}_{self.version}_save", dataset)

    @formerly(f"{_DATASET}.read")
    def read(self, split: str | None = None, read_options: Any = None) -> Any:
        """Return the rows of a part, or all rows, with the labels."""
        dataset = features.training_dataset(self._kept_name)
        parts = [dataset[split]] if split else list(dataset)
        return give("default", lambda: pa.concat_tables([part.to_arrow() for part in parts]))

    def show(self, n: int, split: str | None = None) -> Any:
        """Return the first rows."""
        return self.read(split).head(n)

    def init_prepared_statement(self, *args: Any, **said: Any) -> None:
        """Do nothing: look-ups prepare themselves."""

    @formerly(f"{_DATASET}.get_serving_vector")
    def get_serving_vector(self, entry: Mapping[str, Any], external: Any = None) -> list[Any]:
        """Return the newest values for a key, in the order of the query, without labels."""
        return list(Lookups(*self._view()).find(entry).values())

    def get_serving_vectors(self, entry: Mapping[str, Sequence[Any]], external: Any = None) -> list[list[Any]]:
        """Return the newest values for several keys."""
        rows = [dict(zip(entry, values, strict=True)) for values in zip(*entry.values(), strict=True)]
        looking = Lookups(*self._view())
        return [list(looking.find(row).values()) for row in rows]

    def tf_data(self, *args: Any, **said: Any) -> Any:
        """Refuse: say what reads it."""
        raise InvalidInputError(
            f"tf_data: cargobike.data.Loader(features.training_dataset({self._kept_name!r})).as_tf_dataset() reads it."
        )

    @property
    def location(self) -> str:
        """Where its files are; of the part for training, if there are several."""
        return features.training_dataset(self._kept_name).training_part.url

    @property
    def _kept_name(self) -> str:
        return f"{self.name}_{self.version}"

    def _view(self) -> tuple[features.View, KeptView]:
        return next(one for one in versions_of(self.name) if one[1].version == self.version)


def find_dataset(name: str, version: int | None = None) -> TrainingDataset:
    """Return a training dataset that was written, by default its version 1.

    Raises:
        NotFoundError: If there is none.
    """
    wanted = 1 if version is None else version
    for _, kept in versions_of(name):
        if kept.version == wanted:
            return TrainingDataset(name, wanted, label=read_names(kept.labels))
    raise NotFoundError(f"There is no training dataset {name!r} of version {wanted}.")
