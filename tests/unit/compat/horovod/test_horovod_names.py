"""Every name of Horovod that scripts use is there, or says what stands in its place."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest

import cargobike.compat.horovod.torch as hvd
from cargobike.compat.horovod.names_torch import TORCH
from cargobike.torch import rank, world_size

NAMES = [one.old.rpartition(".")[2] for one in TORCH if one.old.startswith("horovod.torch.")]
PATHS = {
    "mpi_ops": ("allreduce", "rank", "Average", "HorovodInternalError", "synchronize"),
    "functions": ("broadcast_object", "broadcast_parameters", "broadcast_optimizer_state", "allgather_object"),
    "optimizer": ("DistributedOptimizer",),
    "compression": ("Compression",),
    "sync_batch_norm": ("SyncBatchNorm",),
}


@pytest.fixture(autouse=True)
def leaving() -> Iterator[None]:
    yield
    hvd.shutdown()


@pytest.mark.parametrize("name", NAMES)
def test_names_are_there(name: str) -> None:
    assert hasattr(hvd, name)


def test_translations_cover_all_that_is_there() -> None:
    assert set(hvd.__all__) - {"ReduceOp", "elastic"} == set(NAMES)


@pytest.mark.parametrize("module", PATHS)
def test_names_are_found_by_path(module: str) -> None:
    found = importlib.import_module(f"cargobike.compat.horovod.torch.{module}")
    for name in PATHS[module]:
        assert getattr(found, name) is getattr(hvd, name)


def test_what_was_built_in_is_told() -> None:
    assert (hvd.gloo_built(), hvd.gloo_enabled()) == (True, True)
    assert not any((hvd.mpi_built(), hvd.mpi_enabled(), hvd.mpi_threads_supported(), hvd.ccl_built(), hvd.ddl_built()))


def test_same_calls_give_the_same() -> None:
    hvd.init()
    assert (hvd.rank(), hvd.size()) == (rank(), world_size())


@pytest.mark.parametrize("module", ["horovod.mxnet", "horovod.ray"])
def test_front_ends_that_are_not_there_say_why(module: str) -> None:
    with pytest.raises(ImportError, match=r"experiment\.allreduce|torch or Keras"):
        importlib.import_module(f"cargobike.compat.{module}")
