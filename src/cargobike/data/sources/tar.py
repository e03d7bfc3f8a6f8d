"""WebDataset tar files: members that stand side by side and share a key are the parts of one sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.data.sources.files import Paths, as_paths, find_files, fingerprint_of, name_of
from cargobike.data.sources.listing import File
from cargobike.data.sources.mistakes import OnError, Skips, checked_choice, chosen_columns
from cargobike.data.sources.ranges import Forward, Held, open_ranges
from cargobike.data.sources.source import Group, Source, SourceSpec
from cargobike.data.sources.tars.decoding import DECODERS, Field, SampleError, learn
from cargobike.data.sources.tars.members import BrokenTarError, Sample, members, samples_of

ENDINGS = (".tar", ".tar.gz", ".tgz")
GROUP_BYTES = 32 << 20
KEY = "__key__"
_SAMPLED_FILES = 16
_SAMPLED = 64
_SAMPLE_BYTES = 64 << 20


class Part(NamedTuple):
    """Samples of one tar that are read together, and which of them are wrong and left out."""

    file: int
    start: int
    end: int
    rows: int
    first: int
    bad: tuple[int, ...] = ()


def open_webdataset(
    paths: Paths,
    *,
    decode: Mapping[str, str] | None = None,
    on_error: OnError = "raise",
    group_bytes: int = GROUP_BYTES,
) -> TarSource:
    """Open WebDataset tar files as a source of rows; see `cargobike.data.webdataset`.

    Raises:
        NotFoundError: If there are no such files.
        InvalidInputError: If a file is no tar, or something given cannot be used.
    """
    checked_choice("on_error", on_error, ("raise", "skip"))
    for ending, how in (decode or {}).items():
        checked_choice(f"decode[{ending!r}]", how, tuple(DECODERS))
    given = as_paths(paths, "tar files")
    files = find_files(given, ENDINGS)
    skips = Skips()
    parts = [part for number, file in enumerate(files) for part in _scan(file, number, on_error, group_bytes, skips)]
    fields = _inferred(files, {ending.lower(): how for ending, how in (decode or {}).items()}, on_error)
    if on_error == "skip":
        every = TarSource(given, fields, parts, skips)
        parts = [every.without_wrong(group) for group in range(len(parts))]
        parts = [part for part in parts if part.rows > len(part.bad)]
    return TarSource(given, fields, parts, skips)


def _scan(file: File, number: int, on_error: OnError, target: int, skips: Skips) -> Iterator[Part]:
    """Yield stretches of whole samples of one tar, found by its headers."""
    begin = rows = first = end = 0
    last_key = None
    try:
        for member in members(Forward(open_ranges(file)), with_data=False):
            if member.key != last_key:
                if end - begin >= target:
                    yield Part(number, begin, end, rows, first)
                    begin, first, rows = end, first + rows, 0
                rows += 1
                last_key = member.key
            end = member.after
    except BrokenTarError as error:
        if on_error == "raise":
            raise InvalidInputError(
                f"{file.shown}, byte {error.place}: {error}.",
                ['Write the tar again; or read what comes before and have the rest counted: on_error="skip".'],
            ) from None
        skips.add(f"{file.shown}, from byte {error.place} on", str(error))
    if rows:
        yield Part(number, begin, end, rows, first)


def _inferred(files: Sequence[File], decode: Mapping[str, str], on_error: OnError) -> list[Field]:
    """Return the fields, from the first samples of some files."""
    parts: dict[str, list[tuple[str, bytes]]] = {}
    for number, file in enumerate(files[:: max(1, len(files) // _SAMPLED_FILES)]):
        for sample in islice(_first(file), _SAMPLED if number == 0 else _SAMPLED // _SAMPLED_FILES):
            for ending, data in sample.parts.items():
                if on_error == "raise" or _can_be_learned(ending, data, decode):
                    parts.setdefault(ending, []).append((f"{file.shown}, sample {sample.key!r}", data))
    return learn(parts, decode)


def _first(file: File) -> Iterator[Sample]:
    """Yield the first samples of a tar; what is wrong with it is said when it is read."""
    reader = Forward(open_ranges(file))
    try:
        for sample in samples_of(reader):
            yield sample
            if reader.place > _SAMPLE_BYTES:
                return
    except BrokenTarError:
        return


def _can_be_learned(ending: str, data: bytes, decode: Mapping[str, str]) -> bool:
    try:
        learn({ending: [("", data)]}, {name: how for name, how in decode.items() if name == ending})
    except InvalidInputError:
        return False
    return True


class TarSource(Source):
    """Tar files whose groups are stretches of whole samples; a group is read in one go and taken apart in memory."""

    skips: Skips

    def __init__(self, paths: Sequence[str], fields: Sequence[Field], parts: Sequence[Part], skips: Skips) -> None:
        files = find_files(paths, ENDINGS)
        self.name = name_of(files)
        self.skips = skips
        self.schema = pa.schema([pa.field(KEY, pa.string()), *(field.column for field in fields)])
        self._paths, self._files, self._parts = list(paths), files, list(parts)
        self._fields = {field.ending: field for field in fields}
        self._ranges = [open_ranges(file) for file in files]
        self.groups = [
            Group(
                f"{files[part.file].shown}, samples from {part.first}", part.rows - len(part.bad), part.end - part.start
            )
            for part in parts
        ]
        self.fingerprint = fingerprint_of(files, {"fields": [(*field[:2], str(field.column)) for field in fields]})

    def read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of one group.

        Raises:
            InvalidInputError: If a sample cannot be decoded; names file and sample.
            StoreError: If the file is gone or has changed.
        """
        names = self.schema.names if columns is None else chosen_columns(columns, self.schema) or []
        part = self._parts[group]
        wanted = [self._fields[name] for name in names if name != KEY]
        rows: list[dict[str, Any]] = []
        left_out = frozenset(part.bad)
        for number, sample in enumerate(self._samples(part)):
            if number in left_out:
                continue
            try:
                rows.append(self._decoded(sample, wanted))
            except SampleError as error:
                raise self._mistake(part, f"sample {sample.key!r}: {error}") from None
        schema = pa.schema([self.schema.field(name) for name in names])
        arrays = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _decoded(self, sample: Sample, wanted: Sequence[Field]) -> dict[str, Any]:
        """Return the values of a sample; a part that it lacks is null."""
        unknown = sorted(sample.parts.keys() - self._fields.keys())
        if unknown:
            raise SampleError(
                f"it has a part {unknown[0]!r}, which the samples that were looked at first do not have. Name it: "
                f"decode={{{unknown[0]!r}: 'bytes'}}."
            )
        row: dict[str, Any] = {KEY: sample.key}
        for field in wanted:
            if field.ending in sample.parts:
                row[field.ending] = field.value(sample.parts[field.ending])
        return row

    def _samples(self, part: Part) -> Iterator[Sample]:
        data = self._ranges[part.file].read(part.start, part.end - part.start)
        try:
            yield from samples_of(Forward(Held(data)))
        except BrokenTarError as error:
            raise self._mistake(part, f"byte {part.start + error.place}: {error}.") from None

    def _mistake(self, part: Part, why: str) -> InvalidInputError:
        return InvalidInputError(
            f"{self._files[part.file].shown}, {why}",
            ['Write the tar again; or leave such samples out and have them counted: on_error="skip".'],
        )

    def without_wrong(self, group: int) -> Part:
        """Return a group without the samples that cannot be decoded, and record each of them."""
        part = self._parts[group]
        bad = []
        for number, sample in enumerate(self._samples(part)):
            try:
                self._decoded(sample, list(self._fields.values()))
            except SampleError as error:
                bad.append(number)
                self.skips.add(f"{self._files[part.file].shown}, sample {sample.key!r}", str(error))
        return part._replace(bad=tuple(bad))

    def spec(self) -> SourceSpec:
        """Return what opens this source again, without looking through the files once more."""
        return SourceSpec(
            opener=f"{__name__}:reopen",
            options={
                "paths": self._paths,
                "how": [field.how for field in self._fields.values()],
                "schema": self.schema.serialize().to_pybytes().hex(),
                "parts": [[*part[:5], list(part.bad)] for part in self._parts],
                "skips": self.skips.as_data(),
            },
            fingerprint=self.fingerprint,
        )


def reopen(options: dict[str, Any]) -> TarSource:
    """Open the source that a spec describes."""
    schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(options["schema"])))
    columns = [field for field in schema if field.name != KEY]
    fields = [Field(column.name, how, column) for column, how in zip(columns, options["how"], strict=True)]
    parts = [Part(file, start, end, rows, first, tuple(bad)) for file, start, end, rows, first, bad in options["parts"]]
    return TarSource(options["paths"], fields, parts, Skips.from_data(options["skips"]))
