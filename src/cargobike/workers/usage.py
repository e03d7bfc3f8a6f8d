"""Measures what a runner and everything below it use: processors, memory, GPUs. Deciding when is pure."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from cargobike.workers.processes import TICKS, children_of

FIRST_S: Final = 1.0
"""When the first sample of an assignment is taken; a shorter one has none."""
EVERY_S: Final = 2.0
_SHARE = 100
_PAGE = 4096
_NVML = "libnvidia-ml.so.1"


class Measured(msgspec.Struct, frozen=True, gc=False):
    """What processes have used.

    Attributes:
        processor_s: Processor time in all, that of children which have ended included.
        memory_bytes: Memory that they hold now.
        gpu: The busiest of their GPUs, from 0 to 1; `None` without any.
        gpu_memory_bytes: Memory in use on their GPUs, by whatever process.
    """

    processor_s: float
    memory_bytes: int
    gpu: float | None = None
    gpu_memory_bytes: int | None = None


class UseWatch(msgspec.Struct):
    """Decides when to measure an assignment, ever more rarely, and how many processors it has kept busy.

    Samples are at least `EVERY_S` apart, and a hundredth of the time that has passed: an hour has some four hundred of
    them, a week about a thousand.

    Attributes:
        began: When the assignment began.
        next_look: When to measure next.
        processor_s: What had been used at the last look; `None` if that is not known, as of a runner that is reused.
    """

    began: float
    next_look: float
    looked_at: float
    processor_s: float | None = 0.0

    @staticmethod
    def begin(now: float, *, is_fresh: bool) -> UseWatch:
        """Watch an assignment from now on."""
        return UseWatch(now, now + FIRST_S, now, 0.0 if is_fresh else None)

    def look(self, now: float, measured: Measured) -> float | None:
        """Return how many processors were busy since the last look; `None` if that cannot be known yet."""
        before, passed_s = self.processor_s, now - self.looked_at
        self.processor_s, self.looked_at = measured.processor_s, now
        self.next_look = now + max(EVERY_S, (now - self.began) / _SHARE)
        if before is None or passed_s <= 0:
            return None
        return max(0.0, measured.processor_s - before) / passed_s


def measure(pid: int, gpus: GpuMeter | None = None, proc: Path = Path("/proc")) -> Measured:
    """Measure a process and everything below it."""
    processor_s, memory_bytes = _tree_use(pid, proc)
    gpu, gpu_memory_bytes = gpus.read() if gpus is not None else (None, None)
    return Measured(processor_s, memory_bytes, gpu, gpu_memory_bytes)


def _tree_use(pid: int, proc: Path) -> tuple[float, int]:
    processor_s, memory_bytes = 0.0, 0
    with contextlib.suppress(OSError, ValueError, IndexError):
        words = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        processor_s += sum(map(int, words[11:15])) / TICKS
        memory_bytes += int(words[21]) * _PAGE
    for child in children_of(pid, proc):
        below_s, below_bytes = _tree_use(child, proc)
        processor_s += below_s
        memory_bytes += below_bytes
    return processor_s, memory_bytes


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class GpuMeter:
    """Reads NVIDIA's GPUs through the library that comes with their driver; neither CUDA nor a package is needed.

    Args:
        devices: Which GPUs: numbers, or ids that begin with `GPU-`, as in `CUDA_VISIBLE_DEVICES`.
        library: NVML; found by itself if left out.
    """

    def __init__(self, devices: Sequence[str], library: Any = None) -> None:
        self._handles: list[ctypes.c_void_p] = []
        self._library = library
        with contextlib.suppress(OSError, AttributeError):
            self._library = library or ctypes.CDLL(_NVML)
            if self._library.nvmlInit_v2() == 0:
                self._handles = [handle for name in devices if (handle := self._find(name)) is not None]

    def _find(self, name: str) -> ctypes.c_void_p | None:
        handle = ctypes.c_void_p()
        if name.isdecimal():
            code = self._library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(name)), ctypes.byref(handle))
        else:
            code = self._library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle))
        return handle if code == 0 else None

    def read(self) -> tuple[float | None, int | None]:
        """Return how busy the busiest GPU is, from 0 to 1, and the memory in use on all; `None` where unknown."""
        busy: list[float] = []
        used: list[int] = []
        for handle in self._handles:
            use, memory = _Utilization(), _Memory()
            if self._library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(use)) == 0:
                busy.append(use.gpu / 100)
            if self._library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0:
                used.append(memory.used)
        return max(busy, default=None), sum(used) if used else None
