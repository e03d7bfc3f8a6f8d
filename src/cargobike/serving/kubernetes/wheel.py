"""Cargobike itself as a wheel, made of what runs here: an image has the code that the deployment was tried with."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

from cargobike.core.errors import InvalidInputError
from cargobike.core.package import PACKAGE_PARENT

NAME: Final = "cargobike"
_MADE_AT: Final = (1980, 1, 1, 0, 0, 0)
"""Of every file, so that the same code is the same wheel, and layers of images are found again."""
_METADATA: Final = ("METADATA", "entry_points.txt")
_WHEEL: Final = "Wheel-Version: 1.0\nGenerator: cargobike\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def write_wheel(folder: Path, extras: Sequence[str] = ()) -> Path:
    """Write the wheel into a folder, in place of others of ours, and return it.

    Args:
        folder: Where.
        extras: What of Cargobike is to be installed from it.

    Raises:
        InvalidInputError: If what is installed here says nothing about itself, or less than the code has.
    """
    again = "Install it again (`pip install …`, with `--editable` as before)."
    try:
        found = metadata.distribution(NAME)
    except metadata.PackageNotFoundError as error:
        raise InvalidInputError(
            f"Cargobike is on the path, but not installed; an image needs a package. {again}"
        ) from error
    if missing := sorted(set(extras) - set(found.metadata.get_all("Provides-Extra") or ())):
        raise InvalidInputError(
            f"The Cargobike that is installed here does not know its own extras {', '.join(missing)}: it was "
            f"installed before the code got them. {again}"
        )
    about = f"{NAME}-{found.version}.dist-info"
    files = dict(_sources())
    files |= {f"{about}/{name}": (found.read_text(name) or "").encode() for name in _METADATA}
    files[f"{about}/WHEEL"] = _WHEEL.encode()
    files[f"{about}/RECORD"] = _record(files, f"{about}/RECORD")
    for old in folder.glob(f"{NAME}-*.whl"):
        old.unlink()
    wheel = folder / f"{NAME}-{found.version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _MADE_AT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return wheel


def _sources() -> Iterator[tuple[str, bytes]]:
    root = Path(PACKAGE_PARENT) / NAME
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"{NAME}/{path.relative_to(root).as_posix()}", path.read_bytes()


def _record(files: dict[str, bytes], own: str) -> bytes:
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    return "".join([*lines, f"{own},,\n"]).encode()
