from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cargobike import devices


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment that says nothing about devices."""
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CARGOBIKE_FAKE_GPUS", "CARGOBIKE_CPUS"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_outside_an_experiment_the_machine_counts(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("CARGOBIKE_FAKE_GPUS", "0,1")
    assert devices.get_gpus() == ("0", "1")
    assert devices.get_num_gpus() == 2


@pytest.mark.parametrize(("given", "expected"), [("1", ("1",)), ("", ()), ("0,1", ("0", "1"))])
def test_a_worker_sees_what_it_was_given(bare: pytest.MonkeyPatch, given: str, expected: tuple[str, ...]) -> None:
    bare.setenv("CARGOBIKE_FAKE_GPUS", "0,1,2")
    bare.setenv("CUDA_VISIBLE_DEVICES", given)
    assert devices.get_gpus() == expected
    assert devices.get_num_gpus() == len(expected)


def test_a_worker_has_its_share_of_the_cores(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("CARGOBIKE_CPUS", "3")
    assert devices.get_num_cpus() == 3


@pytest.mark.parametrize("nonsense", ["", "0", "-2", "many"])
def test_without_a_usable_share_all_cores_that_may_be_used_count(bare: pytest.MonkeyPatch, nonsense: str) -> None:
    bare.setenv("CARGOBIKE_CPUS", nonsense)
    assert devices.get_num_cpus() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(("gpus", "expected"), [("0", "cuda"), ("", "cpu")])
def test_the_accelerator_is_known_without_torch(gpus: str, expected: str) -> None:
    program = (
        "import sys; from cargobike import devices; print(devices.accelerator());assert 'torch' not in sys.modules"
    )
    environ = {**os.environ, "CUDA_VISIBLE_DEVICES": gpus, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected


def test_a_torch_without_gpu_support_computes_on_the_processor(bare: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    if torch.version.cuda or torch.version.hip:
        pytest.skip("this torch can use GPUs")
    bare.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert devices.accelerator() == "cpu"
