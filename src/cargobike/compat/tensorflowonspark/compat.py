"""What differs between versions of TensorFlow, for train functions."""

from __future__ import annotations

import tempfile
from typing import Any

from cargobike.devices import get_num_gpus

__all__ = ["disable_auto_shard", "export_saved_model", "is_gpu_available"]


def export_saved_model(model: Any, export_dir: str, is_chief: bool = False) -> None:
    """Write a Keras model as a saved model; only the chief's stays, the others write theirs where it is removed."""
    if is_chief:
        _export(model, export_dir.removeprefix("file://"))
        return
    with tempfile.TemporaryDirectory(prefix="cargobike-export-") as folder:
        _export(model, folder)


def _export(model: Any, folder: str) -> None:
    if hasattr(model, "export"):  # Keras 3
        model.export(folder, verbose=False)
    else:
        model.save(folder, save_format="tf")


def disable_auto_shard(options: Any) -> None:
    """Have a `tf.data` pipeline keep all rows that it gets: what is fed to a node is its own share."""
    import tensorflow as tf  # noqa: PLC0415 - only where it is used already

    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF


def is_gpu_available() -> bool:
    """Tell whether this process may use a GPU."""
    return get_num_gpus() > 0
