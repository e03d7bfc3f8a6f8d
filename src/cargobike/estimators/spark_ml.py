"""A train function as an estimator of pyspark.ml, and what it fitted as a model."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import pyspark.ml
from pyspark.ml.functions import vector_to_array
from pyspark.ml.linalg import VectorUDT
from pyspark.ml.param import Param, Params
from pyspark.ml.param.shared import HasPredictionCol
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter
from pyspark.sql import DataFrame, SparkSession

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Resources
from cargobike.core.values.times import Seconds
from cargobike.core.version import __version__
from cargobike.data.front import inference
from cargobike.engines.engine import Engine
from cargobike.engines.spark.engine import SparkEngine
from cargobike.estimators.fitting import Predict, Run, Train, check_names, fit, hyperparameters
from cargobike.estimators.saved_state import (
    SavedState,
    batch_function,
    check_trusted,
    read_functions,
    write_functions,
)
from cargobike.store.files.storage import Storage
from cargobike.store.files.storages import open_storage

_SETTINGS = frozenset(inspect.signature(Run).parameters) | {
    *("train", "predict", "columns", "predictionCol", "output", "params", "uid", "run")
}
"""What the estimator itself calls so; parameters of the train function need other names."""


class Estimator(pyspark.ml.Estimator, HasPredictionCol, MLWritable, MLReadable):
    """Fit a train function through a tracked run, on the rows of a Spark DataFrame.

    Parameters of the function are `Param`s of the estimator, such as `estimator.lr`: for `fit(df, {…})`, pipelines and
    `ParamGridBuilder`.

    Args:
        train: `train(data, **params)`: saves its model with `trial.checkpoint.save(model)`, and returns a score. It
            gets the rows as every train function does; with several workers each its share.
        predict: `predict(model, batch)`: returns one value for each row of a pandas DataFrame.
        columns: Which columns the train function gets; by default all. Vectors of pyspark.ml become arrays.
        predictionCol: What the column of the predictions is called.
        output: The type of a prediction, such as `"double"`; by default some rows are tried to find out.
        workers: How many ranks train together.
        engine: Where they live: `"spark"` for the executors of the DataFrame's session, `"local"` for this machine.
        resources: What each of them gets, as in `experiment.launch`.
        name: What the experiments are called; by default like the function.
        seed: For the train function.
        timeout_s: End training after this time.
        quiet: Show no progress.
        params: Parameters of the train function.
    """

    def __init__(
        self,
        train: Train,
        predict: Predict,
        *,
        columns: Sequence[str] | None = None,
        predictionCol: str = "prediction",
        output: str | None = None,
        workers: int = 1,
        engine: str | Engine = "spark",
        resources: Resources | Mapping[str, Any] | None = None,
        name: str = "",
        seed: int | None = None,
        timeout_s: Seconds | None = None,
        quiet: bool = True,
        **params: Any,
    ) -> None:
        super().__init__()
        named, _ = hyperparameters(train)
        check_names(train, params, _SETTINGS | {name for name in named if hasattr(type(self), name)})
        self.train, self.predict = train, predict
        self.columns = None if columns is None else list(columns)
        self.output = output
        self.engine, self.run = engine, Run(workers, "local", name, seed, timeout_s, quiet, resources)
        self._declare(named, params)
        self._set(predictionCol=predictionCol)

    def _declare(self, named: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        """Make a `Param` of each parameter of the train function."""
        for name in {**named, **given}:
            param = Param(Params._dummy(), name, f"parameter {name!r} of the train function")
            setattr(self, name, param._copy_new_parent(self))
        defaults = {name: value for name, value in named.items() if value is not inspect.Parameter.empty}
        self._setDefault(**defaults)
        self._set(**given)
        self._names = sorted({**named, **given})

    def _fit(self, dataset: DataFrame) -> Model:
        engine = SparkEngine(dataset.sparkSession) if self.engine == "spark" else self.engine
        values = {name: self.getOrDefault(name) for name in self._names if self.isDefined(name)}
        frame = with_arrays(dataset if self.columns is None else dataset.select(*self.columns))
        fitted = fit(self.train, values, frame, self.run.on(engine))
        model = Model(self.predict, SavedState.of(fitted.checkpoint), output=self.output)
        model.experiment, model.value = fitted.experiment, fitted.value
        model._set(predictionCol=self.getPredictionCol())
        return model

    def write(self) -> MLWriter:
        """Return what saves the estimator, for pipelines: its parameters as JSON, its functions pickled."""
        return _EstimatorWriter(self)

    @classmethod
    def read(cls) -> MLReader[Estimator]:
        """Return what loads one inside `trusting()`."""
        return _Reader(cls)

    @classmethod
    def load(
        cls, path: str, *, train: Train | None = None, predict: Predict | None = None, trust: bool = False
    ) -> Estimator:
        """Load an estimator that was saved.

        Args:
            path: Where.
            train: The function; with `predict`, instead of those that were saved.
            predict: The function.
            trust: Whether the writer is trusted: functions that were saved can run any code.

        Raises:
            InvalidInputError: If functions would be loaded from a writer who is not trusted.
        """
        metadata, storage = _metadata(path, "cargobike.spark.Estimator")
        if train is None or predict is None:
            check_trusted(path, trust, "Or give the functions: Estimator.load(path, train=train, predict=predict)")
            functions = read_functions(storage)
            train, predict = train or functions["train"], predict or functions["predict"]
        told = metadata["cargobike"]
        estimator = cls(train, predict, columns=told["columns"], output=told["output"], **told["run"])
        estimator._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(estimator, metadata)
        return estimator


class Model(pyspark.ml.Model, HasPredictionCol, MLWritable, MLReadable):
    """Predicts for every row of a DataFrame with what a train function saved.

    Args:
        predict: `predict(model, batch)`.
        saved: What the train function saved.
        output: The type of a prediction; by default some rows are tried to find out.

    Attributes:
        experiment: The id of the experiment that trained it.
        value: What the train function returned.
    """

    def __init__(self, predict: Predict, saved: SavedState, *, output: str | None = None) -> None:
        super().__init__()
        self.predict, self.saved, self.output = predict, saved, output
        self.experiment = ""
        self.value: Any = None

    def _transform(self, dataset: DataFrame) -> DataFrame:
        name = self.getPredictionCol()
        output = self.output
        if output is not None and " " not in output.strip() and ":" not in output:
            output = f"`{name}` {output}"
        function = batch_function(self.predict, self.saved, self.saved.load())
        answered = inference(function, with_arrays(dataset), output=output)
        return answered if output is not None else answered.withColumnRenamed("prediction", name)

    def write(self) -> MLWriter:
        """Return what saves the model: parameters as JSON, its state as the checkpoint's files, `predict` pickled."""
        return _ModelWriter(self)

    @classmethod
    def read(cls) -> MLReader[Model]:
        """Return what loads one inside `trusting()`."""
        return _Reader(cls)

    @classmethod
    def load(cls, path: str, *, predict: Predict | None = None, trust: bool = False) -> Model:
        """Load a model that was saved.

        Args:
            path: Where.
            predict: The function, instead of the one that was saved. A state that is bytes or files then runs no code.
            trust: Whether the writer is trusted: pickled states and functions can run any code.

        Raises:
            InvalidInputError: If something that can run code would be loaded from a writer who is not trusted.
        """
        metadata, storage = _metadata(path, "cargobike.spark.Model")
        told = metadata["cargobike"]
        saved = SavedState.read(storage, told["state"])
        if predict is None or saved.runs_code:
            otherwise = (
                "Or give the function: Model.load(path, predict=predict)"
                if not saved.runs_code
                else "Or have the train function save bytes or files, which are no pickles"
            )
            check_trusted(path, trust, otherwise)
        model = cls(predict or read_functions(storage)["predict"], saved, output=told["output"])
        model.experiment, model.value = told["experiment"], told["value"]
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model


