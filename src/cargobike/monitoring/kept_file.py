"""A reference in a file: plain data, read as such."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Final

import msgspec

from cargobike.core.errors import NotFoundError, StoreError
from cargobike.core.values.kinds import read_path
from cargobike.monitoring.calibrating.calibration import CalibrationRecord
from cargobike.monitoring.rows.pool import PoolRecord
from cargobike.monitoring.states.layout import Layout
from cargobike.store.files.storages import open_storage
from cargobike.store.history.environment import without_credentials

_MARK: Final = b"cargobike reference 1\n"
"""How such a file begins; the number is that of the format."""


class ReferenceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a reference is made of."""

    window: int
    false_alarms: float
    seed: int
    layout: Layout
    state: bytes
    pool: PoolRecord
    calibrations: list[CalibrationRecord]


def write_record(record: ReferenceRecord, path: str | os.PathLike[str]) -> None:
    """Write a reference, whole or not at all.

    Raises:
        StoreError: If it cannot be written.
    """
    folder, name = _place(path)
    open_storage(folder).write(name, _MARK + msgspec.msgpack.encode(record))


@contextlib.contextmanager
def read_record(path: str | os.PathLike[str]) -> Iterator[ReferenceRecord]:
    """Give a reference that was written; what cannot be understood of it, inside as well, is an error about the file.

    Raises:
        NotFoundError: If there is no such file.
        StoreError: If it is no reference.
    """
    folder, name = _place(path)
    data = open_storage(folder).read(name)
    shown = without_credentials(os.fspath(path))
    if data is None:
        raise NotFoundError(f"There is no reference at {shown}.", wanted=shown)
    if not data.startswith(_MARK):
        raise StoreError(f"{shown} is no reference that this version can read; write it with Reference.save.")
    try:
        yield msgspec.msgpack.decode(data[len(_MARK) :], type=ReferenceRecord)
    except (msgspec.MsgspecError, ValueError, KeyError) as error:
        raise StoreError(f"{shown} is damaged: it holds {error}. Save the reference again.") from error


def _place(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the folder and the name of a file, on any storage."""
    text = read_path("path", path)
    if "://" not in text:
        text = os.path.abspath(os.path.expanduser(text))
    folder, _, name = text.rpartition("/")
    return folder or "/", name
