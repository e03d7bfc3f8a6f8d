"""What gradients become on their way, on any backend of Keras."""

from __future__ import annotations

from typing import Any

import keras


class NoneCompressor:
    """Leaves tensors as they are."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """Return the tensor."""
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """Return the tensor."""
        return tensor


class FP16Compressor:
    """Sends floating point numbers with 16 bits."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """Return it with 16 bits, and its type."""
        kind = keras.backend.standardize_dtype(tensor.dtype)
        return (keras.ops.cast(tensor, "float16") if "float" in kind else tensor), kind

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """Return it with its own type."""
        return keras.ops.cast(tensor, ctx)


class Compression:
    """The choices for `compression=`."""

    none = NoneCompressor
    fp16 = FP16Compressor