for _public in (Estimator, Model):
    _public.__module__ = "cargobike.spark"  # what is saved names the class, and is found by that name


class _EstimatorWriter(MLWriter):
    def __init__(self, estimator: Estimator) -> None:
        super().__init__()
        self._estimator = estimator

    def saveImpl(self, path: str) -> None:
        estimator = self._estimator
        if not isinstance(estimator.engine, str):
            raise InvalidInputError("An estimator is saved with the name of its engine; give one, such as 'spark'.")
        run = {**estimator.run.described(), "engine": estimator.engine}
        told = {"columns": estimator.columns, "output": estimator.output, "run": run}
        extra = {"cargobike": {"version": __version__, **told}}
        DefaultParamsWriter.saveMetadata(estimator, path, self.sparkSession, extraMetadata=extra)
        write_functions(_storage(path), {"train": estimator.train, "predict": estimator.predict})


class _ModelWriter(MLWriter):
    def __init__(self, model: Model) -> None:
        super().__init__()
        self._model = model

    def saveImpl(self, path: str) -> None:
        model = self._model
        told = {"output": model.output, "experiment": model.experiment, "value": model.value}
        extra = {"cargobike": {"version": __version__, **told, "state": model.saved.described()}}
        DefaultParamsWriter.saveMetadata(model, path, self.sparkSession, extraMetadata=extra)
        storage = _storage(path)
        model.saved.write(storage)
        write_functions(storage, {"predict": model.predict})


class _Reader(MLReader[Any]):
    def __init__(self, owner: type[Estimator | Model]) -> None:
        super().__init__()
        self._owner = owner

    def load(self, path: str) -> Any:
        return self._owner.load(path)


def _metadata(path: str, expected: str) -> tuple[dict[str, Any], Storage]:
    session = SparkSession.active()
    metadata = DefaultParamsReader.loadMetadata(path, session)
    if metadata["class"] != expected:
        raise InvalidInputError(f"{path} holds a {metadata['class']}, and no {expected}.")
    return metadata, _storage(path)


def _storage(path: str) -> Storage:
    """Open the place that Spark means by a path, which depends on its settings."""
    session = SparkSession.active()
    java = session._jvm
    where = java.org.apache.hadoop.fs.Path(path)
    settings = session._jsc.hadoopConfiguration()
    url = str(where.getFileSystem(settings).makeQualified(where).toString())
    if url.startswith("file:/") and not url.startswith("file://"):
        url = f"file://{url.removeprefix('file:')}"
    return open_storage(url)


def with_arrays(frame: DataFrame) -> DataFrame:
    """Return a DataFrame whose vectors are arrays: only those of pyspark.ml know vectors."""
    vectors = [field.name for field in frame.schema.fields if isinstance(field.dataType, VectorUDT)]
    return frame.withColumns({name: vector_to_array(frame[name]) for name in vectors}) if vectors else frame
