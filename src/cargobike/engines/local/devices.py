"""What this process may compute on: the GPUs and CPU threads it was given.

Inside an experiment that is what its worker was given, elsewhere what the machine has. Nothing here imports
or initializes a deep-learning library.
"""

from __future__ import annotations

import os
import platform
import sys
from typing import Literal

from cargobike.core import settings
from cargobike.engines.local.gpus import detect_gpus


def get_num_gpus() -> int:
    """Return how many GPUs this process may use; a device that is shared with other workers counts as one."""
    return len(get_gpus())


def get_gpus() -> tuple[str, ...]:
    """Return the names of the GPUs that this process may use, as `CUDA_VISIBLE_DEVICES` spells them.

    Inside the process a library numbers them from 0, not by name: the first is always `cuda:0`.
    """
    return detect_gpus()


def get_num_cpus() -> int:
    """Return how many threads this process may keep busy: its worker's share, or all cores it may run on."""
    share = settings.cpus()
    if share is not None:
        return share
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def accelerator() -> Literal["cuda", "mps", "cpu"]:
    """Return the device type to train on, as torch names it: AMD's GPUs go by `cuda` too.

    Example:
        >>> accelerator() in {"cuda", "mps", "cpu"}
        True
    """
    torch = sys.modules.get("torch")
    build = getattr(torch, "version", None)
    without_gpu = build is not None and not (getattr(build, "cuda", None) or getattr(build, "hip", None))
    if get_gpus() and not without_gpu:
        return "cuda"
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return "mps"
    return "cpu"
