"""Maggy's configuration of a distributed training in torch."""

from __future__ import annotations

from typing import Any, Final

from cargobike.compat.maggy.config.lagom import LagomConfig
from cargobike.core.errors import InvalidInputError, nearest

__all__ = ["TorchDistributedConfig"]

_LEVELS: Final = (0, 1, 2, 3)


class TorchDistributedConfig(LagomConfig):
    """A training in torch on all workers at once, on GPUs or on processors.

    Args:
        module: The class of the model, or a function that makes one; also a list of them.
        train_set: What the function gets as `train_set`: each rank gets its share of a dataset.
        test_set: What it gets as `test_set`, whole.
        hparams: What it gets as `hparams`.
        backend: `"torch"`.
        mixed_precision: Whether the forward pass computes in bfloat16.
        zero_lvl: 0 keeps the model in every rank; 1 to 3 divide it among them.
        deepspeed_config: Means nothing here.
        name: The experiment's name.
        hb_interval: Means nothing here.
        description: A sentence about it.
        dataset: What it gets as `dataset`, as in 1.1: the first of the list is divided, as `train_set` is.

    Raises:
        InvalidInputError: If the backend or the level is not there.
    """

    BACKENDS: Final = ("torch", "deepspeed")

    def __init__(
        self,
        module: Any,
        train_set: Any = None,
        test_set: Any = None,
        hparams: dict[str, Any] | None = None,
        backend: str = "torch",
        mixed_precision: bool = False,
        zero_lvl: int = 0,
        deepspeed_config: dict[str, Any] | None = None,
        name: str = "torchDist",
        hb_interval: int = 1,
        description: str = "",
        dataset: Any = None,
    ) -> None:
        super().__init__(name, description, hb_interval)
        if backend not in self.BACKENDS:
            hint = nearest(backend, self.BACKENDS)
            raise InvalidInputError(f"backend={backend!r}; 'torch' is the one there is.{hint}")
        if backend == "deepspeed":
            raise InvalidInputError(
                "backend='deepspeed' is not there: DeepSpeed brings a loop of its own. What it divides among ranks, "
                "backend='torch' with zero_lvl=3 divides too (torch's FSDP), and a script that calls "
                "deepspeed.initialize itself runs under cargobike.experiment.allreduce."
            )
        if zero_lvl not in _LEVELS:
            raise InvalidInputError(f"zero_lvl={zero_lvl!r}; allowed are 0, 1, 2 and 3.")
        if isinstance(train_set, list) and dataset is None and test_set is None:
            train_set, dataset = None, train_set  # 1.1 had the list in this place
        self.module = module
        self.train_set = train_set
        self.test_set = test_set
        self.dataset = dataset
        self.hparams = hparams or {}
        self.backend = backend
        self.mixed_precision = mixed_precision
        self.zero_lvl = zero_lvl
        self.ds_config = deepspeed_config
