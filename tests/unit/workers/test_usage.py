"""Measuring what a runner uses: when, how often, and what is counted."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cargobike.workers.processes import TICKS
from cargobike.workers.usage import EVERY_S, FIRST_S, GpuMeter, Measured, UseWatch, measure
from cargobike.workers.wire.messages import Used
from support.agent_world import START, World


def write_process(proc: Path, pid: int, *, ticks: tuple[int, int, int, int], pages: int, children: list[int]) -> None:
    words = ["S", *"0" * 10, *map(str, ticks), *"0" * 6, str(pages), *"0" * 10]
    (proc / str(pid) / "task" / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "stat").write_text(f"{pid} (a (strange) name) {' '.join(words)}")
    (proc / str(pid) / "task" / str(pid) / "children").write_text(" ".join(map(str, children)))


def test_a_tree_of_processes_is_added_up(tmp_path: Path) -> None:
    write_process(tmp_path, 1, ticks=(100, 50, 30, 20), pages=1000, children=[2, 3])
    write_process(tmp_path, 2, ticks=(10, 0, 0, 0), pages=10, children=[4])
    write_process(tmp_path, 4, ticks=(0, 5, 0, 0), pages=1, children=[])
    measured = measure(1, proc=tmp_path)  # 3 has ended meanwhile
    assert measured == Measured(215 / TICKS, 1011 * 4096)


def test_a_process_that_is_gone_uses_nothing(tmp_path: Path) -> None:
    assert measure(77, proc=tmp_path) == Measured(0.0, 0)


def test_real_processes_are_measured() -> None:
    code = "data = bytearray(60_000_000); print(sum(range(3_000_000))); input()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        own, together = measure(child.pid), measure(os.getpid())
        child.communicate("\n")
    assert own.memory_bytes > 60_000_000
    assert own.processor_s > 0
    assert together.memory_bytes > own.memory_bytes


def test_samples_come_ever_more_rarely() -> None:
    watch = UseWatch.begin(0.0, is_fresh=True)
    times = []
    while watch.next_look < 7 * 86400:
        now = watch.next_look
        times.append(now)
        watch.look(now, Measured(now / 2, 1))
    assert times[:3] == [FIRST_S, FIRST_S + EVERY_S, FIRST_S + 2 * EVERY_S]
    assert len([at for at in times if at < 3600]) < 500
    assert len(times) < 1200
    assert times[-1] - times[-2] > 3600


def test_processors_are_counted_between_samples() -> None:
    watch = UseWatch.begin(10.0, is_fresh=True)
    assert watch.look(12.0, Measured(1.0, 1)) == 0.5
    assert watch.look(14.0, Measured(5.0, 1)) == 2.0
    assert watch.look(16.0, Measured(4.0, 1)) == 0.0  # a child took its time along
    reused = UseWatch.begin(10.0, is_fresh=False)
    assert reused.look(11.0, Measured(100.0, 1)) is None
    assert reused.look(13.0, Measured(101.0, 1)) == 0.5


def samples(world: World) -> list[Used]:
    return [message for message in world.driver if isinstance(message, Used)]


def test_an_agent_sends_samples_while_an_assignment_runs() -> None:
    world = World()
    world.assign(3)
    world.processor_s, world.memory_bytes = 0.5, 7_000_000
    world.pass_time(FIRST_S)
    assert samples(world) == [Used(3, 1, FIRST_S, 0.5, 7_000_000)]
    world.pass_time(EVERY_S)
    assert [one.after_s for one in samples(world)] == [FIRST_S, FIRST_S + EVERY_S]
    world.end(3)
    world.pass_time(100.0)
    assert len(samples(world)) == 2
    assert world.at >= START


class FakeNvml:
    """Plays NVIDIA's library: two GPUs, one of them known by its id."""

    def nvmlInit_v2(self) -> int:
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: ctypes.c_uint, handle: Any) -> int:
        handle._obj.value = 100 + index.value
        return 0 if index.value < 2 else 2

    def nvmlDeviceGetHandleByUUID(self, name: bytes, handle: Any) -> int:
        handle._obj.value = 101
        return 0 if name == b"GPU-b" else 6

    def nvmlDeviceGetUtilizationRates(self, handle: ctypes.c_void_p, use: Any) -> int:
        use._obj.gpu = 25 if handle.value == 100 else 75
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle: ctypes.c_void_p, memory: Any) -> int:
        memory._obj.used = 1000 if handle.value == 100 else 2000
        return 0


@pytest.mark.parametrize(
    ("devices", "read"),
    [(["0"], (0.25, 1000)), (["0", "GPU-b"], (0.75, 3000)), (["7", "GPU-x"], (None, None)), ([], (None, None))],
)
def test_gpus_are_read_through_nvml(devices: list[str], read: tuple[float | None, int | None]) -> None:
    assert GpuMeter(devices, FakeNvml()).read() == read


def test_a_machine_without_the_library_has_nothing_to_read(tmp_path: Path) -> None:
    assert GpuMeter(["0"], object()).read() == (None, None)
