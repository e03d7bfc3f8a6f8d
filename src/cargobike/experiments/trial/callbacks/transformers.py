"""Reports what a `Trainer` of Hugging Face's Transformers measures at each evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from cargobike.experiments.trial.callbacks.reporting import Metrics, Reporting

_NOISE = ("epoch", "eval_runtime", "eval_samples_per_second", "eval_steps_per_second", "total_flos")


class TransformersReport(TrainerCallback):
    """Report the metrics of each evaluation of a `Trainer`, and end the training when the trial is to stop.

    The step is the number of epochs that are done with `eval_strategy="epoch"`, and of optimizer steps otherwise.

    Args:
        metrics: The name of a metric, such as `"eval_loss"`, several, `{"name to report": "eval_loss"}`, or nothing
            for all of them.
        checkpoint: Whether to keep what the trainer saves (`save_strategy`) as checkpoint of the trial. A later attempt
            goes on with it by `trainer.train(resume_from_checkpoint=trial.checkpoint.load())`.
    """

    def __init__(self, metrics: Metrics = None, *, checkpoint: bool = False) -> None:
        self._reporting = Reporting("TransformersReport", metrics, _NOISE)
        self._checkpoint = checkpoint
        self._is_training = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Report from now on: evaluations outside the training say nothing about its course."""
        self._is_training = True

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        """Report an evaluation."""
        if self._is_training and self._reporting.report(metrics or {}, _step(args, state)):
            control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Keep what the trainer has just saved."""
        saved = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        if self._checkpoint and saved.is_dir() and self._reporting.save_copy(saved, _step(args, state)):
            control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """End the trial, if it was to stop."""
        self._is_training = False
        self._reporting.end()


def _step(args: Any, state: Any) -> int:
    by_epoch = getattr(args.eval_strategy, "value", args.eval_strategy) == "epoch"
    return round(state.epoch) if by_epoch else int(state.global_step)
