"""Images as PNG and JPEG, by Pillow; 16-bit colours, which it would cut to eight bits, by zlib and NumPy."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cargobike.core.errors import InvalidInputError, MissingLibraryError

_FORMATS: Final = {"png": "PNG", "jpeg": "JPEG", "jpg": "JPEG"}
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_LARGEST: Final = 1 << 30


def encode_image(pixels: NDArray[Any], kind: str, quality: int) -> bytes:
    """Return an image, grey or in RGB, as a file.

    Raises:
        InvalidInputError: If its shape or type cannot be kept in such a file.
    """
    if kind not in _FORMATS:
        raise InvalidInputError(f"Images can be kept as {', '.join(_FORMATS)}, not as {kind!r}.")
    if pixels.ndim != 2 and not (pixels.ndim == 3 and pixels.shape[2] == 3):
        raise InvalidInputError(
            f"Unexpected image dimensions {pixels.shape}; supported are (height, width) and (height, width, 3)."
        )
    allowed = (np.uint8, np.uint16) if _FORMATS[kind] == "PNG" else (np.uint8,)
    if pixels.dtype.type not in allowed:
        names = " or ".join(np.dtype(each).name for each in allowed)
        raise InvalidInputError(f"The pixels are {pixels.dtype}; {kind} keeps {names}.")
    if pixels.dtype == np.uint16:
        return _png_16(np.ascontiguousarray(pixels))
    file = io.BytesIO()
    image = _pillow().fromarray(np.ascontiguousarray(pixels))
    if _FORMATS[kind] == "JPEG":
        image.save(file, "JPEG", quality=quality)
    else:
        image.save(file, "PNG", compress_level=1)
    return file.getvalue()


def decode_image(data: bytes) -> NDArray[Any]:
    """Return the pixels of a file: (height, width) or (height, width, 3).

    Raises:
        InvalidInputError: If it is no such image.
    """
    if data[:8] == _SIGNATURE and len(data) > 33 and data[24] == 16 and data[25] in (0, 2) and not data[28]:
        return _from_png_16(data)
    images = _pillow()
    try:
        with images.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
            pixels = np.array(image.convert("RGB") if image.mode == "P" else image)
    except (OSError, ValueError, SyntaxError, images.DecompressionBombError) as error:
        raise InvalidInputError(f"This is no image that can be read: {error}") from None
    if pixels.dtype == np.bool_:
        pixels = pixels.astype(np.uint8) * np.uint8(255)
    if pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] == 3):
        return pixels
    raise InvalidInputError(
        f"Unexpected image dimensions {pixels.shape}; supported are (height, width) and (height, width, 3)."
    )


def _pillow() -> Any:
    try:
        from PIL import Image  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingLibraryError(
            "Images are read and written with Pillow, which is not installed: pip install 'cargobike[images]'",
            name="PIL",
        ) from error
    return Image


def _png_16(pixels: NDArray[Any]) -> bytes:
    height, width = pixels.shape[:2]
    lines = pixels.astype(">u2").reshape(height, -1).view(np.uint8)
    filtered = np.zeros((height, lines.shape[1] + 1), np.uint8)
    filtered[:, 1:] = lines
    header = struct.pack(">IIBBBBB", width, height, 16, 0 if pixels.ndim == 2 else 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(filtered.tobytes(), 1)), (b"IEND", b""))
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )


def _from_png_16(data: bytes) -> NDArray[Any]:
    width, height = struct.unpack(">II", data[16:24])
    colours = 3 if data[25] == 2 else 1
    stride = width * colours * 2
    if not width or not height or height * (stride + 1) > _LARGEST:
        raise InvalidInputError(f"This image is said to have {width:,} × {height:,} pixels, which is too many.")
    compressed, at = [], 8
    while at + 12 <= len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            compressed.append(data[at + 8 : at + 8 + length])
        at += 12 + length
    try:
        raw = zlib.decompressobj().decompress(b"".join(compressed), height * (stride + 1))
    except zlib.error as error:
        raise InvalidInputError(f"This is no image that can be read: {error}") from None
    if len(raw) != height * (stride + 1):
        raise InvalidInputError("This image was cut off.")
    lines = np.frombuffer(raw, np.uint8).reshape(height, stride + 1)
    pixels = _unfiltered(lines, colours * 2).view(">u2").astype(np.uint16)
    return pixels.reshape((height, width, 3) if colours == 3 else (height, width))


def _unfiltered(lines: NDArray[np.uint8], step: int) -> NDArray[np.uint8]:
    """Undo what PNG does to each line before it is compressed."""
    made = np.zeros((len(lines), lines.shape[1] - 1), np.uint8)
    above = np.zeros(lines.shape[1] - 1, np.uint8)
    for number, line in enumerate(lines):
        kind, values = int(line[0]), line[1:]
        if kind == 0:
            made[number] = values
        elif kind == 1:
            made[number] = np.cumsum(values.reshape(-1, step), axis=0, dtype=np.uint8).reshape(-1)
        elif kind == 2:
            made[number] = values + above
        elif kind in (3, 4):
            made[number] = _predicted(values, above, step, paeth=kind == 4)
        else:
            raise InvalidInputError("This image has lines of an unknown kind.")
        above = made[number]
    return made


def _predicted(values: NDArray[np.uint8], above: NDArray[np.uint8], step: int, *, paeth: bool) -> list[int]:
    line: list[int] = []
    before: list[int] = above.tolist()
    for at, value in enumerate(values.tolist()):
        left = line[at - step] if at >= step else 0
        up, corner = before[at], before[at - step] if at >= step else 0
        if paeth:
            guess = left + up - corner
            near = [abs(guess - each) for each in (left, up, corner)]
            add = (left, up, corner)[near.index(min(near))]
        else:
            add = (left + up) // 2
        line.append((value + add) & 255)
    return line
