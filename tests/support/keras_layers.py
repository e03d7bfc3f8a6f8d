"""A layer as a user writes it in a module of its own, for tests that save it."""

from __future__ import annotations

from typing import Any

import keras


class Scaled(keras.layers.Layer):
    """Multiplies by a number."""

    def __init__(self, factor: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.factor = factor

    def call(self, inputs: Any) -> Any:
        return inputs * self.factor

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "factor": self.factor}
