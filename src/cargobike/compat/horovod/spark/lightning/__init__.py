"""Says what to write in place of an Estimator for Lightning."""

from __future__ import annotations

from typing import Any

from cargobike.core.errors import InvalidInputError

__all__ = ["TorchEstimator"]


class TorchEstimator:
    """Not supported: Lightning trains distributed by itself."""

    def __init__(self, **params: Any) -> None:
        raise InvalidInputError(
            "horovod.spark.lightning.TorchEstimator is not supported: Lightning's Trainer is distributed by itself.",
            [
                "cargobike.spark.Estimator(train, predict, workers=2), where train(data) calls "
                "lightning.Trainer(...).fit(model, loader) and saves with trial.checkpoint.save(model.state_dict())",
                "or, for a plain nn.Module, cargobike.compat.horovod.spark.torch.TorchEstimator",
            ],
        )
