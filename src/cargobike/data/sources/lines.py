"""Rows of text files, one record after the other: what CSV and JSON-lines have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.data.sources.files import find_files, fingerprint_of, name_of
from cargobike.data.sources.listing import File
from cargobike.data.sources.mistakes import OnError, Skips, chosen_columns
from cargobike.data.sources.ranges import Ranges, open_ranges
from cargobike.data.sources.source import Group, Source, SourceSpec
from cargobike.data.sources.splitting import RecordEnds, Stretch, split

GROUP_BYTES = 16 << 20
"""How much text makes a group; decoded it has about the same size."""
_SAMPLED_FILES = 16
_SAMPLE_BYTES = 1 << 20


class LineFormat(ABC):
    """How text becomes rows; every method may be called from several threads."""

    name: str
    endings: tuple[str, ...]
    """How names of such files end."""
    delimiter: str | None
    """What is between fields if newlines may stand in quotes."""
    schema: pa.Schema

    @abstractmethod
    def begin(self, file: File, ranges: Ranges) -> tuple[int, int]:
        """Return where the records of a file begin, after its header, and in which line; checks the header."""

    @abstractmethod
    def parse(self, text: bytes, columns: Sequence[str] | None) -> pa.Table:
        """Return the rows of whole records.

        Raises:
            pa.ArrowInvalid: If a record is wrong.
        """

    @abstractmethod
    def infer(self, samples: list[tuple[File, bytes]], on_error: OnError) -> pa.Schema:
        """Return the schema, from the beginnings of some files."""

    @abstractmethod
    def options(self) -> dict[str, object]:
        """Return what makes the same format elsewhere."""


class Part(NamedTuple):
    """Records of one file that are read together, and which of them are wrong and left out."""

    file: int
    stretch: Stretch
    bad: tuple[int, ...]


class LinesSource(Source):
    """Text files whose groups are stretches of whole records.

    Args:
        paths: What names the files.
        form: The format, whose schema is known.
        parts: The stretches, as `scan` finds them.
        skips: What was left out.
    """

    skips: Skips

    def __init__(self, paths: Sequence[str], form: LineFormat, parts: Sequence[Part], skips: Skips) -> None:
        files = find_files(paths, form.endings)
        self.name = name_of(files)
        self._paths = list(paths)
        self.schema = form.schema
        self.skips = skips
        self._files, self._form, self._parts = list(files), form, list(parts)
        self._ranges = [open_ranges(file) for file in files]
        self.groups = [
            Group(
                f"{files[part.file].shown}, lines from {part.stretch.first_line}",
                part.stretch.rows - len(part.bad),
                part.stretch.end - part.stretch.start,
            )
            for part in parts
        ]
        self.fingerprint = fingerprint_of(files, form.options())

    def read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of one group.

        Raises:
            InvalidInputError: If a record does not fit the schema; names file and line.
            StoreError: If the file is gone or has changed.
        """
        names = chosen_columns(columns, self.schema)
        part = self._parts[group]
        stretch, file = part.stretch, self._files[part.file]
        text = self._ranges[part.file].read(stretch.start, stretch.end - stretch.start)
        if len(text) != stretch.end - stretch.start:
            raise StoreError(f"{file.shown} is shorter than when it was opened. Open the data again.")
        records = Records(text, stretch.first_line, self._form.delimiter)
        if part.bad:
            text = records.without(part.bad)
        try:
            table = self._form.parse(text, names)
        except pa.ArrowInvalid as error:
            raise self._mistake(file, records, error) from None
        if table.num_rows != self.groups[group].rows:
            raise self._mistake(file, records, None)
        return table

    def _mistake(self, file: File, records: Records, error: Exception | None) -> InvalidInputError:
        for _, line, why in find_bad(records, self._form):
            return InvalidInputError(f"{file.shown}, line {line}: {why}", [_WHAT_TO_DO.format(name=self._form.name)])
        return InvalidInputError(
            f"{file.shown}, lines from {records.first_line}: {error or 'the records cannot be told apart'}. "
            r"Each record must end with a newline (\n or \r\n)."
        )

    def spec(self) -> SourceSpec:
        """Return what opens this source again, without looking through the files once more."""
        return SourceSpec(
            opener=f"{type(self._form).__module__}:reopen",
            options={
                "paths": self._paths,
                "form": self._form.options(),
                "schema": self.schema.serialize().to_pybytes().hex(),
                "parts": [[part.file, list(part.stretch), list(part.bad)] for part in self._parts],
                "skips": self.skips.as_data(),
            },
            fingerprint=self.fingerprint,
        )


_WHAT_TO_DO = (
    "Correct the file; or say what the column holds, such as schema={{'column': 'string'}}; "
    'or leave such records out and have them counted: on_error="skip".'
)


