"""What was built into this Horovod: the truth about the installed torch. Scripts branch on it."""

from __future__ import annotations

import torch
import torch.distributed as dist


def mpi_built() -> bool:
    """Return False: nothing here uses MPI."""
    return False


def mpi_enabled() -> bool:
    """Return False: nothing here uses MPI."""
    return False


def mpi_threads_supported() -> bool:
    """Return False: nothing here uses MPI."""
    return False


def gloo_built() -> bool:
    """Tell whether the installed torch has gloo."""
    return bool(dist.is_available() and dist.is_gloo_available())


def gloo_enabled() -> bool:
    """Tell whether ranks talk over gloo: always, where there is one."""
    return gloo_built()


def nccl_built() -> int:
    """Return the version of NCCL in the installed torch, as in 22703; 0 if it has none."""
    if not (dist.is_available() and dist.is_nccl_available()):
        return 0
    version = torch.cuda.nccl.version()
    major, minor, patch = (*version, 0, 0)[:3]
    return int(major) * 10000 + int(minor) * 100 + int(patch)


def cuda_built() -> bool:
    """Tell whether the installed torch was built with CUDA."""
    return bool(torch.version.cuda)


def rocm_built() -> bool:
    """Tell whether the installed torch was built with ROCm."""
    return bool(torch.version.hip)


def ccl_built() -> bool:
    """Return False: nothing here uses oneCCL."""
    return False


def ddl_built() -> bool:
    """Return False: nothing here uses IBM's DDL."""
    return False
