"""Objects between ranks, pickled. Ranks of one job trust each other; what has no seal of the job is not unpickled."""

from __future__ import annotations

import hashlib
import hmac
import io
import pickle
from typing import Any

import cloudpickle
import torch

from cargobike.compat.horovod.common import world
from cargobike.compat.horovod.common.operations import broadcasting, gathering
from cargobike.compat.horovod.common.process_sets import ProcessSet, global_process_set
from cargobike.core.errors import AuthenticationError


def broadcast_object(
    obj: Any, root_rank: int = 0, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    """Give all ranks the object of one of them, pickled; only what has a seal of this job is unpickled."""
    label = name or "object"
    is_root = world.here().place.rank == root_rank
    data = _pickled(obj, label) if is_root else torch.empty(0, dtype=torch.uint8)
    length = _broadcast(torch.tensor([len(data)]), root_rank, name and f"{name}.length", process_set)
    buffer = data if is_root else torch.empty(int(length), dtype=torch.uint8)
    buffer = _broadcast(buffer, root_rank, name and f"{name}.data", process_set)
    return obj if is_root else _unpickled(buffer, label)


def allgather_object(obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set) -> list[Any]:
    """Return the objects of all ranks, by rank, pickled; only what has a seal of this job is unpickled."""
    label = name or "object"
    data = _pickled(obj, label)
    lengths = _gather(torch.tensor([len(data)]), name and f"{name}.lengths", process_set).tolist()
    every = _gather(data, name and f"{name}.data", process_set)
    return [_unpickled(piece, label) for piece in every.split(lengths)]


_SEAL_BYTES = 32


def _pickled(obj: Any, label: str) -> torch.Tensor:
    buffer = io.BytesIO()
    cloudpickle.dump(obj, buffer)
    data = buffer.getvalue()
    return torch.frombuffer(bytearray(_seal(data, label) + data), dtype=torch.uint8)


def _unpickled(tensor: torch.Tensor, label: str) -> Any:
    data = tensor.numpy().tobytes()
    if not hmac.compare_digest(data[:_SEAL_BYTES], _seal(data[_SEAL_BYTES:], label)):
        raise AuthenticationError("an object did not come from a rank of this job: its seal is not right")
    return pickle.loads(data[_SEAL_BYTES:])


def _seal(data: bytes, label: str) -> bytes:
    return hmac.new(world.here().engine.secret, label.encode() + data, hashlib.sha256).digest()


def _broadcast(tensor: torch.Tensor, root_rank: int, name: str | None, of: ProcessSet) -> torch.Tensor:
    received: torch.Tensor = broadcasting(tensor, root_rank, name, of).run()
    return received


def _gather(tensor: torch.Tensor, name: str | None, of: ProcessSet) -> torch.Tensor:
    received: torch.Tensor = gathering([tensor], name, of).of_one().run()
    return received