class Records:
    """The records of a stretch of text, one by one."""

    def __init__(self, text: bytes, first_line: int, delimiter: str | None) -> None:
        self.text, self.first_line, self._delimiter = text, first_line, delimiter
        self._known: list[tuple[int, int]] | None = None

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Where each record that is not empty begins and ends."""
        if self._known is None:
            ends = RecordEnds(self._delimiter).find(np.frombuffer(self.text, np.uint8)).tolist()
            if not ends or ends[-1] != len(self.text):
                ends.append(len(self.text))
            begins = [0, *ends[:-1]]
            pairs = zip(begins, ends, strict=True)
            self._known = [(begin, end) for begin, end in pairs if self.text[begin:end] not in _EMPTY]
        return self._known

    def slice(self, low: int, high: int) -> bytes:
        """Return the text of some records."""
        return self.text[self.spans[low][0] : self.spans[high - 1][1]]

    def line(self, record: int) -> int:
        """Return the number of the line in which a record begins."""
        return self.first_line + self.text.count(b"\n", 0, self.spans[record][0])

    def without(self, bad: Sequence[int]) -> bytes:
        """Return the text without some records."""
        left_out = set(bad)
        return b"".join(
            self.text[begin:end] for number, (begin, end) in enumerate(self.spans) if number not in left_out
        )


_EMPTY = (b"", b"\n", b"\r\n", b"\r")


def find_bad(records: Records, form: LineFormat) -> Iterator[tuple[int, int, str]]:
    """Yield number, line and reason of each record that is wrong, by halving what cannot be parsed."""
    waiting = [(0, len(records.spans))]
    while waiting:
        low, high = waiting.pop()
        if low == high:
            continue
        why = _why_not(records.slice(low, high), high - low, form)
        if why is None:
            continue
        if high - low == 1:
            yield low, records.line(low), why
        else:
            middle = (low + high) // 2
            waiting += [(middle, high), (low, middle)]


def readable(records: Records, parse: Callable[[bytes], pa.Table]) -> Iterator[pa.Table]:
    """Yield tables of the records that can be parsed, by halving what cannot."""
    waiting = [(0, len(records.spans))]
    while waiting:
        low, high = waiting.pop()
        try:
            if low < high:
                yield parse(records.slice(low, high))
        except pa.ArrowInvalid:
            if high - low > 1:
                middle = (low + high) // 2
                waiting += [(middle, high), (low, middle)]


def _why_not(text: bytes, rows: int, form: LineFormat) -> str | None:
    try:
        table = form.parse(text, None)
    except pa.ArrowInvalid as error:
        return str(error).partition("\n")[0].replace("Row #1: ", "")  # the line is named already
    return None if table.num_rows == rows else f"this is not one record but {table.num_rows}: {text[:80]!r}"


def scan(files: Sequence[File], form: LineFormat, on_error: OnError, target: int) -> tuple[list[Part], Skips]:
    """Look through files once, to find their records; with `skip` also parse them, and leave out what is wrong.

    Raises:
        InvalidInputError: If records cannot be told apart, or there are none.
    """
    parts: list[Part] = []
    skips = Skips()
    for number, file in enumerate(files):
        ranges = open_ranges(file)
        start, line = form.begin(file, ranges)
        pieces = ranges.pieces(start)
        for stretch in split(pieces, file.shown, start=start, line=line, delimiter=form.delimiter, target=target):
            bad: list[int] = []
            if on_error == "skip":
                text = ranges.read(stretch.start, stretch.end - stretch.start)
                for record, at, why in find_bad(Records(text, stretch.first_line, form.delimiter), form):
                    bad.append(record)
                    skips.add(f"{file.shown}, line {at}", why)
            if len(bad) < stretch.rows:
                parts.append(Part(number, stretch, tuple(bad)))
    return parts, skips


def sample(files: Sequence[File], form: LineFormat) -> list[tuple[File, bytes]]:
    """Return whole records from the beginnings of some files, evenly chosen."""
    step = max(1, len(files) // _SAMPLED_FILES)
    samples = []
    for file in files[::step]:
        ranges = open_ranges(file)
        start, _ = form.begin(file, ranges)
        samples.append((file, _beginning(ranges, start, form.delimiter)))
    return samples


def _beginning(ranges: Ranges, start: int, delimiter: str | None) -> bytes:
    wanted = _SAMPLE_BYTES
    while True:
        text = ranges.read(start, wanted)
        ends = RecordEnds(delimiter).find(np.frombuffer(text, np.uint8))
        if len(text) < wanted:
            return text
        if len(ends):
            return text[: int(ends[-1])]
        wanted *= 8


def reopened(options: dict[str, Any], make: Callable[[dict[str, Any], pa.Schema], LineFormat]) -> LinesSource:
    """Return the source that `LinesSource.spec` described."""
    schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(options["schema"])))
    parts = [Part(file, Stretch(*stretch), tuple(bad)) for file, stretch, bad in options["parts"]]
    return LinesSource(options["paths"], make(options["form"], schema), parts, Skips.from_data(options["skips"]))
