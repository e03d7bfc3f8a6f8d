"""The manifest of one version of a table: what is in it, and in which files.

Manifests may come from strangers: what is read here is checked, and no path of one leads out of its table.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Annotated, Any

import msgspec
import pyarrow as pa
from msgspec import Meta

from cargobike.core.origins import Origin
from cargobike.store.assets.manifests import FORMAT, read_manifest

_PART = re.compile(r"[1-9][0-9]{0,8}/part-[0-9a-z-]{1,80}\.parquet")

Count = Annotated[int, Meta(ge=0, le=2**62)]
Hex = Annotated[str, Meta(pattern="^[0-9a-f]{0,64}$")]


class GroupEntry(msgspec.Struct, frozen=True, array_like=True):
    """A row group: its rows, about how many bytes they need in memory, and the digest of its values."""

    rows: Count
    size_bytes: Count
    digest: Hex


class FileEntry(msgspec.Struct, frozen=True):
    """A Parquet file: its path below the table's address, its size, its row groups."""

    path: str
    size_bytes: Count
    groups: list[GroupEntry]

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(group.rows for group in self.groups)


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a table.

    Attributes:
        name: What the table was called when it was written.
        version: Its number, from 1.
        fingerprint: Names, types and shapes of the columns and all values, in their order and row groups.
        rows: How many rows it has.
        columns: Types of the columns by name, in order, for people.
        schema: The same as Arrow writes it, in base64.
        files: Where the rows are, in order.
        source: What it was made from, such as `pandas` or `spark`.
        origin: What its rows were read from, if that is a table, a training dataset or files.
        token: Drawn by its writer; its files have it in their names.
        at: When it was written, in seconds since 1970.
        step: What names the step of a pipeline that wrote it; empty outside of pipelines.
        removed_at: When its files were deleted; what was known of them stays.
    """

    format: int = FORMAT
    name: str
    version: Annotated[int, Meta(ge=1, le=10**9)]
    fingerprint: Hex
    rows: Count
    columns: dict[str, str]
    schema: str
    files: list[FileEntry]
    source: str = ""
    token: Annotated[str, Meta(pattern="^[0-9a-f]{0,32}$")] = ""
    at: float = 0.0
    user: str = ""
    host: str = ""
    cargobike: str = ""
    removed_at: float | None = None
    removed_by: str = ""
    origin: Origin | None = None
    step: str = ""

    @property
    def size_bytes(self) -> int:
        """What the files need on the storage."""
        return sum(file.size_bytes for file in self.files)

    def arrow_schema(self) -> pa.Schema:
        """Return names and types of the columns, and the shapes of tensors."""
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.schema)))


def encode_schema(schema: pa.Schema) -> str:
    """Return a schema as text, for a manifest."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def decode_manifest(data: bytes, place: str) -> Manifest:
    """Return the manifest that some bytes hold; `place` says where they are from.

    Raises:
        StoreError: If they are no manifest, or one that cannot be trusted; says what is wrong.
    """
    return read_manifest(data, Manifest, place, noun="a table", mistakes_in=_mistakes)


def _mistakes(manifest: Manifest) -> list[str]:
    mistakes = [
        f"the file {file.path!r} is not one of this table" for file in manifest.files if not _PART.fullmatch(file.path)
    ]
    paths = [file.path for file in manifest.files]
    if len(set(paths)) < len(paths):
        mistakes.append("a file is listed twice")
    if sum(file.rows for file in manifest.files) != manifest.rows:
        mistakes.append(f"its files have other than {manifest.rows} rows")
    try:
        schema: Any = manifest.arrow_schema()
    except (binascii.Error, ValueError, OSError, pa.ArrowException) as error:
        return [*mistakes, f"its schema cannot be read ({error})"]
    if schema.names != list(manifest.columns):
        mistakes.append("its schema has other columns than it lists")
    return mistakes
