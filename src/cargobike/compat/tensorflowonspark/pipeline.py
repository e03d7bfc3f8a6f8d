"""Estimators and models of `pyspark.ml` whose train functions are those of TensorFlowOnSpark."""

from __future__ import annotations

import argparse
import copy
from collections.abc import Iterator, Mapping
from typing import Any

import pyspark.ml
from pyspark.ml.param import Params
from pyspark.sql import DataFrame

from cargobike.compat.noticing import notice
from cargobike.compat.tensorflowonspark import TFCluster
from cargobike.compat.tensorflowonspark.params import (
    HasBatchSize,
    HasClusterSize,
    HasEpochs,
    HasExportDir,
    HasGraceSecs,
    HasInputMapping,
    HasInputMode,
    HasMasterNode,
    HasModelDir,
    HasNumPS,
    HasOutputMapping,
    HasProtocol,
    HasReaders,
    HasSignatureDefKey,
    HasSteps,
    HasTagSet,
    HasTensorboard,
    HasTFRecordDir,
    TFTypeConverters,
)
from cargobike.compat.tensorflowonspark.saved_models import SavedModel
from cargobike.core.errors import InvalidInputError
from cargobike.data.front import inference
from cargobike.estimators.spark_ml import with_arrays

__all__ = [
    "HasBatchSize",
    "HasClusterSize",
    "HasEpochs",
    "HasExportDir",
    "HasGraceSecs",
    "HasInputMapping",
    "HasInputMode",
    "HasMasterNode",
    "HasModelDir",
    "HasNumPS",
    "HasOutputMapping",
    "HasProtocol",
    "HasReaders",
    "HasSignatureDefKey",
    "HasSteps",
    "HasTFRecordDir",
    "HasTagSet",
    "HasTensorboard",
    "Namespace",
    "TFEstimator",
    "TFModel",
    "TFParams",
    "TFTypeConverters",
]


class Namespace:
    """Arguments as attributes, from a dict, another namespace, or a list as in `sys.argv`.

    Example:
        >>> Namespace({"steps": 10}).steps
        10
    """

    argv: list[str] | None = None

    def __init__(self, d: Mapping[str, Any] | argparse.Namespace | Namespace | list[str]) -> None:
        if isinstance(d, list):
            self.argv = d
        elif isinstance(d, Mapping):
            self.__dict__.update(d)
        elif isinstance(d, argparse.Namespace | Namespace):
            self.__dict__.update(vars(d))
        else:
            raise InvalidInputError(f"{d!r} was given as arguments; give a dict, a Namespace, or a list of texts.")

    def __iter__(self) -> Iterator[str]:
        return iter(self.argv or list(vars(self)))

    def __contains__(self, name: object) -> bool:
        return name in (self.argv or vars(self))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no argument {name!r}")

    def __repr__(self) -> str:
        if self.argv:
            return repr(self.argv)
        return f"Namespace({', '.join(f'{name}={value!r}' for name, value in sorted(vars(self).items()))})"

    def __eq__(self, other: object) -> bool:
        if self.argv:
            return self.argv == (other.argv if isinstance(other, Namespace) else other)
        return isinstance(other, Namespace) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class TFParams(Params):
    """Arguments of a function, together with parameters of `pyspark.ml`."""

    args: Any = None

    def merge_args_params(self) -> Any:
        """Return a copy of the arguments in which all parameters are, too."""
        merged = copy.copy(self.args)
        for param in self.params:
            setattr(merged, param.name, self.getOrDefault(param.name))
        return merged


class TFEstimator(
    pyspark.ml.Estimator,
    TFParams,
    HasInputMapping,
    HasClusterSize,
    HasNumPS,
    HasInputMode,
    HasMasterNode,
    HasProtocol,
    HasGraceSecs,
    HasTensorboard,
    HasModelDir,
    HasExportDir,
    HasTFRecordDir,
    HasBatchSize,
    HasEpochs,
    HasReaders,
    HasSteps,
):
    """Trains a function on a cluster that is fed with the mapped columns of a DataFrame, in sorted order.

    Args:
        train_fn: `train_fn(args, ctx)`, which writes its model to `args.export_dir`.
        tf_args: Its arguments; parameters are added to them.
        export_fn: Of TensorFlow 1; refused.
    """

    def __init__(self, train_fn: Any, tf_args: Any, export_fn: object = None) -> None:
        super().__init__()
        notice("tensorflowonspark.pipeline.TFEstimator")
        if export_fn is not None:
            raise InvalidInputError(
                "export_fn is of TensorFlow 1. Have the train function write its model: "
                "compat.export_saved_model(model, args.export_dir, ctx.job_name == 'chief')."
            )
        self.train_fn, self.args = train_fn, Namespace(tf_args)
        self._setDefault(
            input_mapping={},
            cluster_size=1,
            num_ps=0,
            driver_ps_nodes=False,
            input_mode=TFCluster.InputMode.SPARK,
            master_node="chief",
            protocol="grpc",
            tensorboard=False,
            model_dir=None,
            export_dir=None,
            tfrecord_dir=None,
            batch_size=100,
            epochs=1,
            readers=1,
            steps=1000,
            grace_secs=30,
        )

    def _fit(self, dataset: DataFrame) -> TFModel:
        merged = self.merge_args_params()
        columns = sorted(self.getInputMapping()) or dataset.columns
        cluster = TFCluster.run(
            dataset.sparkSession,
            self.train_fn,
            self.args.argv or merged,
            merged.cluster_size,
            merged.num_ps,
            merged.tensorboard,
            TFCluster.InputMode.SPARK,
            log_dir=merged.model_dir,
            master_node=merged.master_node,
        )
        with cluster:
            cluster.train(dataset.select(*columns), merged.epochs)
        model: TFModel = self._copyValues(TFModel(self.args))
        return model


class TFModel(
    pyspark.ml.Model,
    TFParams,
    HasInputMapping,
    HasOutputMapping,
    HasBatchSize,
    HasModelDir,
    HasExportDir,
    HasSignatureDefKey,
    HasTagSet,
):
    """Predicts with a saved model of TensorFlow, on executors; the result has the mapped output columns only.

    Args:
        tf_args: Arguments, of which nothing is used but what parameters say.
    """

    def __init__(self, tf_args: Any) -> None:
        super().__init__()
        self.args = Namespace(tf_args)
        self._setDefault(
            input_mapping={},
            output_mapping={},
            batch_size=100,
            model_dir=None,
            export_dir=None,
            signature_def_key=None,
            tag_set=None,
        )

    def _transform(self, dataset: DataFrame) -> DataFrame:
        inputs, outputs = self.getInputMapping(), self.getOutputMapping()
        folder = self.getExportDir() or self.getModelDir()
        mistakes = [] if folder else ["setExportDir(…): where the saved model is"]
        mistakes += [] if inputs else ["setInputMapping({column: tensor})"]
        mistakes += [] if outputs else ["setOutputMapping({tensor: column})"]
        if mistakes:
            raise InvalidInputError("The model cannot predict before it is told:", mistakes)
        predict = SavedModel(folder, self.getTagSet(), self.getSignatureDefKey(), inputs, outputs)
        frame = with_arrays(dataset.select(*sorted(inputs)))
        answered = inference(predict, frame, form="arrow", batch_size=self.getBatchSize())
        names = [column for _, column in sorted(outputs.items())]
        return answered.select(*(answered[predict.hidden(name)].alias(name) for name in names))
