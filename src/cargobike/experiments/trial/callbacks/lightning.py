"""Reports the metrics of a Lightning module, at the end of each epoch or after each validation."""

from __future__ import annotations

import sys
from typing import Any, Literal

from cargobike.core.errors import InvalidInputError
from cargobike.experiments.trial.callbacks.reporting import Metrics, Reporting

if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning import Callback  # the same library under its former name
else:
    from lightning.pytorch import Callback


class LightningReport(Callback):
    """Report what a Lightning module logs, and end the training when the trial is to stop.

    Put it last among the trainer's callbacks: it ends the trial when all others have heard that the training is over.

    Args:
        metrics: The name of a metric that the module logs, several, `{"name to report": "name that is logged"}`, or
            nothing for all of them.
        on: When to report: at the end of each `"epoch"` (in which there was a validation, if there is any), step being
            the epoch; or after each `"validation"`, step being the number of optimizer steps.
        checkpoint: Whether to save the trainer's state after each report. A later attempt goes on with it by
            `trainer.fit(model, ckpt_path=trial.checkpoint.load())`.
    """

    def __init__(
        self, metrics: Metrics = None, *, on: Literal["epoch", "validation"] = "epoch", checkpoint: bool = False
    ) -> None:
        super().__init__()
        if on not in ("epoch", "validation"):
            raise InvalidInputError(f'LightningReport(on={on!r}): give "epoch" or "validation".')
        self._reporting = Reporting("LightningReport", metrics)
        self._on = on
        self._checkpoint = checkpoint
        self._has_validated = False

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Report, if that is to be done after each validation."""
        if trainer.sanity_checking or trainer.state.fn != "fit":
            return
        self._has_validated = True
        if self._on == "validation":
            self._report(trainer, trainer.global_step)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Report, if that is to be done after each epoch; epochs without a validation of their own have no news."""
        has_validated, self._has_validated = self._has_validated, False
        if self._on == "epoch" and (has_validated or not trainer.enable_validation):
            self._report(trainer, trainer.current_epoch)

    def _report(self, trainer: Any, step: int) -> None:
        self._reporting.report(trainer.callback_metrics, step)
        if self._checkpoint:
            self._reporting.save(trainer.save_checkpoint, "trainer.ckpt", step)
        should_end = trainer.strategy.reduce_boolean_decision(self._reporting.is_stopping, all=False)
        self._reporting.follow(should_end)
        trainer.should_stop = trainer.should_stop or should_end

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """End the trial, if it was to stop."""
        self._reporting.end()
