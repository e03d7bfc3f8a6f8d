"""A loader as what `keras.Model.fit` takes, whatever Keras runs on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import keras

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.data.loading.frameworks.batches import Batches


def as_dataset(loader: Batches, x: str | list[str] | None, y: str | None, weights: str | None) -> Any:
    """Return a dataset of TensorFlow where Keras runs on it, which it would make one of anyway, else a `PyDataset`.

    Raises:
        InvalidInputError: If batches have no such arrays.
    """
    parts = [part for part in (x, y, weights) if part is not None]
    named = [name for part in parts for name in ([part] if isinstance(part, str) else part)]
    unknown = [name for name in named if name not in loader.columns]
    if unknown and loader.options.transform is None:
        raise InvalidInputError(
            f"The batches have {', '.join(map(repr, loader.columns))}.",
            [f"{name!r} is unknown.{nearest(name, loader.columns)}" for name in unknown],
        )

    def arrange(batch: Any) -> Any:
        if not parts or not isinstance(batch, Mapping):
            return batch
        picked = [batch[part] if isinstance(part, str) else {name: batch[name] for name in part} for part in parts]
        return picked[0] if len(picked) == 1 else tuple(picked)

    if keras.backend.backend() == "tensorflow":
        from cargobike.data.loading.frameworks import tensorflow  # noqa: PLC0415 - only where Keras runs on it

        return tensorflow.as_dataset(loader, arrange)
    return KerasDataset(loader, arrange)


class KerasDataset(keras.utils.PyDataset):  # type: ignore[misc]  # Keras has no types
    """Batches of a loader; each pass of `fit` is the next epoch.

    Keras numbers batches, and shuffles the numbers; here the loader decides what comes next, so they mean nothing.
    """

    def __init__(self, loader: Batches, arrange: Any) -> None:
        super().__init__(workers=1, use_multiprocessing=False, max_queue_size=2)
        self.loader = loader
        self._arrange = arrange
        self._batches: Iterator[Any] | None = None
        self._first: dict[str, Any] | None = loader.state_dict()
        self._taken = 0

    def __len__(self) -> int:
        return len(self.loader)

    def __getitem__(self, number: int) -> Any:
        batch = None if self._batches is None else next(self._batches, None)
        if batch is None:
            self._batches = iter(self.loader)
            batch = next(self._batches)
        self._taken += 1
        return self._arrange(batch)

    def on_epoch_end(self) -> None:
        """Begin anew at the position of the loader: the next epoch, if all batches were taken."""
        self._batches = None
        if self._taken == 1 and self._first is not None:  # only a look, to see the shapes
            self.loader.load_state_dict(self._first)
        if self._taken:
            self._first = None
