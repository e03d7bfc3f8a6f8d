"""Every name of Horovod for TensorFlow, Keras and Spark's Estimators is there, or says why it is not."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from cargobike.compat.horovod.names_keras import KERAS


def resolve(old: str) -> Any:
    parts = ["cargobike", "compat", *old.split(".")]
    for length in range(len(parts), 3, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            found = getattr(found, name)
        return found
    raise AssertionError(f"there is no module for {old}")


@pytest.mark.timeout(120)
def test_each_name_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    names = [translation.old for translation in KERAS]
    assert len(names) == len(set(names)) > 80
    assert all(resolve(old) is not None for old in names)
    compute_service = resolve("horovod.tensorflow.data.compute_service")
    with pytest.raises(ValueError, match="as_tf_dataset"):
        compute_service.tf_data_service  # noqa: B018 - asking for it is what raises


@pytest.mark.timeout(120)
@pytest.mark.parametrize("module", ["horovod.tensorflow", "horovod.tensorflow.keras", "horovod.keras"])
def test_what_all_front_ends_have_is_there(module: str) -> None:
    found = resolve(module)
    shared = "init shutdown is_initialized rank size local_rank local_size cross_rank cross_size is_homogeneous"
    shared += " Average Sum Adasum Min Max Product Compression ProcessSet global_process_set add_process_set"
    shared += " remove_process_set start_timeline stop_timeline nccl_built gloo_built mpi_built cuda_built rocm_built"
    shared += " ccl_built ddl_built mpi_enabled gloo_enabled mpi_threads_supported elastic allreduce broadcast"
    missing = [name for name in shared.split() if not hasattr(found, name)]
    assert missing == []
    assert set(shared.split()) <= set(found.__all__)
