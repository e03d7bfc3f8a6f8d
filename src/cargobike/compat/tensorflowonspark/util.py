"""Small things that scripts import."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from cargobike.compat.tensorflowonspark import gpu_info
from cargobike.workers.whereabouts import address_towards

__all__ = ["find_in_path", "get_ip_address", "single_node_env"]


def single_node_env(num_gpus: int = 1, worker_index: int = -1, nodes: Sequence[str] = ()) -> None:
    """Have this process see so many GPUs, or none where there are none."""
    gpus = gpu_info.get_gpus(num_gpus, worker_index) if num_gpus > 0 and gpu_info.is_gpu_available() else ""
    os.environ["CUDA_VISIBLE_DEVICES"] = str(gpus)


def get_ip_address() -> str:
    """Return the address by which other machines reach this one."""
    return address_towards("8.8.8.8")


def find_in_path(path: str, file: str) -> str | Literal[False]:
    """Return a file in one of several folders, `False` if it is in none."""
    candidates = (os.path.join(folder, file) for folder in path.split(os.pathsep))
    return next((candidate for candidate in candidates if os.path.isfile(candidate)), False)
