"""TFRecord files of `tf.train.Example`, read without TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.data.sources.files import Paths, as_paths, find_files, fingerprint_of, name_of
from cargobike.data.sources.listing import File
from cargobike.data.sources.mistakes import OnError, Skips, checked_choice, chosen_columns
from cargobike.data.sources.ranges import Forward, open_ranges
from cargobike.data.sources.source import Group, Source, SourceSpec
from cargobike.data.sources.tfrecords import framing
from cargobike.data.sources.tfrecords.columns import Column, infer
from cargobike.data.sources.tfrecords.decoding import MisfitError, decode

ENDINGS = (".tfrecord", ".tfrecords", ".tfrecord.gz", ".tfrecords.gz")
GROUP_BYTES = 16 << 20
_SAMPLED_FILES = 16
_SAMPLED_RECORDS = 256
_SAMPLE_BYTES = 16 << 20


class Part(NamedTuple):
    """Records of one file that are read together, and which of them are broken and left out."""

    file: int
    records: framing.Records
    bad: tuple[int, ...]


def open_tfrecord(
    paths: Paths,
    *,
    schema: Mapping[str, object] | None = None,
    on_error: OnError = "raise",
    group_bytes: int = GROUP_BYTES,
) -> TFRecordSource:
    """Open TFRecord files as a source of rows; see `cargobike.data.tfrecord`.

    Raises:
        NotFoundError: If there are no such files.
        InvalidInputError: If a file is broken, holds something else, or something given cannot be used.
    """
    checked_choice("on_error", on_error, ("raise", "skip"))
    given = as_paths(paths, "TFRecord files")
    files = find_files(given, ENDINGS)
    skips = Skips()
    found: list[Part] = []
    for number, file in enumerate(files):
        for one in framing.find_records(open_ranges(file), group_bytes):
            if isinstance(one, framing.Records):
                found.append(Part(number, one, ()))
            elif on_error == "skip":
                skips.add(f"{file.shown}, from record {one.record} at byte {one.place} on", one.why)
            else:
                raise InvalidInputError(
                    f"{file.shown}, record {one.record} at byte {one.place}: {one.why}.",
                    ['Write the file again; or read what comes before and have it counted: on_error="skip".'],
                )
    columns = _inferred(files, schema, on_error)
    parts = found
    if on_error == "skip":
        every = TFRecordSource(given, columns, found, skips)
        parts = [every.without_broken(group) for group in range(len(found))]
        parts = [part for part in parts if part.records.rows > len(part.bad)]
    return TFRecordSource(given, columns, parts, skips)


def _inferred(files: Sequence[File], schema: Mapping[str, object] | None, on_error: OnError) -> list[Column]:
    """Return the columns, from the first records of some files."""
    records: list[bytes] = []
    places: list[str] = []
    for file in files[:: max(1, len(files) // _SAMPLED_FILES)]:
        reader = Forward(open_ranges(file))
        wanted = _SAMPLED_RECORDS if not records else _SAMPLED_RECORDS // _SAMPLED_FILES
        for number, record in framing.first_records(reader, wanted, _SAMPLE_BYTES):
            place = f"{file.shown}, record {number}"
            if on_error == "skip":
                try:
                    infer([record], [place], None)
                except InvalidInputError:
                    continue
            records.append(record)
            places.append(place)
    return infer(records, places, schema)


class TFRecordSource(Source):
    """TFRecord files whose groups are stretches of whole records; their checksums are checked as they are read."""

    skips: Skips

    def __init__(self, paths: Sequence[str], columns: Sequence[Column], parts: Sequence[Part], skips: Skips) -> None:
        files = find_files(paths, ENDINGS)
        self.name = name_of(files)
        self._paths = list(paths)
        self.schema = pa.schema([column.field() for column in columns])
        self.skips = skips
        self._files, self._columns, self._parts = list(files), list(columns), list(parts)
        self._known = frozenset(column.name for column in columns)
        self._ranges = [open_ranges(file) for file in files]
        self.groups = [
            Group(
                f"{files[part.file].shown}, records from {part.records.first}",
                part.records.rows - len(part.bad),
                part.records.end - part.records.start,
            )
            for part in parts
        ]
        self.fingerprint = fingerprint_of(files, {"columns": [repr(column) for column in columns]})

    def read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of one group.

        Raises:
            InvalidInputError: If a checksum is wrong, or a record does not fit; names file and record.
            StoreError: If the file is gone or has changed.
        """
        names = chosen_columns(columns, self.schema)
        by_name = {column.name: column for column in self._columns}
        wanted = self._columns if names is None else [by_name[name] for name in names]
        part = self._parts[group]
        data, starts, lengths = self._bytes(part)
        left_out = set(part.bad)
        for number in framing.wrong_checksums(data, starts, lengths):
            if number not in left_out:
                raise self._mistake(part, number, "its checksum is wrong: the file is damaged.")
        kept = np.delete(np.arange(part.records.rows), part.bad)
        try:
            return decode(data, starts[kept], lengths[kept], wanted, self._known)
        except MisfitError as error:
            raise self._mistake(part, int(kept[error.record]), f"{error}.") from None

    def without_broken(self, group: int) -> Part:
        """Return a group without its records that cannot be read, and record each of them."""
        part = self._parts[group]
        data, starts, lengths = self._bytes(part)
        bad: dict[int, str] = dict.fromkeys(framing.wrong_checksums(data, starts, lengths), "its checksum is wrong")
        waiting = [np.delete(np.arange(part.records.rows), list(bad))]
        while waiting:
            kept = waiting.pop()
            try:
                decode(data, starts[kept], lengths[kept], self._columns, self._known)
            except MisfitError as error:
                bad[int(kept[error.record])] = str(error)
                rest = np.delete(kept, error.record)
                waiting += [half for half in np.array_split(rest, 2) if len(half)]
        for number in sorted(bad):
            self.skips.add(f"{self._files[part.file].shown}, record {part.records.first + number}", bad[number])
        return part._replace(bad=tuple(sorted(bad)))

    def _bytes(self, part: Part) -> tuple[bytes, framing.Places, framing.Places]:
        records = part.records
        data = self._ranges[part.file].read(records.start, records.end - records.start)
        try:
            return data, *framing.spans_of(data, records.rows)
        except ValueError as error:
            raise StoreError(f"{self._files[part.file].shown}: {error}. Open the data again.") from None

    def _mistake(self, part: Part, number: int, why: str) -> InvalidInputError:
        return InvalidInputError(
            f"{self._files[part.file].shown}, record {part.records.first + number}: {why}",
            ['Write the file again; or leave such records out and have them counted: on_error="skip".'],
        )

    def spec(self) -> SourceSpec:
        """Return what opens this source again, without looking through the files once more."""
        return SourceSpec(
            opener=f"{__name__}:reopen",
            options={
                "paths": self._paths,
                "columns": [[*column[:3], column.shape and list(column.shape)] for column in self._columns],
                "parts": [[part.file, list(part.records), list(part.bad)] for part in self._parts],
                "skips": self.skips.as_data(),
            },
            fingerprint=self.fingerprint,
        )


