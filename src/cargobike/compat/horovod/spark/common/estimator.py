"""Estimators that train a network through our own, and the models that they fit."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import cloudpickle
import numpy as np
import pyspark.ml
from pyspark.ml.functions import array_to_vector
from pyspark.ml.util import MLReadable, MLReader, MLWritable, MLWriter
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cargobike.compat.horovod.spark.common.backend import Backend, SparkBackend
from cargobike.compat.horovod.spark.common.params import Settable
from cargobike.compat.horovod.spark.common.training import VALIDATION, Plan
from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.estimators.saved_state import check_trusted
from cargobike.estimators.spark_ml import Estimator, with_arrays
from cargobike.experiment import inference
from cargobike.storage import open_storage

_FILE = "horovod.pkl"


class _Saved(MLWritable, MLReadable[Any]):
    """Saved as its parameters, pickled; loaded by those who trust the writer."""

    def write(self) -> MLWriter:
        """Return what saves it."""
        return _Writer(self)

    @classmethod
    def read(cls) -> MLReader[Any]:
        """Return what loads one inside `cargobike.spark.trusting()`."""
        return _Reader(cls)

    @classmethod
    def load(cls, path: str, *, trust: bool = False) -> Any:
        """Load what was saved.

        Args:
            path: Where.
            trust: Whether the writer is trusted: pickles can run any code.

        Raises:
            InvalidInputError: If the writer is not trusted.
        """
        check_trusted(path, trust, "Or build it anew, and load only weights that are plain data")
        content = open_storage(path).read(_FILE)
        if content is None:
            raise StoreError(f"{path} holds no {_FILE}: nothing was saved there by write().save(path).")
        kind, params = cloudpickle.loads(content)
        if kind != cls.__name__:
            raise InvalidInputError(f"{path} holds a {kind}, and no {cls.__name__}.")
        return cls(**params)


class _Writer(MLWriter):
    def __init__(self, instance: Any) -> None:
        super().__init__()
        self._instance = instance

    def saveImpl(self, path: str) -> None:
        """Write it; a backend and a store belong to a session, and are given anew."""
        params = {param.name: value for param, value in self._instance._paramMap.items()}
        kept = {name: value for name, value in params.items() if name not in ("backend", "store")}
        open_storage(path).write(_FILE, cloudpickle.dumps((type(self._instance).__name__, kept)))

    def save(self, path: str) -> None:
        """Write it, unless something is there that is not to be replaced."""
        if not self.shouldOverwrite and open_storage(path).stat(_FILE) is not None:
            raise StoreError(f"{path} exists already: write().overwrite().save(path) replaces it.")
        self.saveImpl(path)


class _Reader(MLReader[Any]):
    def __init__(self, owner: Any) -> None:
        super().__init__()
        self._owner = owner

    def load(self, path: str) -> Any:
        return self._owner.load(path)


class HorovodEstimator(Settable, pyspark.ml.Estimator, _Saved):
    """Trains a network on the rows of a DataFrame."""

    def fit_on_parquet(self, params: Any = None, dataset_idx: int | None = None) -> Any:
        """Train with the Parquet files at the store's path for training; with those for validation, if there are.

        Raises:
            InvalidInputError: If there is no store, or no data in it.
        """
        if params:
            return self.copy(params).fit_on_parquet(dataset_idx=dataset_idx)
        store = self.getOrDefault("store")
        if store is None:
            raise InvalidInputError("fit_on_parquet reads from the store: give store=Store.create(prefix).")
        path, val_path = store.get_train_data_path(dataset_idx), store.get_val_data_path(dataset_idx)
        if not store.exists(path):
            raise InvalidInputError(f"There is no data to train with at {path}.")
        session = SparkSession.active()
        frame = session.read.parquet(path)
        if store.exists(val_path):
            flagged = session.read.parquet(val_path).withColumn(VALIDATION, F.lit(True))
            return self._train(frame.withColumn(VALIDATION, F.lit(False)).unionByName(flagged))
        return self._fit(frame)

    def _fit(self, dataset: DataFrame) -> Any:
        validation = self.getOrDefault("validation")
        if validation is None:
            return self._train(dataset)
        if isinstance(validation, str):
            if validation not in dataset.columns:
                raise InvalidInputError(f"validation={validation!r} is no column; there are {dataset.columns}.")
            return self._train(dataset.withColumn(VALIDATION, F.col(validation).cast("boolean")))
        if not 0 < validation < 1:
            raise InvalidInputError(f"validation={validation!r}; give a column, or a share between 0 and 1.")
        chosen = F.rand(self.getOrDefault("random_seed") or 0) < float(validation)
        return self._train(dataset.withColumn(VALIDATION, chosen))

    def _train(self, frame: DataFrame) -> Any:
        self._check(frame)
        plan = self._plan()
        columns = [*plan.feature_cols, *plan.label_cols, *([plan.sample_weight_col] if plan.sample_weight_col else [])]
        columns += [VALIDATION] if VALIDATION in frame.columns else []
        backend = self._backend()
        if backend.num_processes() > 1:
            # Ranks get shares in order: each must be a sample of all, drawn otherwise than the rows for validation.
            frame = frame.orderBy(F.rand((plan.random_seed or 0) + 1))
        estimator = Estimator(
            self._train_function(plan),
            _nothing,
            columns=list(dict.fromkeys(columns)),
            workers=backend.num_processes(),
            engine=backend.engine,
            name=self.getOrDefault("run_id") or type(self).__name__,
            seed=plan.random_seed,
            quiet=not self.getOrDefault("verbose"),
        )
        fitted = estimator.fit(frame)
        files = {name.rpartition("/")[2]: content for name, content in fitted.saved.files.items()}
        run_id = self.getOrDefault("run_id") or fitted.experiment
        store = self.getOrDefault("store")
        if store is not None and store.saving_runs():
            store.write(self._checkpoint_file(store, run_id), files["checkpoint"])
        common = {
            "history": json.loads(files["history.json"]),
            "run_id": run_id,
            "feature_columns": list(plan.feature_cols),
            "label_columns": list(plan.label_cols),
        }
        return self._model(files["checkpoint"], common)

    def _backend(self) -> Backend:
        backend: Backend | None = self.getOrDefault("backend")
        num_proc = self.getOrDefault("num_proc")
        if backend is not None and num_proc is not None:
            raise InvalidInputError("give backend or num_proc, not both: a backend knows how many ranks it has.")
        return backend or SparkBackend(num_proc)

    def _check(self, frame: DataFrame) -> None:
        mistakes = [
            f"{name} is missing" for name in ("model", "feature_cols", "label_cols") if self.getOrDefault(name) is None
        ]
        for name in ("feature_cols", "label_cols"):
            unknown = [column for column in self.getOrDefault(name) or () if column not in frame.columns]
            mistakes += [f"{name}: there is no column {column!r}; there are {frame.columns}" for column in unknown]
        passes = self.getOrDefault("backward_passes_per_step")
        if type(passes) is not int or passes < 1:
            mistakes.append(f"backward_passes_per_step must be a whole number of at least 1, not {passes!r}")
        if mistakes:
            raise InvalidInputError(f"{type(self).__name__} cannot train.", mistakes)

    def _earlier(self) -> bytes | None:
        """Return the checkpoint of an earlier run with the same id, with which training goes on."""
        store, run_id = self.getOrDefault("store"), self.getOrDefault("run_id")
        if store is None or run_id is None or not store.saving_runs():
            return None
        path = self._checkpoint_file(store, run_id)
        found: bytes | None = store.read(path) if store.exists(path) else None
        return found

    @staticmethod
    def _checkpoint_file(store: Any, run_id: str) -> str:
        return f"{store.get_checkpoint_path(run_id)}/{store.get_checkpoint_filename()}"

    @abstractmethod
    def _plan(self) -> Plan: ...

    @abstractmethod
    def _train_function(self, plan: Any) -> Callable[..., Any]: ...

    @abstractmethod
    def _model(self, checkpoint: bytes, common: dict[str, Any]) -> Any: ...


def _nothing(model: Any, batch: Any) -> Any:
    """Predict nothing: the models here know how."""


class HorovodModel(Settable, pyspark.ml.Model, _Saved):
    """A network that was fitted; `transform` adds a column for each of its outputs."""

    def getOutputCols(self) -> list[str]:
        """Return what the columns are called: like the labels, with `__output` behind, unless set otherwise."""
        found: list[str] | None = self.getOrDefault("output_cols")
        return found or [f"{label}__output" for label in self.getOrDefault("label_columns")]

    def _transform(self, dataset: DataFrame) -> DataFrame:
        predict, names = self._predict_function(), self.getOutputCols()
        frame = with_arrays(dataset)
        first = frame.first()
        if first is None:
            raise InvalidInputError("transform was given no rows: what a model returns is found out with one.")
        outputs = predict({name: [value] for name, value in first.asDict().items()})
        if len(outputs) != len(names):
            raise InvalidInputError(
                f"The model has {len(outputs)} outputs; setOutputCols was given {len(names)} names."
            )
        sizes = [int(np.prod(output.shape[1:], dtype=int)) for output in outputs]
        kinds = ["double" if size == 1 else "array<double>" for size in sizes]

        def as_columns(batch: Any) -> dict[str, Any]:
            rows = len(batch)
            flat = (output.reshape(rows, -1).astype("float64") for output in predict(batch))
            return {
                name: column[:, 0] if size == 1 else list(column)
                for name, column, size in zip(names, flat, sizes, strict=True)
            }

        ddl = ", ".join(f"`{name}` {kind}" for name, kind in zip(names, kinds, strict=True))
        answered = inference(as_columns, frame, output=ddl)
        vectors = {name: array_to_vector(answered[name]) for name, size in zip(names, sizes, strict=True) if size > 1}
        answered = answered.withColumns(vectors) if vectors else answered
        return self._like_labels(answered, dataset, [name for name in names if name not in vectors])

    def _like_labels(self, answered: DataFrame, dataset: DataFrame, scalars: list[str]) -> DataFrame:
        """Return single numbers as the type that their label has, whole numbers rounded, and vectors as they came."""
        types = {field.name: field.dataType.simpleString() for field in dataset.schema.fields}
        labels = dict(zip(self.getOutputCols(), self.getOrDefault("label_columns"), strict=False))
        changed = {}
        for name in scalars:
            kind = types.get(labels.get(name, ""), "double")
            if kind in ("tinyint", "smallint", "int", "bigint"):
                changed[name] = F.round(answered[name]).cast(kind)
            elif kind == "float":
                changed[name] = answered[name].cast(kind)
        for field in dataset.schema.fields:
            if field.dataType.simpleString() == "vector":
                changed[field.name] = array_to_vector(answered[field.name])
        return answered.withColumns(changed) if changed else answered

    @abstractmethod
    def _predict_function(self) -> Callable[[Any], list[Any]]: ...
