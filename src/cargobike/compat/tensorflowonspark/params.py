"""The parameters of estimators and models: one class for each, as `pyspark.ml` wants them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.ml.param import Param, Params, TypeConverters

from cargobike.core.errors import InvalidInputError

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
    "TFTypeConverters",
]

_NOT_FED = 0


class TFTypeConverters:
    """Types that `pyspark.ml` has no converter for."""

    @staticmethod
    def toDict(value: object) -> dict[str, str]:
        """Return a dict, or refuse."""
        if not isinstance(value, dict):
            raise TypeError(f"{value!r} was given; give a dict such as {{'column': 'tensor'}}")
        return value


def _param(name: str, words: str, convert: Callable[[Any], Any]) -> Any:
    return Param(Params._dummy(), name, words, typeConverter=convert)


class HasBatchSize(Params):
    """Rows in a batch."""

    batch_size = _param("batch_size", "Rows in a batch.", TypeConverters.toInt)

    def setBatchSize(self, value: int) -> Any:
        """Set it."""
        return self._set(batch_size=value)

    def getBatchSize(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.batch_size)


class HasClusterSize(Params):
    """Nodes of the cluster."""

    cluster_size = _param("cluster_size", "Nodes of the cluster.", TypeConverters.toInt)

    def setClusterSize(self, value: int) -> Any:
        """Set it."""
        return self._set(cluster_size=value)

    def getClusterSize(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.cluster_size)


class HasEpochs(Params):
    """How often rows are fed."""

    epochs = _param("epochs", "How often rows are fed.", TypeConverters.toInt)

    def setEpochs(self, value: int) -> Any:
        """Set it."""
        return self._set(epochs=value)

    def getEpochs(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.epochs)


class HasGraceSecs(Params):
    """Only there because it was: functions are waited for."""

    grace_secs = _param("grace_secs", "Only there because it was: functions are waited for.", TypeConverters.toInt)

    def setGraceSecs(self, value: int) -> Any:
        """Set it."""
        return self._set(grace_secs=value)

    def getGraceSecs(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.grace_secs)


class HasInputMapping(Params):
    """Input column to input tensor."""

    input_mapping = _param("input_mapping", "Input column to input tensor.", TFTypeConverters.toDict)

    def setInputMapping(self, value: Mapping[str, str]) -> Any:
        """Set it."""
        return self._set(input_mapping=value)

    def getInputMapping(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.input_mapping)


class HasInputMode(Params):
    """How rows come: an estimator always feeds them."""

    input_mode = _param("input_mode", "How rows come: an estimator always feeds them.", TypeConverters.toInt)

    def setInputMode(self, value: int) -> Any:
        """Set it."""
        if value == _NOT_FED:
            raise InvalidInputError("An estimator feeds the rows of its DataFrame; InputMode.TENSORFLOW cannot be set.")
        return self._set(input_mode=value)

    def getInputMode(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.input_mode)


class HasMasterNode(Params):
    """What the first training node is called."""

    master_node = _param("master_node", "What the first training node is called.", TypeConverters.toString)

    def setMasterNode(self, value: str) -> Any:
        """Set it."""
        return self._set(master_node=value)

    def getMasterNode(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.master_node)


class HasModelDir(Params):
    """Where checkpoints are."""

    model_dir = _param("model_dir", "Where checkpoints are.", TypeConverters.toString)

    def setModelDir(self, value: str) -> Any:
        """Set it."""
        return self._set(model_dir=value)

    def getModelDir(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.model_dir)


class HasNumPS(Params):
    """Nodes that are parameter servers."""

    num_ps = _param("num_ps", "Nodes that are parameter servers.", TypeConverters.toInt)
    driver_ps_nodes = _param("driver_ps_nodes", "Only there because it was.", TypeConverters.toBoolean)

    def setNumPS(self, value: int) -> Any:
        """Set it."""
        return self._set(num_ps=value)

    def getNumPS(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.num_ps)

    def setDriverPSNodes(self, value: bool) -> Any:
        """Set it."""
        return self._set(driver_ps_nodes=value)

    def getDriverPSNodes(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.driver_ps_nodes)


class HasOutputMapping(Params):
    """Output tensor to output column."""

    output_mapping = _param("output_mapping", "Output tensor to output column.", TFTypeConverters.toDict)

    def setOutputMapping(self, value: Mapping[str, str]) -> Any:
        """Set it."""
        return self._set(output_mapping=value)

    def getOutputMapping(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.output_mapping)


class HasProtocol(Params):
    """Only there because it was: TensorFlow has grpc alone."""

    protocol = _param("protocol", "Only there because it was: TensorFlow has grpc alone.", TypeConverters.toString)

    def setProtocol(self, value: str) -> Any:
        """Set it."""
        return self._set(protocol=value)

    def getProtocol(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.protocol)


class HasReaders(Params):
    """For the function; nothing here reads it."""

    readers = _param("readers", "For the function; nothing here reads it.", TypeConverters.toInt)

    def setReaders(self, value: int) -> Any:
        """Set it."""
        return self._set(readers=value)

    def getReaders(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.readers)


class HasSteps(Params):
    """For the function; nothing here reads it."""

    steps = _param("steps", "For the function; nothing here reads it.", TypeConverters.toInt)

    def setSteps(self, value: int) -> Any:
        """Set it."""
        return self._set(steps=value)

    def getSteps(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.steps)


class HasTensorboard(Params):
    """Whether to start TensorBoard on the model's folder."""

    tensorboard = _param("tensorboard", "Whether to start TensorBoard on the model's folder.", TypeConverters.toBoolean)

    def setTensorboard(self, value: bool) -> Any:
        """Set it."""
        return self._set(tensorboard=value)

    def getTensorboard(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.tensorboard)


class HasTFRecordDir(Params):
    """For the function; nothing here reads it."""

    tfrecord_dir = _param("tfrecord_dir", "For the function; nothing here reads it.", TypeConverters.toString)

    def setTFRecordDir(self, value: str) -> Any:
        """Set it."""
        return self._set(tfrecord_dir=value)

    def getTFRecordDir(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.tfrecord_dir)


class HasExportDir(Params):
    """Where the saved model is."""

    export_dir = _param("export_dir", "Where the saved model is.", TypeConverters.toString)

    def setExportDir(self, value: str) -> Any:
        """Set it."""
        return self._set(export_dir=value)

    def getExportDir(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.export_dir)


class HasSignatureDefKey(Params):
    """Which signature of the saved model predicts."""

    signature_def_key = _param("signature_def_key", "Which signature predicts.", TypeConverters.toString)

    def setSignatureDefKey(self, value: str) -> Any:
        """Set it."""
        return self._set(signature_def_key=value)

    def getSignatureDefKey(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.signature_def_key)


class HasTagSet(Params):
    """Tags of the saved model, with commas between."""

    tag_set = _param("tag_set", "Tags of the saved model, with commas between.", TypeConverters.toString)

    def setTagSet(self, value: str) -> Any:
        """Set it."""
        return self._set(tag_set=value)

    def getTagSet(self) -> Any:
        """Return it."""
        return self.getOrDefault(self.tag_set)
