"""For train functions written in Keras 3: `prepare` a model and call `fit` as usual.

Works on Keras' TensorFlow and torch backends; see `cargobike.training.keras_averaging`.
"""

from __future__ import annotations

from cargobike.training.keras_averaging import prepare, shard

__all__ = ["prepare", "shard"]
