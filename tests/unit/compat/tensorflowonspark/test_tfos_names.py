"""Every name of TensorFlowOnSpark that scripts use is there, and its translation names something that exists."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Iterator
from typing import Any

import pytest

from cargobike import trial
from cargobike.compat.tensorflowonspark import TFSparkNode, gpu_info, reservation, util
from cargobike.compat.tensorflowonspark.names import TRANSLATIONS
from cargobike.compat.tensorflowonspark.params import HasBatchSize, HasInputMode, HasSteps
from cargobike.compat.tensorflowonspark.pipeline import Namespace, TFEstimator, TFModel, TFParams
from cargobike.core.errors import EngineError, InvalidInputError

MODULES = [
    *("TFCluster", "TFManager", "TFNode", "TFParallel", "TFSparkNode", "compat", "dfutil"),
    *("gpu_info", "marker", "pipeline", "reservation", "util"),
]

MADE_INSIDE = {
    "tensorflowonspark.TFNode.DataFeed.done_feeding",
    *(
        f"tensorflowonspark.TFSparkNode.TFNodeContext.{name}"
        for name in (
            *("job_name", "task_index", "worker_num", "executor_id", "num_workers", "cluster_spec"),
            *("defaultFS", "working_dir", "mgr", "tmp_socket"),
        )
    ),
}
"""What objects have and their classes do not."""


def resolve(path: str) -> Any:
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise AssertionError(path)


def names() -> Iterator[str]:
    yield from (translation.old for translation in TRANSLATIONS)


@pytest.mark.parametrize("old", [name for name in names() if name not in MADE_INSIDE])
def test_every_name_is_importable(old: str) -> None:
    assert resolve(f"cargobike.compat.{old}") is not None


def test_what_objects_have_is_there() -> None:
    ctx = TFSparkNode.TFNodeContext()
    known = {name.rpartition(".")[2] for name in MADE_INSIDE if "TFNodeContext" in name}
    assert known <= set(vars(ctx))


@pytest.mark.parametrize("new", sorted({one.new for one in TRANSLATIONS if one.new.startswith("cargobike.")}))
def test_every_translation_exists(new: str) -> None:
    if new.startswith("cargobike.trial."):
        assert hasattr(trial, new.rpartition(".")[2])
    else:
        assert resolve(new) is not None


def test_names_are_translated_once_and_their_arguments_exist() -> None:
    assert len(set(names())) == len(TRANSLATIONS)
    checked = 0
    for one in TRANSLATIONS:
        assert set(one.renamed) | one.dropped <= set(one.positional)
        if one.positional and one.old not in MADE_INSIDE:
            parameters = list(inspect.signature(resolve(f"cargobike.compat.{one.old}")).parameters)
            assert [name for name in parameters if name != "self"][: len(one.positional)] == list(one.positional)
            checked += 1
    assert checked > 40


@pytest.mark.parametrize("module", MODULES)
def test_modules_have_their_names(module: str) -> None:
    assert importlib.import_module(f"cargobike.compat.tensorflowonspark.{module}").__all__


def test_arguments_are_a_namespace_however_they_are_given() -> None:
    values = {"string": "foo", "integer": 1, "array": [1, 2], "map": {"a": 1}}
    one = Namespace(values)
    assert (one.string, one.integer, one.array, one.map) == ("foo", 1, [1, 2], {"a": 1})
    assert "string" in one
    assert "extra" not in one
    assert Namespace(one) == one
    assert sorted(one) == sorted(values)
    argv = ["--foo", "1"]
    assert Namespace(argv).argv == argv
    assert list(Namespace(argv)) == argv
    with pytest.raises(AttributeError, match="there is no argument 'nothing'"):
        _ = one.nothing
    with pytest.raises(InvalidInputError, match="give a dict, a Namespace, or a list"):
        Namespace(7)  # type: ignore[arg-type]


def test_parameters_are_merged_into_arguments() -> None:
    class Foo(TFParams, HasBatchSize, HasSteps):
        def __init__(self, args: Any) -> None:
            super().__init__()
            self.args = args

    foo = Foo(Namespace({"a": 1, "b": 2})).setBatchSize(10).setSteps(100)
    assert foo.merge_args_params() == Namespace({"a": 1, "b": 2, "batch_size": 10, "steps": 100})
    assert foo.args == Namespace({"a": 1, "b": 2})


def test_estimators_have_the_defaults_that_they_had() -> None:
    estimator = TFEstimator(lambda args, ctx: None, {"a": 1})
    wanted = {
        "BatchSize": 100,
        "ClusterSize": 1,
        "Epochs": 1,
        "Steps": 1000,
        "Readers": 1,
        "NumPS": 0,
        "DriverPSNodes": False,
        "InputMapping": {},
        "InputMode": 1,
        "MasterNode": "chief",
        "Protocol": "grpc",
        "Tensorboard": False,
        "ModelDir": None,
        "ExportDir": None,
        "TFRecordDir": None,
        "GraceSecs": 30,
    }
    for name, value in wanted.items():
        assert getattr(estimator, f"get{name}")() == value, name
    model = TFModel({})
    assert (model.getBatchSize(), model.getSignatureDefKey(), model.getTagSet()) == (100, None, None)
    assert model.setOutputMapping({"dense": "cout"}).getOutputMapping() == {"dense": "cout"}
    with pytest.raises(InvalidInputError, match=r"InputMode\.TENSORFLOW cannot be set"):
        HasInputMode.setInputMode(estimator, 0)
    with pytest.raises(TypeError, match="give a dict such as"):
        estimator.setInputMapping("x")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="export_fn is of TensorFlow 1"):
        TFEstimator(lambda args, ctx: None, {}, export_fn=print)


def test_gpus_are_those_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cargobike.devices.get_gpus", lambda: ("4", "5", "6"))
    monkeypatch.setattr("cargobike.devices.get_num_gpus", lambda: 3)
    assert gpu_info.get_gpus(2) == "4,5"
    assert gpu_info.get_gpus(1, 2, gpu_info.AS_LIST) == ["6"]
    assert gpu_info.get_gpus(2, 1) == "6,4"
    with pytest.raises(EngineError, match="4 GPUs were asked for, and this process may use 3"):
        gpu_info.get_gpus(4)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "x")
    util.single_node_env(1, 1)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "5"


def test_the_end_of_a_stream_is_asked_for_by_those_who_know_the_key() -> None:
    desk = reservation.Desk("127.0.0.1")
    try:
        assert not desk.stop_wanted
        with pytest.raises(EngineError, match="does not know this cluster's secret"):
            reservation.Client(desk.address, key="00" * 32).request_stop()
        client = reservation.Client(desk.address)
        client.request_stop()
        assert desk._receiver.end_wanted.wait(20.0)
        client.close()
    finally:
        desk.close()
    with pytest.raises(InvalidInputError, match="No key is known for 127"):
        reservation.Client(desk.address)
