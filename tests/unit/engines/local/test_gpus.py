from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.errors import EngineError, InvalidInputError
from cargobike.engines.local.gpus import GpuPool, detect_gpus


def nowhere(tmp_path: Path) -> Path:
    """A machine without any GPU."""
    return tmp_path / "empty"


def add_nvidia(root: Path, count: int) -> Path:
    for index in range(count):
        (root / f"proc/driver/nvidia/gpus/0000:0{index}:00.0").mkdir(parents=True)
    return root


def add_rocm(root: Path, simd_counts: list[int]) -> Path:
    for index, simd_count in enumerate(simd_counts):
        node = root / f"sys/class/kfd/kfd/topology/nodes/{index}"
        node.mkdir(parents=True)
        (node / "properties").write_text(f"cpu_cores_count {8 if not simd_count else 0}\nsimd_count {simd_count}\n")
    return root


def add_nvidia_smi(folder: Path, script: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize("variable", ["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", ()),
        ("-1", ()),
        ("NoDevFiles", ()),
        ("0", ("0",)),
        (" 2 , 0 ", ("2", "0")),
        ("0,-1,1", ("0",)),
        ("1,1", ("1",)),
        ("GPU-8932f937,MIG-1b2c", ("GPU-8932f937", "MIG-1b2c")),
    ],
)
def test_a_variable_that_limits_devices_is_read_as_the_driver_reads_it(
    variable: str, value: str, expected: tuple[str, ...], tmp_path: Path
) -> None:
    assert detect_gpus(environ={variable: value}, root=add_nvidia(tmp_path, 8)) == expected


def test_a_limit_holds_for_fake_devices_too_so_that_a_worker_sees_only_its_own() -> None:
    fakes = {"CARGOBIKE_FAKE_GPUS": "0,1,2"}
    assert detect_gpus(environ=fakes) == ("0", "1", "2")
    assert detect_gpus(environ={**fakes, "CUDA_VISIBLE_DEVICES": "1"}) == ("1",)
    assert detect_gpus(environ={**fakes, "CUDA_VISIBLE_DEVICES": ""}) == ()


def test_a_machine_without_gpus_has_none(tmp_path: Path) -> None:
    assert detect_gpus(environ={"PATH": ""}, root=nowhere(tmp_path)) == ()


def test_the_nvidia_driver_lists_its_devices(tmp_path: Path) -> None:
    assert detect_gpus(environ={"PATH": ""}, root=add_nvidia(tmp_path, 3)) == ("0", "1", "2")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("all", ("0", "1")),
        ("void", ("0", "1")),
        ("none", ()),
        ("", ()),
        ("6,7", ("0", "1")),
        ("GPU-1f", ("GPU-1f",)),
    ],
)
def test_a_container_renumbers_what_it_was_given(value: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    environ = {"NVIDIA_VISIBLE_DEVICES": value, "PATH": ""}
    assert detect_gpus(environ=environ, root=add_nvidia(tmp_path, 2)) == expected


def test_nvidia_smi_is_asked_where_the_driver_shows_no_files(tmp_path: Path) -> None:
    path = add_nvidia_smi(tmp_path / "bin", 'test "$1" = --query-gpu=index && printf "0\\n1\\n"')
    assert detect_gpus(environ={"PATH": path}, root=nowhere(tmp_path)) == ("0", "1")


@pytest.mark.parametrize("script", ["exit 9", "echo No devices were found", "kill -9 $$"])
def test_an_nvidia_smi_that_fails_means_no_gpus(script: str, tmp_path: Path) -> None:
    path = add_nvidia_smi(tmp_path / "bin", script)
    assert detect_gpus(environ={"PATH": path}, root=nowhere(tmp_path)) == ()


def test_an_nvidia_smi_that_hangs_means_no_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cargobike.engines.local.gpus._NVIDIA_SMI_TIMEOUT_S", 0.05)
    path = add_nvidia_smi(tmp_path / "bin", "exec /bin/sleep 60")
    assert detect_gpus(environ={"PATH": path}, root=nowhere(tmp_path)) == ()


def test_rocm_nodes_without_compute_units_are_processors(tmp_path: Path) -> None:
    root = add_rocm(tmp_path, [0, 256, 256])
    assert detect_gpus(environ={"PATH": ""}, root=root) == ("0", "1")
    assert detect_gpus(environ={"PATH": "", "ROCR_VISIBLE_DEVICES": "1"}, root=root) == ("0",)


@pytest.mark.parametrize(
    ("devices", "share", "expected"),
    [
        (2, 1, 2),
        (2, 2.0, 1),
        (3, 2, 1),
        (2, 3, 0),
        (2, 0.5, 4),
        (1, 1 / 3, 3),
        (1, 0.1, 10),
        (2, 0.4, 4),
        (0, 1, 0),
    ],
)
def test_capacity(devices: int, share: float, expected: int) -> None:
    pool = GpuPool([str(index) for index in range(devices)])
    assert pool.capacity(share) == expected


def test_a_worker_without_gpus_is_not_limited_and_holds_nothing() -> None:
    pool = GpuPool([])
    assert pool.capacity(0) == sys.maxsize
    assert pool.take("w0", 0) == ()


@pytest.mark.parametrize("count", [3, 7, 10])
def test_equal_parts_fill_a_device_exactly(count: int) -> None:
    pool = GpuPool(["0"])
    for index in range(count):
        assert pool.take(f"w{index}", 1 / count) == ("0",)
    with pytest.raises(EngineError, match="0: 0 free"):
        pool.take("one too many", 1 / count)


def test_fractions_are_packed_so_that_whole_devices_stay_free() -> None:
    pool = GpuPool(["0", "1", "2"])
    pool.take("a", 0.25)
    pool.take("b", 1)
    assert pool.take("c", 0.5) == ("0",)
    assert pool.take("d", 0.5) == ("2",)
    assert pool.take("e", 0.25) == ("0",)
    assert pool.take("f", 0.5) == ("2",)


def test_whole_devices_are_exclusive() -> None:
    pool = GpuPool(["0", "1"])
    pool.take("half", 0.5)
    with pytest.raises(EngineError, match=r"asks for 2 GPUs.*has 2 \(0: 0.5 free, 1: 1 free\)"):
        pool.take("both", 2)
    pool.give_back("half")
    assert pool.take("both", 2) == ("0", "1")


def test_giving_back_twice_frees_nothing_of_others() -> None:
    pool = GpuPool(["0"])
    pool.take("a", 1)
    pool.give_back("a")
    pool.take("b", 1)
    pool.give_back("a")
    with pytest.raises(EngineError, match="not free"):
        pool.take("c", 1)


def test_an_owner_takes_once() -> None:
    pool = GpuPool(["0", "1"])
    pool.take("a", 1)
    with pytest.raises(InvalidInputError, match="a already holds GPU 0; give that back first"):
        pool.take("a", 1)


@pytest.mark.parametrize("share", [-1, float("nan"), float("inf"), True])
def test_what_is_no_share_is_refused(share: float) -> None:
    with pytest.raises(InvalidInputError, match="is not a number of GPUs"):
        GpuPool(["0"]).take("a", share)


def test_mixed_shares_and_crumbs_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="Ask for 1 or 2"):
        GpuPool(["0", "1"]).capacity(1.5)
    with pytest.raises(InvalidInputError, match="too small"):
        GpuPool(["0"]).capacity(1e-9)


