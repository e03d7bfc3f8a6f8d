"""What to do with other ranks, on arrays of NumPy and tensors of torch: requests, and what results are made of."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from cargobike.compat.horovod.common import world
from cargobike.compat.horovod.common.exceptions import HorovodInternalError
from cargobike.compat.horovod.common.process_sets import ProcessSet, global_process_set, id_of
from cargobike.compat.horovod.common.reductions import Adasum, ReduceOp, choose_op
from cargobike.core.errors import InvalidInputError, WaitError
from cargobike.training.named.handles import CollectiveError, Handle
from cargobike.training.named.requests import Request

Array = Any
"""An array of NumPy or a tensor of torch."""


class Pending:
    """An operation on its way, and what its result is made of."""

    def __init__(self, handle: Handle, shape_result: Callable[[list[Any]], Any]) -> None:
        self.handle = handle
        self._shape_result = shape_result

    def result(self) -> Any:
        """Wait, and return what the operation gives.

        Raises:
            HorovodInternalError: If ranks disagree, or some are missing.
        """
        with _as_internal_error():
            return self._shape_result(world.here().engine.wait(self.handle))


@dataclass(frozen=True, slots=True)
class Operation:
    """What to do with other ranks, and what its result is made of."""

    request: Request
    tensors: list[torch.Tensor]
    shape_result: Callable[[list[Any]], Any]

    def begin(self) -> Pending:
        """Begin it."""
        with _as_internal_error():
            return Pending(world.here().engine.submit(self.request, self.tensors), self.shape_result)

    def run(self) -> Any:
        """Do it, and return what it gives."""
        with _as_internal_error():
            return self.shape_result(world.here().engine.run(self.request, self.tensors))

    def giving(self, result: Any) -> Operation:
        """Return the same, giving what the caller has: a tensor that is changed in place."""
        return Operation(self.request, self.tensors, lambda _: result)

    def of_one(self) -> Operation:
        """Return the same for one value instead of a list."""
        shape = self.shape_result
        return Operation(self.request, self.tensors, lambda results: shape(results)[0])


@contextlib.contextmanager
def _as_internal_error() -> Iterator[None]:
    try:
        yield
    except (CollectiveError, WaitError) as error:
        raise HorovodInternalError(str(error)) from error


def reduction(
    values: Sequence[Array],
    name: str | None = None,
    op: ReduceOp | int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    *,
    in_place: bool = False,
) -> Operation:
    """Return the operation that reduces values over all ranks of a set, all or none."""
    chosen = choose_op(op)
    tensors = [_as_tensor(value) for value in values]
    if chosen == Adasum:
        _check_adasum(process_set)
    own = tensors if in_place else [tensor.clone(memory_format=torch.contiguous_format) for tensor in tensors]
    scales = (float(prescale_factor), float(postscale_factor))
    request = make_request("allreduce", name, own, process_set, op=chosen.name.lower(), scales=scales)
    return Operation(request, own, lambda results: _alike(results, values))


def gathering(
    values: Sequence[Array], name: str | None = None, process_set: ProcessSet = global_process_set
) -> Operation:
    """Return the operation that concatenates what all ranks of a set have; first dimensions may differ."""
    tensors = [tensor.reshape(1) if tensor.dim() == 0 else tensor for tensor in map(_as_tensor, values)]
    request = make_request("allgather", name, tensors, process_set)
    return Operation(request, tensors, lambda results: _alike(results, values))


def broadcasting(
    value: Array,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    *,
    in_place: bool = False,
) -> Operation:
    """Return the operation that gives all ranks of a set the value of one, named by its rank in the whole job."""
    tensor = _as_tensor(value)
    if root_rank not in (process_set.ranks or ()):
        raise InvalidInputError(f"root_rank must be one of the ranks {process_set.ranks}, {root_rank} was given.")
    own = tensor if in_place else tensor.clone(memory_format=torch.contiguous_format)
    request = make_request("broadcast", name, [own], process_set, root=int(root_rank))
    return Operation(request, [own], lambda results: _alike(results, [value])[0])


def exchange(
    value: Array, splits: Any = None, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Operation:
    """Return the operation that sends rows to each rank of a set; gives what came, and how many rows from each."""
    tensor = _as_tensor(value)
    counts = _read_splits(tensor, splits, process_set.size() or 1)
    request = make_request("alltoall", name, [tensor], process_set, splits=counts)

    def shape_result(results: list[Any]) -> Any:
        received, incoming = results[0]
        return _alike([received], [value])[0], _alike([torch.tensor(incoming, dtype=torch.int32)], [value])[0]

    return Operation(request, [tensor], shape_result)


def _read_splits(tensor: torch.Tensor, splits: Any, count: int) -> tuple[int, ...]:
    if tensor.dim() == 0:
        raise InvalidInputError("alltoall sends rows: a scalar has none.")
    rows = tensor.shape[0]
    if splits is None:
        if rows % count:
            raise InvalidInputError(f"{rows} rows cannot be divided evenly among {count} ranks: give splits.")
        return (rows // count,) * count
    given = _as_tensor(splits)
    if given.dtype not in (torch.int32, torch.int64):
        raise InvalidInputError(f"splits must be whole numbers of 32 or 64 bits, not {given.dtype}.")
    counts = tuple(int(each) for each in given.reshape(-1).tolist())
    if len(counts) != count or sum(counts) != rows or any(each < 0 for each in counts):
        raise InvalidInputError(
            f"splits must be {count} whole numbers, one for each rank, that add up to the {rows} rows: {list(counts)} "
            "were given."
        )
    return counts


def scattering(
    values: Sequence[Array],
    name: str | None = None,
    op: ReduceOp | int | None = None,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Operation:
    """Return the operation that reduces values and gives each rank a part of the rows, the first ranks one more."""
    chosen = choose_op(op)
    if chosen == Adasum:
        raise InvalidInputError("reducescatter cannot be done with op=hvd.Adasum; use Average or Sum.")
    tensors = [_as_tensor(value) for value in values]
    if any(tensor.dim() == 0 for tensor in tensors):
        raise InvalidInputError("reducescatter divides rows: a scalar has none.")
    scales = (float(prescale_factor), float(postscale_factor))
    request = make_request("reducescatter", name, tensors, process_set, op=chosen.name.lower(), scales=scales)
    return Operation(request, tensors, lambda results: _alike(results, values))


def make_request(kind: str, name: str | None, tensors: Sequence[torch.Tensor], of: ProcessSet, **more: Any) -> Request:
    """Return what this rank says about an operation; one without a name is numbered."""
    number = id_of(of)
    label = name or world.here().engine.next_name(kind, number)
    shapes = tuple(tuple(tensor.shape) for tensor in tensors)
    dtypes = tuple(str(tensor.dtype).removeprefix("torch.") for tensor in tensors)
    device = tensors[0].device.type if tensors else "cpu"
    return Request(f"{kind}.{label}", kind, shapes, dtypes, number, device=device, **more)


def _check_adasum(process_set: ProcessSet) -> None:
    count = process_set.size() or 1
    if process_set.process_set_id != 0:
        raise InvalidInputError("op=hvd.Adasum works over all ranks only, not in a process set.")
    if count & (count - 1):
        raise InvalidInputError(f"op=hvd.Adasum needs a number of ranks that is a power of 2, not {count}.")


def _as_tensor(value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value.detach()
    array = np.asarray(value)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _alike(results: list[Any], values: Sequence[Any]) -> list[Any]:
    """Return tensors as what was given: tensors, or arrays."""
    return [
        result if isinstance(value, torch.Tensor) else result.numpy()
        for result, value in zip(results, values, strict=True)
    ]
