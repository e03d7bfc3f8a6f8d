"""Gradients of Keras' torch backend from all ranks."""

from __future__ import annotations

from typing import Any

from cargobike.compat.horovod.common import collectives
from cargobike.compat.horovod.common.gradients import Reduction


class TorchReduction(Reduction):
    """That of tensors of torch; Keras makes no sparse ones there."""

    @staticmethod
    def key_of(variable: Any) -> Any:
        """Return what tells a variable from others."""
        return id(variable)

    def _allreduce(self, tensors: list[Any]) -> list[Any]:
        scales = {"prescale_factor": 1.0 / self.predivide, "postscale_factor": self.predivide}
        return collectives.grouped_allreduce(
            tensors, f"{self.name}.dense", self.op, process_set=self.process_set, **scales
        )

    def _reduce_sparse(self, gradient: Any, name: str) -> Any:
        return self._allreduce([gradient])[0]

    @staticmethod
    def _is_sparse(gradient: Any) -> bool:
        return False

    @staticmethod
    def _whole(gradient: Any) -> Any:
        return gradient.detach()

    @staticmethod
    def _scale(gradient: Any, divisor: int) -> Any:
        return gradient / divisor