def test_a_machine_without_gpus_says_so() -> None:
    with pytest.raises(EngineError, match="no GPUs here"):
        GpuPool([]).take("a", 1)


def test_a_device_named_twice_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="more than once: 1"):
        GpuPool(["0", "1", "1"])


SHARES = st.one_of(
    st.integers(1, 4).map(float),
    st.integers(1, 12).map(lambda parts: 1 / parts),
    st.sampled_from([0.1, 0.2, 0.3, 0.7, 0.9]),
)


@given(
    devices=st.integers(0, 4),
    actions=st.lists(st.tuples(st.sampled_from("abcdefgh"), st.none() | SHARES), max_size=40),
)
def test_nothing_is_ever_lent_twice_and_everything_comes_back(
    devices: int, actions: list[tuple[str, float | None]]
) -> None:
    names = [str(index) for index in range(devices)]
    pool = GpuPool(names)
    holding: dict[str, tuple[float, tuple[str, ...]]] = {}
    for owner, share in actions:
        if share is None:
            pool.give_back(owner)
            holding.pop(owner, None)
        elif owner not in holding:
            try:
                taken = pool.take(owner, share)
            except EngineError:
                assert _is_full(names, holding, share)
                continue
            assert len(taken) == len(set(taken)) == max(1, int(share))
            holding[owner] = (share, taken)
        loads = _loads(names, holding)
        assert all(load <= 1 for load in loads.values())
    for owner in holding:
        pool.give_back(owner)
    for name in names:
        assert pool.take(f"whole {name}", 1) == (name,)


def _loads(names: list[str], holding: dict[str, tuple[float, tuple[str, ...]]]) -> dict[str, Fraction]:
    loads = dict.fromkeys(names, Fraction(0))
    for share, taken in holding.values():
        for device in taken:
            loads[device] += min(Fraction(1), Fraction(share).limit_denominator(100))
    return loads


def _is_full(names: list[str], holding: dict[str, tuple[float, tuple[str, ...]]], share: float) -> bool:
    loads = _loads(names, holding)
    if share >= 1:
        return sum(load == 0 for load in loads.values()) < share
    return all(load + Fraction(share).limit_denominator(100) > 1 for load in loads.values())


@given(devices=st.integers(0, 4), share=SHARES)
def test_capacity_is_what_fits(devices: int, share: float) -> None:
    pool = GpuPool([str(index) for index in range(devices)])
    for index in range(pool.capacity(share)):
        pool.take(f"w{index}", share)
    with pytest.raises(EngineError):
        pool.take("one too many", share)
