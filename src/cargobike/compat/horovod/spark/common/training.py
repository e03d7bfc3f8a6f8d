"""What a rank needs to know to train a network on its share of the rows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cargobike import trial
from cargobike.core.errors import InvalidInputError

VALIDATION = "__validation"
"""The column that says which rows are for validation."""


@dataclass(frozen=True)
class Plan:
    """What is the same for all frameworks."""

    feature_cols: Sequence[str]
    label_cols: Sequence[str]
    batch_size: int = 32
    val_batch_size: int = 32
    epochs: int = 1
    train_steps: int | None = None
    validation_steps: int | None = None
    random_seed: int | None = None
    shuffle: bool = True
    sample_weight_col: str | None = None
    loss_weights: Sequence[float] | None = None
    metrics: Sequence[Any] = ()
    compression: Any = None
    passes: int = 1
    transformation: Callable[..., Any] | None = None
    earlier: bytes | None = None


def shared_settings(estimator: Any) -> dict[str, Any]:
    """Return the fields of `Plan` from the parameters of an Estimator."""
    get = estimator.getOrDefault
    return {
        "feature_cols": list(get("feature_cols")),
        "label_cols": list(get("label_cols")),
        "batch_size": get("batch_size"),
        "val_batch_size": get("val_batch_size") or get("batch_size"),
        "epochs": get("epochs"),
        "train_steps": get("train_steps_per_epoch"),
        "validation_steps": get("validation_steps_per_epoch"),
        "random_seed": get("random_seed"),
        "shuffle": get("shuffle"),
        "sample_weight_col": get("sample_weight_col"),
        "loss_weights": get("loss_weights"),
        "metrics": get("metrics"),
        "compression": get("gradient_compression"),
        "passes": get("backward_passes_per_step"),
        "transformation": get("transformation_fn"),
    }


def rows_of(plan: Plan, data: Any) -> tuple[Any, Any]:
    """Return this rank's rows to train with and to validate with, as DataFrames of pandas.

    Raises:
        InvalidInputError: If there are none to train with.
    """
    frame = data.to_pandas()
    held = frame.pop(VALIDATION).fillna(False).to_numpy(dtype=bool) if VALIDATION in frame else None
    if plan.transformation is not None:
        frame = plan.transformation(frame)
    train, val = (frame, frame[:0]) if held is None else (frame[~held], frame[held])
    if train.empty:
        raise InvalidInputError("This rank has no rows to train with: use fewer ranks, or more data.")
    return train, val


def array_of(column: Any) -> Any:
    """Return a column as an array, whose rows may be lists."""
    first = column.iloc[0] if len(column) else 0.0
    if isinstance(first, list | tuple | np.ndarray):
        return np.stack([np.asarray(value) for value in column])
    return column.to_numpy()


def save_network(checkpoint: bytes, history: Any) -> None:
    """Keep what was trained where our Estimator finds it; the process of rank 0 does."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "checkpoint").write_bytes(checkpoint)
        Path(folder, "history.json").write_text(json.dumps(history))
        trial.checkpoint.save(Path(folder))
