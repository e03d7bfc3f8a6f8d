"""How single values lie in columns: numbers and text as themselves, arrays as `.npy`, images as PNG or JPEG."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cargobike.compat.petastorm.stored.images import decode_image, encode_image
from cargobike.compat.petastorm.stored.spark_types import SparkType, as_spark, described
from cargobike.core.errors import InvalidInputError, SignatureError


class DataframeColumnCodec(ABC):
    """Encodes values of a field for a column, and decodes them; a subclass of yours works, but is not stored."""

    @abstractmethod
    def encode(self, unischema_field: Any, value: Any) -> Any:
        """Return what lies in the column for a value."""

    @abstractmethod
    def decode(self, unischema_field: Any, value: Any) -> Any:
        """Return a value again."""

    @abstractmethod
    def spark_dtype(self) -> Any:
        """Return Spark's type of the column."""

    def __str__(self) -> str:
        return f"{type(self).__name__}()"


class _BinaryCodec(DataframeColumnCodec):
    """A codec whose column holds bytes."""

    stored_type = SparkType("BinaryType")

    def spark_dtype(self) -> Any:
        """Return Spark's type of the column: bytes."""
        return as_spark(self.stored_type)


class CompressedImageCodec(_BinaryCodec):
    """Images of shape (height, width) or (height, width, 3), in RGB, as PNG or JPEG.

    Args:
        image_codec: `"png"`, which loses nothing, or `"jpeg"`.
        quality: Of JPEG, from 1 to 100.
    """

    def __init__(self, image_codec: str = "png", quality: int = 80) -> None:
        self._image_codec = "." + image_codec
        self._quality = quality

    @property
    def image_codec(self) -> str:
        """`"png"` or `"jpeg"`."""
        return self._image_codec[1:]

    def encode(self, unischema_field: Any, value: Any) -> bytearray:
        """Return an image as a file."""
        _check_array(unischema_field, value)
        return bytearray(encode_image(value, self.image_codec, self._quality))

    def decode(self, unischema_field: Any, value: bytes) -> NDArray[Any]:
        """Return the pixels of a file."""
        return decode_image(value)

    def __str__(self) -> str:
        return f"CompressedImageCodec({self.image_codec!r}, {self._quality})"


class NdarrayCodec(_BinaryCodec):
    """Arrays as `.npy`."""

    def encode(self, unischema_field: Any, value: Any) -> bytearray:
        """Return an array as a file."""
        _check_array(unischema_field, value)
        file = io.BytesIO()
        np.save(file, value, allow_pickle=False)
        return bytearray(file.getvalue())

    def decode(self, unischema_field: Any, value: bytes) -> NDArray[Any]:
        """Return the array of a file; one that holds pickled objects is refused."""
        value = bytes(value)  # Spark has arrays of bytes, which are no keys
        size = 10 + value[8] + 256 * value[9] if value[:7] == _NPY_1 and len(value) > 10 else 0
        layout = _layouts.get(value[:size]) if size else None
        if layout is None:
            array: NDArray[Any] = np.load(io.BytesIO(value), allow_pickle=False)
            if size and array.flags.c_contiguous and len(_layouts) < _MOST_LAYOUTS:
                _layouts[value[:size]] = (array.dtype, array.shape)
            return array
        dtype, shape = layout
        return np.frombuffer(value, dtype, offset=size).reshape(shape).copy()


_NPY_1: Final = b"\x93NUMPY\x01"
_MOST_LAYOUTS: Final = 256
_layouts: dict[bytes, tuple[np.dtype[Any], tuple[int, ...]]] = {}
"""What headers of `.npy` files mean: rows of a column mostly have the same one, and parsing it takes longest."""


class CompressedNdarrayCodec(_BinaryCodec):
    """Arrays as `.npz`, compressed."""

    def encode(self, unischema_field: Any, value: Any) -> bytearray:
        """Return an array as a file."""
        _check_array(unischema_field, value)
        file = io.BytesIO()
        np.savez_compressed(file, arr=value)
        return bytearray(file.getvalue())

    def decode(self, unischema_field: Any, value: bytes) -> NDArray[Any]:
        """Return the array of a file; one that holds pickled objects is refused."""
        with np.load(io.BytesIO(value), allow_pickle=False) as loaded:
            array: NDArray[Any] = loaded["arr"]
        return array


class ScalarCodec(DataframeColumnCodec):
    """Numbers, text and dates as they are.

    Args:
        spark_type: What the column is in Spark, such as `IntegerType()` of `pyspark.sql.types`.
    """

    def __init__(self, spark_type: Any) -> None:
        self._spark_type = spark_type

    def encode(self, unischema_field: Any, value: Any) -> Any:
        """Return a value as Spark takes it."""
        is_array = isinstance(value, np.ndarray) and value.shape == ()
        if not is_array and hasattr(value, "__len__") and not isinstance(value, str | bytes):
            raise SignatureError(
                f"Field {unischema_field.name!r} holds single values, and {type(value).__name__} was given."
            )
        if unischema_field.shape:
            raise InvalidInputError(
                f"Field {unischema_field.name!r} has the shape {unischema_field.shape}; ScalarCodec needs shape ()."
            )
        kind = described(self._spark_type).name
        if kind in ("ByteType", "ShortType", "IntegerType", "LongType"):
            return int(value)
        if kind in ("FloatType", "DoubleType"):
            return float(value)
        if kind == "BooleanType":
            return bool(value)
        if kind == "StringType":
            if not isinstance(value, str):
                raise InvalidInputError(
                    f"Field {unischema_field.name!r} holds text, and {type(value).__name__} was given."
                )
            return str(value)
        return value

    def decode(self, unischema_field: Any, value: Any) -> Any:
        """Return a value as the type of its field."""
        return unischema_field.numpy_dtype(value)

    def spark_dtype(self) -> Any:
        """Return Spark's type of the column."""
        return as_spark(self._spark_type)

    @property
    def stored_type(self) -> SparkType:
        """What Spark's type is called; needs no Spark."""
        return described(self._spark_type)

    def __str__(self) -> str:
        return f"ScalarCodec({self.stored_type.name}())"


def _check_array(field: Any, value: Any) -> None:
    """Refuse an array that is not of a field's type and shape; all mistakes at once."""
    if not isinstance(value, np.ndarray):
        raise InvalidInputError(
            f"Field {field.name!r} holds arrays of {np.dtype(field.numpy_dtype)}, and {type(value).__name__} was given."
        )
    mistakes = []
    if value.dtype.type != np.dtype(field.numpy_dtype).type:
        mistakes.append(f"Unexpected type: expected {np.dtype(field.numpy_dtype)}, got {value.dtype}.")
    if not fits_shape(value.shape, field.shape):
        mistakes.append(f"Unexpected dimensions: expected {field.shape}, got {value.shape}.")
    if mistakes:
        raise InvalidInputError(f"This value does not fit field {field.name!r}.", mistakes)


def fits_shape(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    """Tell whether an array has the shape of a field, in which `None` stands for any length.

    Example:
        >>> fits_shape((4, 3), (None, 3)), fits_shape((4, 3), (None, 2)), fits_shape((4,), (None, 3))
        (True, False, False)
    """
    pairs = zip(shape, wanted, strict=False)
    return len(shape) == len(wanted) and all(each is None or each == length for length, each in pairs)
