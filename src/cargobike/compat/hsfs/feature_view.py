"""A feature view of Hopsworks over one of ours: what a model takes, in training and in look-ups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from cargobike import features as feature_room
from cargobike.compat.hsfs.constructor.filter import Logic
from cargobike.compat.hsfs.constructor.query import Asked, Query, filtered
from cargobike.compat.hsfs.frames import ROW, give
from cargobike.compat.hsfs.job import Job
from cargobike.compat.hsfs.kept_views import KeptView, versions_of
from cargobike.compat.hsfs.lookups import Lookups, give_vectors
from cargobike.compat.hsfs.splits import Split, part_tables, split_of, within
from cargobike.compat.noticing import formerly
from cargobike.core.errors import NotFoundError

_VIEW = "hsfs.feature_view.FeatureView"


class FeatureView:
    """Features that a model takes, and labels that it learns.

    Args:
        view: Our view.
        kept: What Hopsworks's names say beyond it.
    """

    def __init__(self, view: feature_room.View, kept: KeptView) -> None:
        self.view = view
        self.kept = kept
        self.name = view.name
        self.version = kept.version
        self.labels = list(kept.labels)
        self.description = view.record.description
        self.training_dataset_version: int | None = None
        self._fitted = view
        self._found: Lookups | None = None

    def __repr__(self) -> str:
        return f"FeatureView({self.name!r}, {self.version})"

    @property
    def query(self) -> Query:
        """What it asks for."""
        return Query(self.kept.asked)

    @property
    def schema(self) -> list[str]:
        """Names of its columns."""
        return list(self.kept.asked.columns())

    features = schema

    @property
    def primary_keys(self) -> set[str]:
        """The columns that look-ups take."""
        return {key for part, _ in self.kept.asked.parts for key in part.opened().definition.key if key != ROW}

    @property
    def serving_keys(self) -> list[str]:
        """The columns that look-ups take."""
        return sorted(self.primary_keys)

    # -- training ----------------------------------------------------------------------------------------------------

    @formerly(f"{_VIEW}.train_test_split")
    def train_test_split(
        self,
        test_size: float | None = None,
        train_start: Any = "",
        train_end: Any = "",
        test_start: Any = "",
        test_end: Any = "",
        description: str = "",
        extra_filter: Logic | None = None,
        *,
        primary_key: bool = False,
        event_time: bool = False,
        dataframe_type: str = "default",
        seed: int | None = None,
        **more: Any,
    ) -> tuple[Any, ...]:
        """Write a training dataset, and return its rows: features for training and testing, then labels of both.

        Transformations are fitted on the part for training. Parts are drawn, or cut by event time: a part has the rows
        from its start on, and before its end.
        """
        asked = split_of(
            train=(train_start, train_end), test=(test_start, test_end), shares={"test": test_size}, seed=seed
        )
        version = self._write(asked, extra_filter)
        return self._parts(version, ["train", "test"], primary_key, event_time, dataframe_type)

    @formerly(f"{_VIEW}.train_validation_test_split")
    def train_validation_test_split(
        self,
        validation_size: float | None = None,
        test_size: float | None = None,
        train_start: Any = "",
        train_end: Any = "",
        validation_start: Any = "",
        validation_end: Any = "",
        test_start: Any = "",
        test_end: Any = "",
        description: str = "",
        extra_filter: Logic | None = None,
        *,
        primary_key: bool = False,
        event_time: bool = False,
        dataframe_type: str = "default",
        seed: int | None = None,
        **more: Any,
    ) -> tuple[Any, ...]:
        """Do the same in three parts: X_train, X_val, X_test, y_train, y_val, y_test."""
        asked = split_of(
            train=(train_start, train_end),
            validation=(validation_start, validation_end),
            test=(test_start, test_end),
            shares={"validation": validation_size, "test": test_size},
            seed=seed,
        )
        version = self._write(asked, extra_filter)
        return self._parts(version, ["train", "validation", "test"], primary_key, event_time, dataframe_type)

    @formerly(f"{_VIEW}.training_data")
    def training_data(
        self,
        start_time: Any = None,
        end_time: Any = None,
        description: str = "",
        extra_filter: Logic | None = None,
        *,
        primary_key: bool = False,
        event_time: bool = False,
        dataframe_type: str = "default",
        **more: Any,
    ) -> tuple[Any, Any]:
        """Write all rows as a training dataset, and return features and labels."""
        version = self._write(split_of(train=(start_time, end_time), shares={}), extra_filter)
        X, y = self._parts(version, ["train"], primary_key, event_time, dataframe_type)
        return X, y

    def create_training_data(
        self,
        start_time: Any = "",
        end_time: Any = "",
        location: str = "",
        description: str = "",
        extra_filter: Logic | None = None,
        data_format: str = "parquet",
        **more: Any,
    ) -> tuple[int, Job]:
        """Write all rows as a training dataset, and return its version and a job that is done."""
        asked = split_of(train=(start_time, end_time), shares={})
        return self._written(self._write(asked, extra_filter, data_format))

    @formerly(f"{_VIEW}.create_train_test_split")
    def create_train_test_split(
        self,
        test_size: float | None = None,
        train_start: Any = "",
        train_end: Any = "",
        test_start: Any = "",
        test_end: Any = "",
        *,
        extra_filter: Logic | None = None,
        data_format: str = "parquet",
        seed: int | None = None,
        **more: Any,
    ) -> tuple[int, Job]:
        """Write a training dataset, and return its version and a job that is done."""
        asked = split_of(
            train=(train_start, train_end), test=(test_start, test_end), shares={"test": test_size}, seed=seed
        )
        return self._written(self._write(asked, extra_filter, data_format))

    def create_train_validation_test_split(
        self,
        validation_size: float | None = None,
        test_size: float | None = None,
        train_start: Any = "",
        train_end: Any = "",
        validation_start: Any = "",
        validation_end: Any = "",
        test_start: Any = "",
        test_end: Any = "",
        *,
        extra_filter: Logic | None = None,
        data_format: str = "parquet",
        seed: int | None = None,
        **more: Any,
    ) -> tuple[int, Job]:
        """Write a training dataset in three parts, and return its version and a job that is done."""
        asked = split_of(
            train=(train_start, train_end),
            validation=(validation_start, validation_end),
            test=(test_start, test_end),
            shares={"validation": validation_size, "test": test_size},
            seed=seed,
        )
        return self._written(self._write(asked, extra_filter, data_format))

    def get_training_data(
        self,
        training_dataset_version: int,
        read_options: Any = None,
        primary_key: bool = False,
        event_time: bool = False,
        dataframe_type: str = "default",
        **more: Any,
    ) -> tuple[Any, Any]:
        """Return features and labels of a training dataset."""
        X, y = self._parts(training_dataset_version, ["train"], primary_key, event_time, dataframe_type)
        return X, y

    @formerly(f"{_VIEW}.get_train_test_split")
    def get_train_test_split(
        self,
        training_dataset_version: int,
        read_options: Any = None,
        primary_key: bool = False,
        event_time: bool = False,
        dataframe_type: str = "default",
        **more: Any,
    ) -> tuple[Any, ...]:
        """Return X_train, X_test, y_train, y_test of a training dataset."""
        return self._parts(training_dataset_version, ["train", "test"], primary_key, event_time, dataframe_type)

    def get_train_validation_test_split(
        self,
        training_dataset_version: int,
        read_options: Any = None,
        primary_key: bool = False,
        event_time: bool = False,
        dataframe_type: str = "default",
        **more: Any,
    ) -> tuple[Any, ...]:
        """Return X_train, X_val, X_test, y_train, y_val, y_test of a training dataset."""
        names = ["train", "validation", "test"]
        return self._parts(training_dataset_version, names, primary_key, event_time, dataframe_type)

    # -- predictions -------------------------------------------------------------------------------------------------

    @formerly(f"{_VIEW}.init_serving")
    def init_serving(self, training_dataset_version: int | None = None, *args: Any, **more: Any) -> None:
        """Use transformations as they were fitted for a training dataset; by default the last one."""
        self._use_fitted(training_dataset_version)

    def init_batch_scoring(self, training_dataset_version: int | None = None) -> None:
        """Use transformations as they were fitted for a training dataset; by default the last one."""
        self._use_fitted(training_dataset_version)

    @formerly(f"{_VIEW}.get_feature_vector")
    def get_feature_vector(
        self,
        entry: Mapping[str, Any] | None = None,
        passed_features: Mapping[str, Any] | None = None,
        external: bool | None = None,
        return_type: str = "list",
        allow_missing: bool = False,
        *,
        transform: bool = True,
        request_parameters: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Any:
        """Return the newest values for a key, in the order of the view, without labels."""
        found = self._lookups.find(entry or {}, passed_features, allow_missing, transform, request_parameters)
        given = give_vectors([found], return_type)
        return given[0] if return_type in {"list", "numpy"} else given

    @formerly(f"{_VIEW}.get_feature_vectors")
    def get_feature_vectors(
        self,
        entry: Sequence[Mapping[str, Any]] | None = None,
        passed_features: Sequence[Mapping[str, Any]] | None = None,
        external: bool | None = None,
        return_type: str = "list",
        allow_missing: bool = False,
        *,
        transform: bool = True,
        **more: Any,
    ) -> Any:
        """Return the newest values for several keys."""
        passed = list(passed_features or [{}] * len(entry or []))
        found = [
            self._lookups.find(one, some, allow_missing, transform)
            for one, some in zip(entry or [], passed, strict=True)
        ]
        return give_vectors(found, return_type)

    def transform(self, feature_vector: Any, **more: Any) -> Any:
        """Return values that `get_feature_vector(…, transform=False)` gave as a model takes them."""
        return self._lookups.transformed(feature_vector)

    @formerly(f"{_VIEW}.get_batch_data")
    def get_batch_data(
        self,
        start_time: Any = None,
        end_time: Any = None,
        read_options: Any = None,
        *,
        primary_key: bool = False,
        event_time: bool = False,
        dataframe_type: str = "default",
        extra_filter: Logic | None = None,
        **more: Any,
    ) -> Any:
        """Return all rows, or those of a time, as a model takes them, without labels."""
        query = within(self._filtered(extra_filter), start_time, end_time).query(self._helpers())
        table = self._fitted.training_data(query).to_arrow()
        return give(dataframe_type, lambda: self._chosen(table, primary_key, event_time), default="pandas")

    def log(self, *args: Any, **more: Any) -> None:
        """Do nothing: a deployment logs requests and answers itself (`serving.read_log`)."""

    @property
    def _lookups(self) -> Lookups:
        if self._found is None or self._found.view is not self._fitted:
            self._found = Lookups(self._fitted, self.kept)
        return self._found

    # -- inner -------------------------------------------------------------------------------------------------------

    @property
    def _dataset(self) -> str:
        return f"{self.name}_{self.version}"

    def _filtered(self, extra: Logic | None) -> Asked:
        return self.kept.asked if extra is None else filtered(self.kept.asked, extra)

    def _helpers(self) -> list[str]:
        """Return the key and event time of the rows, which training datasets keep beside what is asked for."""
        definition = self.kept.asked.rows.opened().definition
        return [
            *(key for key in definition.key if key != ROW),
            *([definition.event_time] if definition.event_time else []),
        ]

    def _write(self, split: Split, extra: Logic | None, data_format: str = "parquet") -> int:
        asked = split.chosen(self._filtered(extra))
        formats = {"tfrecords": "tfrecord", "tfrecord": "tfrecord", "npy": "numpy"}
        dataset = self.view.create_training_dataset(
            self._dataset,
            asked.query(self._helpers()),
            split=split.shares_in(self._filtered(extra)),
            seed=split.seed,
            by=split.by,
            format=formats.get(data_format, data_format),
        )
        self._use_fitted(dataset.version)
        return dataset.version

    def _written(self, version: int) -> tuple[int, Job]:
        return version, Job(f"{self._dataset}_{version}_create_fv_td")

    def _use_fitted(self, version: int | None) -> None:
        self.training_dataset_version = version
        has_any = bool(self.view.record.transformations)
        self._fitted = self.view.fitted_on(f"{self._dataset}:{version}") if version and has_any else self.view

    def _parts(
        self, version: int, names: Sequence[str], primary_key: bool, event_time: bool, kind: str
    ) -> tuple[Any, ...]:
        self.training_dataset_version = version
        tables = part_tables(self._dataset, version, names)
        X = [self._frame(self._chosen(table, primary_key, event_time), kind) for table in tables]
        y = [self._frame(table.select(self.labels), kind) if self.labels else None for table in tables]
        return (*X, *y)

    def _frame(self, table: pa.Table, kind: str) -> Any:
        return give(kind, lambda: table, default="pandas")

    def _chosen(self, table: pa.Table, primary_key: bool, event_time: bool) -> pa.Table:
        definition = self.kept.asked.rows.opened().definition
        hidden = set(self.labels) | set(self.kept.dropped)
        asked = set(self.kept.asked.columns())
        hidden |= {key for key in definition.key if key not in asked and not primary_key}
        hidden |= {definition.event_time} - asked if not event_time else set()
        return table.select([name for name in table.column_names if name not in hidden])


def view_of(name: str, version: int) -> FeatureView:
    """Return a version of a view of ours under the names of Hopsworks.

    Raises:
        NotFoundError: If there is none that Hopsworks's names made.
    """
    for view, kept in versions_of(name):
        if view.version == version:
            return FeatureView(view, kept)
    raise NotFoundError(
        f"There is no feature view {name!r} that these names made; features.view({name!r}) returns ours."
    )
