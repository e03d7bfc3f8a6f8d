"""Gradients of all ranks in place of one rank's, whatever the framework."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cargobike.compat.horovod.common.process_sets import ProcessSet, global_process_set
from cargobike.compat.horovod.common.reductions import Adasum, Average, ReduceOp, Sum
from cargobike.core.errors import InvalidInputError


@dataclass(frozen=True)
class Reduction(ABC):
    """How gradients of ranks become one.

    Attributes:
        name: What the operations are called, the same on all ranks.
        op: `Average`, `Sum` or, for dense ones, `Adasum`.
        compression: What they become on their way.
        sparse_as_dense: Whether rows of embeddings travel as whole tensors.
        predivide: By how much to divide before the sum of a mean, and to multiply after it.
        process_set: Which ranks.
        scale_local: Whether gradients of local variables are divided by the number of ranks.
        local: Variables whose gradients stay those of this rank, by `key_of`.
    """

    name: str
    op: ReduceOp
    compression: Any
    sparse_as_dense: bool = False
    predivide: float = 1.0
    process_set: ProcessSet = global_process_set
    scale_local: bool = True
    local: set[Any] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.op not in (Average, Sum, Adasum):
            raise InvalidInputError(f"gradients are reduced by hvd.Average, hvd.Sum or hvd.Adasum, not {self.op!r}.")
        if self.predivide != 1.0 and self.op != Average:
            raise InvalidInputError("gradient_predivide_factor divides a mean in two: it needs op=hvd.Average.")

    def reduce(self, gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """Return gradients of all ranks; those of local variables stay this rank's, and `None` stays `None`."""
        reduced = list(gradients)
        if not self.process_set.included():
            return reduced
        dense, sparse = [], []
        for index, (gradient, variable) in enumerate(zip(gradients, variables, strict=True)):
            if gradient is None:
                continue
            if self.key_of(variable) in self.local:
                reduced[index] = self._scale(gradient, self.process_set.size() or 1) if self.scale_local else gradient
            elif self._is_sparse(gradient) and not self.sparse_as_dense:
                sparse.append(index)
            else:
                dense.append(index)
        if dense:
            results = self._reduce_dense([reduced[index] for index in dense])
            for index, gradient in zip(dense, results, strict=True):
                reduced[index] = gradient
        for index in sparse:
            reduced[index] = self._reduce_sparse(reduced[index], f"{self.name}.sparse.{index}")
        return reduced

    def _reduce_dense(self, gradients: list[Any]) -> list[Any]:
        packed = [self.compression.compress(gradient) for gradient in map(self._whole, gradients)]
        reduced = self._allreduce([tensor for tensor, _ in packed])
        return [self.compression.decompress(tensor, ctx) for tensor, (_, ctx) in zip(reduced, packed, strict=True)]

    @staticmethod
    @abstractmethod
    def key_of(variable: Any) -> Any:
        """Return what tells a variable from others."""

    @abstractmethod
    def _allreduce(self, tensors: list[Any]) -> list[Any]: ...

    @abstractmethod
    def _reduce_sparse(self, gradient: Any, name: str) -> Any: ...

    @staticmethod
    @abstractmethod
    def _is_sparse(gradient: Any) -> bool: ...

    @staticmethod
    @abstractmethod
    def _whole(gradient: Any) -> Any: ...

    @staticmethod
    @abstractmethod
    def _scale(gradient: Any, divisor: int) -> Any: ...
