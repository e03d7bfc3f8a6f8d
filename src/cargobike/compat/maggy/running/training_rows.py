"""A training dataset of the feature store without one of its features, for Keras."""

from __future__ import annotations

from typing import Any

import numpy as np

from cargobike import features
from cargobike.core.errors import InvalidInputError, nearest
from cargobike.data import Loader


def rows_of(
    name: str, version: int | None, label: str, ablated_feature: str | None, num_epochs: int, batch_size: int
) -> Any:
    """Return a training dataset for Keras, without one of its features.

    Each batch is a pair: the features of each row as a vector of float32, in the order of the dataset's columns, and
    the label as a column of float32.

    Args:
        name: The training dataset.
        version: Its version, the newest if left out.
        label: Which column is the label.
        ablated_feature: Which feature to leave out.
        num_epochs: How often the data is gone through.
        batch_size: How many rows a batch has.
    """
    dataset = features.training_dataset(name, version)
    columns = _columns(dataset, label)
    unknown = [column for column in (label, ablated_feature) if column is not None and column not in columns]
    if unknown:
        hints = "".join(nearest(column, columns) for column in unknown)
        raise InvalidInputError(f"{dataset.id} has no column {', '.join(map(repr, unknown))}; it has {columns}.{hints}")
    used = [column for column in columns if column not in (label, ablated_feature)]

    def stack(batch: dict[str, Any]) -> dict[str, Any]:
        rows = [np.asarray(batch[column], dtype=np.float32).reshape(len(batch[column]), -1) for column in used]
        target = np.asarray(batch[label], dtype=np.float32).reshape(len(batch[label]), -1)
        return {"features": np.concatenate(rows, axis=1), "label": target}

    loader = Loader(dataset, batch_size, columns=[*used, label], shuffle=True, transform=stack)
    made = loader.as_keras("features", "label")
    return made.repeat(num_epochs) if hasattr(made, "repeat") else made


def _columns(dataset: Any, label: str) -> list[str]:
    """Return the features of the view that a dataset was made from, and the label; all columns if there is none."""
    columns = list(Loader(dataset).columns)
    if not dataset.record.view:
        return columns
    view = features.view(dataset.record.view, dataset.record.view_version)
    return [column for column in columns if column in view.features or column in (label, dataset.record.label)]
