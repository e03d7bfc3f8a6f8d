"""`hops.devices`: what this worker may compute on."""

from __future__ import annotations

from cargobike import devices as ours
from cargobike.compat.noticing import formerly

__all__ = ["get_gpu_uuid", "get_num_gpus"]


@formerly("hops.devices.get_num_gpus")
def get_num_gpus() -> int:
    """Return how many GPUs this process was given."""
    return ours.get_num_gpus()


@formerly("hops.devices.get_gpu_uuid")
def get_gpu_uuid() -> list[str]:
    """Return the names of the GPUs that this process was given."""
    return [str(gpu) for gpu in ours.get_gpus()]
