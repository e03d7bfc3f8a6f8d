"""Which GPUs this process may use."""

from __future__ import annotations

from typing import Literal

from cargobike import devices
from cargobike.compat.noticing import formerly
from cargobike.core.errors import EngineError

__all__ = ["AS_LIST", "AS_STRING", "MAX_RETRIES", "get_gpus", "is_gpu_available"]

MAX_RETRIES = 3
AS_STRING: Literal["string"] = "string"
AS_LIST: Literal["list"] = "list"


def is_gpu_available() -> bool:
    """Tell whether this process may use a GPU."""
    return devices.get_num_gpus() > 0


@formerly("tensorflowonspark.gpu_info.get_gpus")
def get_gpus(num_gpu: int = 1, worker_index: int = -1, format: str = AS_STRING) -> str | list[str]:
    """Return GPUs of this worker. They are its own already: no other worker is given them.

    Args:
        num_gpu: How many.
        worker_index: Which of several that share them this is.
        format: `AS_STRING` with commas between, or `AS_LIST`.

    Raises:
        EngineError: If there are fewer.
    """
    gpus = list(devices.get_gpus())
    if len(gpus) < num_gpu:
        raise EngineError(f"{num_gpu} GPUs were asked for, and this process may use {len(gpus)}.")
    first = max(0, worker_index) * num_gpu % len(gpus) if gpus else 0
    chosen = [*gpus[first:], *gpus[:first]][:num_gpu]
    return chosen if format == AS_LIST else ",".join(chosen)
