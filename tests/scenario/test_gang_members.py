"""Who is in a gang: GPUs for ranks and none for servers, gangs that grow and shrink, what each attempt cost."""

from __future__ import annotations

import os
import signal
import time

import psutil
import pytest

from cargobike import Resources, experiment, trial
from cargobike.engines.local.engine import LocalEngine
from cargobike.experiments.asking import shipping
from cargobike.experiments.trial import context


def _see_devices() -> dict[str, float]:
    here = context.current()
    visible = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
    assert here.device_index is not None
    return {"seen": len(visible), "own": int(visible[here.device_index].removeprefix("gpu"))}


@pytest.mark.parametrize(
    ("devices", "share", "expected"),
    [
        (("gpu4", "gpu5"), 1, [(2, 4), (2, 5)]),  # as code for torchrun expects: the device of the local rank
        (("gpu4",), 0.5, [(1, 4), (1, 4)]),
        (("gpu4", "gpu5", "gpu6", "gpu7"), 2, [(2, 4), (2, 6)]),
    ],
)
def test_every_rank_has_its_own_device(devices: tuple[str, ...], share: float, expected: list[tuple[int, int]]) -> None:
    with LocalEngine(gpus=devices) as engine:
        result = experiment.allreduce(
            _see_devices, workers=2, engine=engine, resources=Resources(gpus=share), quiet=True
        )
    assert [(value["seen"], value["own"]) for value in result.values] == expected


def serve_for_a_test() -> None:
    """Serve until all workers have returned."""
    here = context.current()
    told = f"{here.role} {here.rank} {os.environ['CUDA_VISIBLE_DEVICES']!r} {here.options['staleness']}"
    here.gang.publish("served by", told.encode())
    while not here.should_stop:
        time.sleep(0.02)


def _use_servers() -> dict[str, float]:
    here = context.current()
    told = here.gang.gather("served by", of="servers", timeout_s=60)
    assert told == [b"server 0 '' 3", b"server 1 '' 3"], told
    return {"workers": trial.world_size, "servers": here.num_servers, "rank": trial.rank}


def test_servers_serve_without_a_gpu_until_all_workers_have_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping, "PARAMETER_SERVER", f"{__name__}:serve_for_a_test")
    with LocalEngine(gpus=("gpu0", "gpu1")) as engine:
        result = experiment.parameter_server(_use_servers, workers=2, servers=2, engine=engine, staleness=3, quiet=True)
    assert result.values == [{"workers": 2, "servers": 2, "rank": rank} for rank in range(2)]


class _Crowded(LocalEngine):
    """An engine that cannot start its third worker until the process is resumed that would fork it."""

    def __init__(self, stopped: list[int]) -> None:
        super().__init__()
        self._stopped = stopped

    def start_worker(self, spec):  # type: ignore[no-untyped-def]
        if spec.name == "w2":
            self._stop_host()
        return super().start_worker(spec)

    def _stop_host(self) -> None:
        """Stop the host once the others are born: an agent that is stopped itself may have arrived just before."""
        deadline = time.monotonic() + 60
        while any(handle.pid is None for handle in self._handles.values()) and time.monotonic() < deadline:
            self._hear()
            time.sleep(0.005)
        assert self._host is not None
        os.kill(self._host.process._pid, signal.SIGSTOP)
        self._stopped.append(self._host.process._pid)


def _grow(late: int) -> dict[str, float]:
    begun: int = trial.checkpoint.load(0)
    for step in range(begun, 400):
        trial.report(size=trial.world_size, step=step)
        trial.checkpoint.save(step + 1)
        trial.barrier()
        if trial.world_size == 3:
            break
        if trial.rank == 0 and step == 1:
            for process in psutil.process_iter():  # let the one come that is still missing
                if process.status() == psutil.STATUS_STOPPED and _is_ours(process):
                    process.resume()
        time.sleep(0.02)
    return {"begun": begun, "size": trial.world_size}


def _is_ours(process: psutil.Process) -> bool:
    try:
        return process.environ().get("CARGOBIKE_PROJECT") == os.environ["CARGOBIKE_PROJECT"]
    except psutil.Error:
        return False


def test_an_elastic_gang_starts_with_what_there_is_and_takes_in_who_comes() -> None:
    late: list[int] = []
    with _Crowded(late) as engine:
        result = experiment.allreduce(_grow, params={"late": 1}, workers=(2, 3), engine=engine, quiet=True)
    assert len(late) == 1
    assert [value["size"] for value in result.values] == [3, 3, 3]
    assert len({value["begun"] for value in result.values}) == 1
    assert result.values[0]["begun"] > 1
    (reform,) = result.reforms
    assert (reform.workers_before, reform.workers_after) == (2, 3)
    assert "1 more came to join it" in reform.reason
    assert reform.lost_s >= 0
    assert reform.pause_s >= 0
