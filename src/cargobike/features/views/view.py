"""A view: what a model takes, in training and in look-ups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from cargobike.core.errors import InvalidInputError, NotFoundError, nearest
from cargobike.core.registering.lazy import load
from cargobike.core.registering.steps import Kept, own_step
from cargobike.core.registering.tracing import Thing
from cargobike.features.datasets.dataset import TrainingDataset
from cargobike.features.groups.finding import named_rows
from cargobike.features.groups.origins import Named, Tracked
from cargobike.features.groups.rows.incoming import arrow_of, is_query
from cargobike.features.online.lookup import GroupLookup
from cargobike.features.online.stores.choosing import store_of
from cargobike.features.online.vectors import Vector, Vectors
from cargobike.features.queries.asking import ask_owned, schema_of
from cargobike.features.queries.explaining import Explanation
from cargobike.features.queries.labels import as_table, is_spark
from cargobike.features.queries.names import Owned
from cargobike.features.queries.query import Query
from cargobike.features.reading import ReadGroup
from cargobike.features.views.fitted import Fitted, read_fitted
from cargobike.features.views.functions import Function, find_functions, parameters_of
from cargobike.features.views.record import ViewRecord
from cargobike.features.views.serving import Serving
from cargobike.features.views.transforming import (
    TRANSFORMATIONS,
    Transformation,
    apply_all,
    as_array,
    as_column,
    fit_all,
    transformation_of,
)
from cargobike.store.files import project
from cargobike.store.files.storage import Storage

FindGroup = Callable[[str, int], ReadGroup]

_WRITE_DATASET = "cargobike.features.datasets.writing:write_dataset"
"""By name, since it takes views, and stands above."""


class View:
    """A version of a view; made by `create_view` and `view`.

    Guarantees: training rows and look-ups run the same code on the same features, with transformations that were
    fitted once; a version never changes.

    Args:
        record: What it is.
        storage: The storage of its project.
        find_group: Gives a version of a group.
        functions: Functions that cannot be imported, by what they are for.
        dataset: The training dataset for which it was fitted; by default the last one.
    """

    def __init__(
        self,
        record: ViewRecord,
        storage: Storage,
        find_group: FindGroup,
        functions: Mapping[str, Function] | None = None,
        dataset: str = "",
    ) -> None:
        self.record = record
        self.storage = storage
        self._find_group = find_group
        self._given = dict(functions or {})
        self._dataset = dataset

    def __repr__(self) -> str:
        return f"<View {self.name!r}, version {self.version}: {', '.join(self.features)}>"

    @property
    def name(self) -> str:
        """Its name."""
        return self.record.name

    @property
    def version(self) -> int:
        """Its version."""
        return self.record.version

    def kept_as(self) -> Kept:
        """Return what a pipeline keeps of it."""
        return Kept("view", f"{self.name}:{self.version}")

    @property
    def label(self) -> str:
        """The column that a model learns; empty if there is none."""
        return self.record.label

    @property
    def features(self) -> list[str]:
        """Names of its features, before transformations."""
        return [*(each.column for each in self.record.features), *self.record.on_demand]

    @property
    def groups(self) -> list[str]:
        """Names of the groups that it takes features from."""
        return list(dict.fromkeys(each.group for each in self.record.features))

    def fitted_on(self, dataset: str) -> View:
        """Return the view with transformations as they were fitted for a training dataset, such as `"team_value:2"`.

        Raises:
            NotFoundError: If it was not fitted for that.
        """
        if read_fitted(self.storage, self.record, dataset) is None:
            raise NotFoundError(
                f"The view {self.name} (version {self.version}) was not fitted for a training dataset {dataset!r}."
            )
        return View(self.record, self.storage, self._find_group, self._given, dataset)

    def training_data(self, labels: Any, *, time: str = "", known_at: str = "") -> TrainingData:
        """Return training rows: each row of `labels` with the features that were true of it at its time.

        Every row is kept; what is missing is null.

        Args:
            labels: Rows with keys, a time and the label: a pandas, polars or Spark DataFrame, an Arrow table, or a SQL
                query, in which groups and tables of the project can be named. Or a query that has the features and the
                label already, such as `features.get_features` returns.
            time: The column of `labels` that says when; by default it is inferred.
            known_at: Count only what was known at the time of a row: `"commit"` for what was written by then, or a
                column of the groups that says since when a row was known.

        Raises:
            InvalidInputError: If the rows lack a key, the label or a value that on-demand features need.
        """
        if isinstance(labels, Query):
            return self._queried(labels.known_at(known_at) if known_at else labels)
        tracked = Tracked(_named_here, labels) if is_query(labels) else None
        if tracked is not None:
            labels = arrow_of(labels, tracked.rows_of)[0]
        rows = labels if is_spark(labels) else as_table(labels)
        names = schema_of(rows).names
        if self.label and self.label not in names:
            advice = nearest(self.label, names)
            raise InvalidInputError(
                f"The view {self.name} learns {self.label!r}, and the rows have no such column.{advice}"
            )
        query = ask_owned(self._owned(names), rows, time=time)
        made_from = () if tracked is None else tuple(dict.fromkeys(tracked.things))
        return TrainingData(self, query.known_at(known_at) if known_at else query, made_from)

    def _queried(self, query: Query) -> TrainingData:
        needed = [*(each.column for each in self.record.features), *([self.label] if self.label else [])]
        lacking = [name for name in needed if name not in query.columns]
        if lacking:
            raise InvalidInputError(
                f"The view {self.name} takes {', '.join(needed)}; the query has no {', '.join(lacking)}."
            )
        return TrainingData(self, query)

    @own_step("view.create_training_dataset", recover="cargobike.features.recovering:recover_dataset")
    def create_training_dataset(
        self,
        name: str,
        labels: Any,
        *,
        split: Mapping[str, float] | None = None,
        seed: int = 0,
        by: str = "rows",
        format: str = "parquet",
        time: str = "",
        known_at: str = "",
    ) -> TrainingDataset:
        """Write training rows once, as the next version of a training dataset, pinned to the commits they came from.

        Transformations are fitted on the training part (`train`, or the first), kept with the view, and applied to all.

        Args:
            name: Its name in the project: lower case, digits and `_`.
            labels: Rows as `training_data` takes them.
            split: The share of each part, such as `{"train": 0.8, "test": 0.2}`; by default all rows are `train`.
            seed: Draws the parts; the same seed gives the same parts of the same rows.
            by: `"rows"` draws rows; `"time"` puts the earliest rows into the first part; `"key"`, or a column, puts
                rows with the same key into the same part.
            format: `"parquet"`, or another to write beside it: `"csv"`, `"tfrecord"`, `"numpy"`, `"delta"`.
            time: The column of `labels` that says when; by default it is inferred.
            known_at: See `training_data`.

        Returns:
            The dataset. Give it, or a part such as `dataset["test"]`, to `data.Loader` or to `launch(data=…)`.

        Raises:
            InvalidInputError: If the rows do not fit, or cannot be split like this.
        """
        data = self.training_data(labels, time=time, known_at=known_at)
        shares = {"train": 1.0} if split is None else dict(split)
        write: Callable[..., TrainingDataset] = load(_WRITE_DATASET)
        return write(self, name, data, split=shares, seed=seed, by=by, format=format)

    def vector(self, /, **keys: Any) -> Vector:
        """Return the newest values for one key: `view.vector(team_id=3)`.

        Values of the request that on-demand features need are given beside the keys.

        Returns:
            Values by name; `None` where a value is absent, and `.states` says whether it is `null`, `missing` (no row
            for the key) or `expired` (older than the group's time to live).

        Raises:
            InvalidInputError: If keys are missing, or of the wrong type.
            StoreError: If a group was never materialized.
        """
        return self._serving.vector(keys)

    def vectors(self, keys: Any) -> Vectors:
        """Return the newest values for several keys, in their order.

        Args:
            keys: A list of dicts, a dict of lists, a DataFrame; or a list of values, if there is one key.
        """
        return self._serving.vectors(keys)

    def serving(self) -> Serving:
        """Return what answers look-ups, prepared once; internal."""
        return self._serving

    def close(self) -> None:
        """Close files that look-ups opened in this thread; the next look-up opens them again."""
        if "_serving" in self.__dict__:
            self._serving.close()
            del self.__dict__["_serving"]

    def transformations(self) -> dict[str, Transformation]:
        """Return what is done to each feature."""
        chosen = self.record.transformations
        own = {name: what for name, what in chosen.items() if what not in TRANSFORMATIONS}
        functions = find_functions(own, self._given, self.name)
        return {name: transformation_of(name, functions, what) for name, what in chosen.items()}

    def with_on_demand(self, table: pa.Table) -> pa.Table:
        """Return rows with the features that are computed from others and from values of the request.

        Raises:
            InvalidInputError: If a value is missing.
        """
        for name, function in self._on_demand().items():
            parameters = parameters_of(function)
            missing = [each for each in parameters if each not in table.column_names]
            if missing:
                raise InvalidInputError(
                    f"The feature {name!r} is computed from {', '.join(parameters)}; the rows have no column "
                    f"{', '.join(missing)}."
                )
            values = as_column(_computed(function, [as_array(table[each]) for each in parameters], len(table)))
            table = table.append_column(name, values)
        return table

    def fitted(self) -> Fitted | None:
        """Return what transformations learned in training; `None` if no training dataset was made yet."""
        return read_fitted(self.storage, self.record, self._dataset)

    @cached_property
    def _serving(self) -> Serving:
        transformations = self.transformations()
        fitted = self.fitted() if transformations else None
        if transformations and fitted is None:
            raise InvalidInputError(
                f"The transformations of the view {self.name} (version {self.version}) were never fitted. Make a "
                "training dataset first: view.create_training_dataset(…) fits them and keeps what they learned."
            )
        states = fitted.states if fitted is not None else {}
        groups = self._groups()
        kinds = {each.column: groups[each.group].definition.features[each.feature] for each in self.record.features}
        lookups = []
        for group in groups.values():
            columns = {each.column: each.feature for each in self.record.features if each.group == group.name}
            store = store_of(group.definition, self.storage)
            lookups.append(GroupLookup(group.definition, store, columns, table_id=group.table_id))
        chosen = {name: (each, states[name]) for name, each in transformations.items()}
        return Serving(lookups, kinds | dict.fromkeys(self.record.on_demand, "double"), self._on_demand(), chosen)

    def _on_demand(self) -> dict[str, Function]:
        return find_functions(self.record.on_demand, self._given, self.name)

    def _groups(self) -> dict[str, ReadGroup]:
        versions = {each.group: each.version for each in self.record.features}
        return {name: self._find_group(name, version) for name, version in versions.items()}

    def _owned(self, taken: Sequence[str]) -> list[Owned]:
        groups = self._groups()
        clashing = [each.column for each in self.record.features if each.column in taken]
        if clashing:
            raise InvalidInputError(
                f"The rows have columns that the view {self.name} adds: {', '.join(clashing)}. Leave them out or "
                "rename them."
            )
        return [Owned(each.feature, groups[each.group], each.column) for each in self.record.features]


@dataclass(frozen=True, slots=True)
class TrainingData:
    """Training rows of a view; lazy: nothing is read before rows are asked for."""

    view: View
    query: Query
    made_from: tuple[Thing, ...] = ()
    """What the rows were read from that features are joined to, as far as a query says it."""

    def explain(self) -> Explanation:
        """Say how features are joined, and how many values were written after the time of their row."""
        found = self.query.explain()
        if not self.view.record.transformations:
            return found
        fitted = self.view.fitted()
        words = f"as for the training dataset {fitted.dataset}" if fitted else "on all of these rows"
        names = ", ".join(f"{name} ({what})" for name, what in self.view.record.transformations.items())
        return Explanation((*found.lines, f"Transformed: {names}; fitted {words}."), found.lateness)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table: the columns of the labels, then the features."""
        table = self.view.with_on_demand(self.query.to_arrow())
        made = self.view.transformations()
        if not made:
            return table
        fitted = self.view.fitted()
        return apply_all(made, fitted.states if fitted else fit_all(made, table), table)

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_spark(self, session: Any = None) -> Any:
        """Return the rows as a Spark DataFrame, joined by Spark.

        Raises:
            InvalidInputError: If the view computes or transforms features, which is done in one place.
        """
        if self.view.record.transformations or self.view.record.on_demand:
            raise InvalidInputError(
                f"The view {self.view.name} computes or transforms features, which Spark does not do. Join there with "
                "training_data(labels).query.to_spark(), or make a training dataset."
            )
        return self.query.to_spark(session)


def _named_here(name: str) -> Named | None:
    return named_rows(name, project.current())


def _computed(function: Function, arrays: list[Any], rows: int) -> Any:
    found = function(*arrays)
    if len(found) != rows:
        raise InvalidInputError(f"{function.__qualname__} returned {len(found)} values for {rows} rows.")
    return found


__all__ = ["FindGroup", "TrainingData", "View"]
