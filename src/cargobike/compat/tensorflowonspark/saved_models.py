"""Predicts with saved models of TensorFlow; TensorFlow is loaded where rows are predicted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cargobike.core.errors import InvalidInputError, nearest

_USUAL_SIGNATURE = "serving_default"
_loaded: dict[tuple[str, str | None], Any] = {}
"""Models of this process: one that was loaded for a partition serves the next."""


class SavedModel:
    """Predicts batches of Arrow with a signature of a saved model.

    Args:
        folder: Where it is.
        tag_set: Its tags, with commas between.
        signature: Which signature; the usual one by default.
        inputs: Column to tensor.
        outputs: Tensor to column.
    """

    def __init__(
        self,
        folder: str,
        tag_set: str | None,
        signature: str | None,
        inputs: Mapping[str, str],
        outputs: Mapping[str, str],
    ) -> None:
        self._folder, self._tag_set, self._signature = folder.removeprefix("file://"), tag_set, signature
        self._inputs, self._outputs = dict(inputs), dict(outputs)

    @staticmethod
    def hidden(column: str) -> str:
        """Return what an output column is called as long as there are input columns, which may have its name."""
        return f"__output_{column}"

    def __call__(self, batch: Any) -> dict[str, list[Any]]:
        """Return the outputs for a batch."""
        import tensorflow as tf  # noqa: PLC0415 - only where rows are predicted

        predict = self._load(tf)
        specs = predict.structured_input_signature[1]
        tensors = {}
        for column, tensor in self._inputs.items():
            spec = specs[_named(tensor, specs, "input")]
            values = tf.constant(batch.column(column).to_pylist(), dtype=spec.dtype)
            if spec.shape.rank is not None and spec.shape[1:].is_fully_defined():  # rows of Spark are flat
                values = tf.reshape(values, [batch.num_rows, *spec.shape[1:]])
            tensors[spec.name] = values
        answers = predict(**tensors)
        outputs = {}
        for tensor, column in self._outputs.items():
            answer = answers[_named(tensor, answers, "output")].numpy()
            if len(answer) != batch.num_rows:
                raise InvalidInputError(f"{tensor!r} has {len(answer)} values for {batch.num_rows} rows.")
            outputs[self.hidden(column)] = answer.tolist()
        return outputs

    def _load(self, tf: Any) -> Any:
        key = (self._folder, self._tag_set)
        if key not in _loaded:
            _loaded.clear()
            tags = self._tag_set.split(",") if self._tag_set else None
            _loaded[key] = tf.saved_model.load(self._folder, tags=tags)
        signatures = _loaded[key].signatures
        name = self._signature or _USUAL_SIGNATURE
        if name not in signatures:
            known = ", ".join(signatures)
            raise InvalidInputError(
                f"{self._folder} has no signature {name!r}, but {known}.{nearest(name, signatures)}"
            )
        return signatures[name]


def _named(tensor: str, known: Mapping[str, Any], what: str) -> str:
    """Return a tensor by its name; the only one has any name, since Keras 3 gives other names than Keras 2 did."""
    if tensor in known:
        return tensor
    if len(known) == 1:
        return next(iter(known))
    names = ", ".join(sorted(known))
    raise InvalidInputError(f"The model has no {what} {tensor!r}, but {names}.{nearest(tensor, known)}")
