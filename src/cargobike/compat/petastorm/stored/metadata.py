"""The metadata of a data set: a Parquet file without rows, whose key-value pairs say what the columns mean."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from cargobike.compat.petastorm.errors import PetastormMetadataError
from cargobike.compat.petastorm.stored.known import PickleError
from cargobike.compat.petastorm.stored.places import Place
from cargobike.compat.petastorm.stored.schemas import read_schema
from cargobike.compat.petastorm.unischema import Unischema

UNISCHEMA_KEY: Final = b"dataset-toolkit.unischema.v1"
ROW_GROUPS_PER_FILE_KEY: Final = b"dataset-toolkit.num_row_groups_per_file.v1"
ROWGROUPS_INDEX_KEY: Final = b"dataset-toolkit.rowgroups_index.v1"

_NAMES: Final = ("_common_metadata", "_metadata")
_LARGEST: Final = 512 << 20


def read_metadata(place: Place) -> dict[bytes, bytes]:
    """Return the key-value pairs of a data set, those of the newer file first; none if there is no such file."""
    found: dict[bytes, bytes] = {}
    for name in _NAMES:
        data = place.read(name, _LARGEST)
        if data is None:
            continue
        try:
            pairs = pq.read_metadata(io.BytesIO(data)).metadata or {}
        except (pa.ArrowException, OSError) as error:
            raise PetastormMetadataError(f"{place.shown}/{name} is no whole Parquet file: {error}") from error
        found = {**pairs, **found}
    return found


def schema_in(metadata: Mapping[bytes, bytes], shown: str) -> Unischema:
    """Return the schema of a data set.

    Raises:
        PetastormMetadataError: If there is none, or it is broken.
        UntrustedError: If its pickle names anything that no schema needs; nothing of it was run.
    """
    data = metadata.get(UNISCHEMA_KEY)
    if data is None:
        raise PetastormMetadataError(
            f"{shown} has no schema of petastorm's. Write it inside `with materialize_dataset(…)`, add it with "
            "petastorm-generate-metadata, or read plain Parquet with make_batch_reader."
        )
    try:
        return read_schema(data)
    except PickleError as error:
        raise PetastormMetadataError(f"The schema of {shown} is broken. {error}") from None


def write_metadata(place: Place, pairs: Mapping[bytes, bytes], columns: pa.Schema) -> None:
    """Add key-value pairs to the metadata of a data set; those that are there stay.

    Args:
        place: Where the data set is.
        pairs: What to add.
        columns: The columns of its files.
    """
    metadata = {**(columns.metadata or {}), **_own(read_metadata(place)), **pairs}
    file = io.BytesIO()
    pq.write_metadata(columns.with_metadata(metadata), file)
    place.write(_NAMES[0], file.getvalue())
    place.delete("._common_metadata.crc")  # the checksum of what was there before


def row_groups_json(counts: Mapping[str, int]) -> bytes:
    """Return how many row groups each file has, as it is stored."""
    return json.dumps(dict(counts)).encode()


def _own(metadata: Mapping[bytes, Any]) -> dict[bytes, Any]:
    return {key: value for key, value in metadata.items() if key != b"ARROW:schema"}