def records_of(path: str) -> Iterator[bytes]:
    """Yield the records of one file as they are, after their checksums were checked.

    Raises:
        NotFoundError: If there is no such file.
        InvalidInputError: If it is damaged; names the record.
    """
    (file,) = find_files([path], ENDINGS)
    ranges = open_ranges(file)
    for stretch in framing.find_records(ranges, GROUP_BYTES):
        if isinstance(stretch, framing.Broken):
            raise InvalidInputError(f"{file.shown}, record {stretch.record} at byte {stretch.place}: {stretch.why}.")
        data = ranges.read(stretch.start, stretch.end - stretch.start)
        starts, lengths = framing.spans_of(data, stretch.rows)
        for number in framing.wrong_checksums(data, starts, lengths):
            raise InvalidInputError(f"{file.shown}, record {stretch.first + number}: its checksum is wrong.")
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
            yield data[start : start + length]


def reopen(options: dict[str, Any]) -> TFRecordSource:
    """Open the source that a spec describes."""
    columns = [
        Column(name, kind, dtype, None if shape is None else tuple(shape))
        for name, kind, dtype, shape in options["columns"]
    ]
    parts = [Part(file, framing.Records(*records), tuple(bad)) for file, records, bad in options["parts"]]
    return TFRecordSource(options["paths"], columns, parts, Skips.from_data(options["skips"]))
