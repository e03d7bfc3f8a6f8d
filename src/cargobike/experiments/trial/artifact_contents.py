"""Turns what a train function wants to keep into a file that can be looked at: text, PNG, CSV, JSON.

Libraries are recognized by what their objects can do, and never imported here.
"""

from __future__ import annotations

import csv
import io
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from cargobike.core.errors import InvalidInputError

_ALLOWED = (
    "Allowed are a path, text=…, an image (PIL, or an array or tensor of height × width with 1, 3 or 4 channels), a "
    "figure of Matplotlib, a table (a list of dicts, a DataFrame, an Arrow table) and a dict of plain values."
)
_PICTURES = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP", ".gif": "GIF"}


def content_of(thing: Any) -> tuple[str, str, bytes]:
    r"""Return what to call a thing, the ending of its file, and the content.

    Raises:
        InvalidInputError: If it is nothing that can be kept.

    Example:
        >>> content_of([{"x": 1, "y": 2}, {"x": 3, "z": 4}])
        ('table', '.csv', b'x,y,z\r\n1,2,\r\n3,,4\r\n')
    """
    if hasattr(thing, "savefig"):
        buffer = io.BytesIO()
        thing.savefig(buffer, format="png")
        return "figure", ".png", buffer.getvalue()
    rows = _rows_of(thing)
    if rows is not None:
        return "table", ".csv", _as_csv(rows)
    if isinstance(thing, Mapping):
        return "values", ".json", json.dumps(dict(thing), indent=2, default=str).encode()
    array = _array_of(thing)
    if array is not None:
        return "image", ".png", _as_png(array)
    raise InvalidInputError(f"A {type(thing).__name__} cannot be kept as an artifact. {_ALLOWED}")


def picture_of(thing: Any, name: str | None) -> bytes | None:
    """Return an image of PIL in the format that its name asks for, PNG by default; `None` if it is no such image.

    Raises:
        InvalidInputError: If the name asks for another format.
    """
    if not (hasattr(thing, "getbands") and hasattr(thing, "save")):
        return None
    suffix = PurePosixPath(name or "").suffix.lower() or ".png"
    if suffix not in _PICTURES:
        raise InvalidInputError(f"name={name!r}: an image is kept as {', '.join(_PICTURES)}.")
    buffer = io.BytesIO()
    kind = _PICTURES[suffix]
    (thing.convert("RGB") if kind == "JPEG" else thing).save(buffer, format=kind)
    return buffer.getvalue()


def _rows_of(thing: Any) -> list[Mapping[Any, Any]] | None:
    """Return the rows of a table, `None` if it is none."""
    if isinstance(thing, Sequence) and not isinstance(thing, str | bytes | bytearray):
        rows = list(thing)
        return rows if rows and all(isinstance(row, Mapping) for row in rows) else None
    if hasattr(thing, "to_pylist") and hasattr(thing, "column_names"):  # Arrow
        return list(thing.to_pylist())
    if hasattr(thing, "to_dicts"):  # polars
        return list(thing.to_dicts())
    if hasattr(thing, "to_dict") and hasattr(thing, "columns"):  # pandas
        return list(thing.to_dict(orient="records"))
    return None


def _as_csv(rows: list[Mapping[Any, Any]]) -> bytes:
    columns = list(dict.fromkeys(str(name) for row in rows for name in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, restval="")
    writer.writeheader()
    writer.writerows({str(name): value for name, value in row.items()} for row in rows)
    return text.getvalue().encode("utf-8", "replace")


def _array_of(thing: Any) -> Any:
    """Return an array or tensor as an array of bytes, height × width × channels; `None` if it is no image."""
    if hasattr(thing, "detach"):
        thing = thing.detach().cpu().numpy()
    shape = getattr(thing, "shape", None)
    if not isinstance(shape, tuple) or not hasattr(thing, "astype") or len(shape) not in (2, 3) or 0 in shape:
        return None
    array = thing[:, :, None] if len(shape) == 2 else thing
    if array.shape[2] not in (1, 3, 4) and array.shape[0] in (1, 3, 4):  # channels first, as torch has them
        array = array.transpose(1, 2, 0)
    if array.shape[2] not in (1, 3, 4):
        return None
    if array.dtype.kind == "f":
        array = (array.clip(0.0, 1.0) * 255.0).round()
    elif array.dtype.kind == "b":
        array = array * 255
    elif array.dtype.kind not in "iu":
        return None
    return array.clip(0, 255).astype("uint8")


def _as_png(array: Any) -> bytes:
    """Write an image as PNG, which takes a few lines and no library."""
    height, width, channels = array.shape
    colour = {1: 0, 3: 2, 4: 6}[channels]
    line = width * channels
    data = array.tobytes()
    raw = b"".join(b"\0" + data[row * line : (row + 1) * line] for row in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(raw)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in parts)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
