"""CSV files: rows of text with a header, read in stretches of whole records."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.data.sources.files import Paths, as_paths, find_files
from cargobike.data.sources.lines import GROUP_BYTES, LineFormat, LinesSource, Records, readable, reopened, sample, scan
from cargobike.data.sources.listing import File
from cargobike.data.sources.mistakes import OnError, arrow_types, checked_choice
from cargobike.data.sources.ranges import Ranges, open_ranges
from cargobike.data.sources.splitting import LONGEST_RECORD, RecordEnds
from cargobike.store.files.in_memory import in_memory

ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_MARK = b"\xef\xbb\xbf"
_NULLS = ["", "NULL", "null", "NA", "N/A", "#N/A"]


def open_csv(
    paths: Paths,
    *,
    schema: Mapping[str, object] | None = None,
    delimiter: str | None = None,
    header: bool | Sequence[str] = True,
    on_error: OnError = "raise",
    group_bytes: int = GROUP_BYTES,
) -> LinesSource:
    """Open CSV files as a source of rows; see `cargobike.data.csv`.

    Raises:
        NotFoundError: If there are no such files.
        InvalidInputError: If something given cannot be used, headers differ, or the files cannot be told apart.
    """
    checked_choice("on_error", on_error, ("raise", "skip"))
    given = as_paths(paths, "CSV files")
    files = find_files(given, ENDINGS)
    if delimiter is None:
        delimiter = "\t" if files[0].path.endswith((".tsv", ".tsv.gz")) else ","
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise InvalidInputError(f"delimiter={delimiter!r} was given; it is one character, such as ',' or ';'.")
    form = CsvFormat(delimiter, header if isinstance(header, bool) else list(header))
    form.learn_names(files[0])
    announced = arrow_types(schema)
    unknown = [name for name in announced if name not in form.names]
    if unknown:
        raise InvalidInputError(
            f"{files[0].shown} has the columns {', '.join(map(repr, form.names))}.",
            [f"{name!r} in schema is unknown.{nearest(name, form.names)}" for name in unknown],
        )
    inferred = form.infer(sample(files, form), on_error)
    form.schema = pa.schema([pa.field(name, announced.get(name, inferred.field(name).type)) for name in form.names])
    parts, skips = scan(files, form, on_error, group_bytes)
    return LinesSource(given, form, parts, skips)


class CsvFormat(LineFormat):
    """CSV with one delimiter, as RFC 4180 describes it."""

    name = "CSV"
    endings = ENDINGS
    delimiter: str

    def __init__(self, delimiter: str, header: bool | list[str]) -> None:
        self.delimiter = delimiter
        self._header = header
        self.names: list[str] = []

    def learn_names(self, file: File) -> None:
        """Take the names of the columns from a file's header, or from its first record if it has none."""
        first, _, _ = self._first_record(file, open_ranges(file))
        if isinstance(self._header, list):
            self.names = self._header
        else:
            self.names = first if self._header else [f"f{number}" for number in range(len(first))]
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice or "" in self.names:
            what = f"the columns {twice} twice" if twice else "a column without a name"
            raise InvalidInputError(
                f"{file.shown}, line 1: the header has {what}. Correct it, or give the names: header=[…]."
            )

    def _first_record(self, file: File, ranges: Ranges) -> tuple[list[str], int, int]:
        """Return the values of the first record, where it ends, and how many bytes mark the encoding."""
        text, wanted = b"", 1 << 16
        while True:
            text = ranges.read(0, wanted)
            ends = RecordEnds(self.delimiter).find(np.frombuffer(text, np.uint8))
            if len(ends) or len(text) < wanted or wanted > LONGEST_RECORD:
                break
            wanted *= 16
        mark = len(_MARK) if text.startswith(_MARK) else 0
        end = int(ends[0]) if len(ends) else len(text)
        if not text[mark:end].strip():
            raise InvalidInputError(f"{file.shown}: its first line is empty. A CSV file begins with a header or a row.")
        try:
            records = list(csv.reader(io.StringIO(text[mark:end].decode(), newline=""), delimiter=self.delimiter))
        except (csv.Error, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{file.shown}, line 1: {error}. CSV files are text in UTF-8.") from None
        if len(records) != 1 or not records[0]:
            raise InvalidInputError(
                rf"{file.shown}, line 1: a return stands alone in it (\r). Lines must end with \n or \r\n."
            )
        return records[0], end, mark

    def begin(self, file: File, ranges: Ranges) -> tuple[int, int]:
        """Return where the rows begin, after the header, which must name the same columns in every file."""
        first, end, mark = self._first_record(file, ranges)
        if self._header is not True:
            return mark, 1
        if first != self.names:
            missing = [name for name in self.names if name not in first]
            added = [name for name in first if name not in self.names]
            raise InvalidInputError(
                f"{file.shown}, line 1: its header differs from that of the first file.",
                [f"missing: {name!r}" for name in missing]
                + [f"only here: {name!r}" for name in added]
                + ([] if missing or added else [f"another order: {', '.join(first)}"]),
            )
        return end, 1 + ranges.read(0, end).count(b"\n")

    def parse(self, text: bytes, columns: Sequence[str] | None) -> pa.Table:
        """Return the rows of whole records."""
        return self._read(text, columns, {field.name: field.type for field in self.schema})

    def _read(self, text: bytes, columns: Sequence[str] | None, types: dict[str, pa.DataType]) -> pa.Table:
        return pc.read_csv(
            in_memory(text),
            pc.ReadOptions(column_names=self.names, use_threads=False, block_size=len(text) + 1),
            pc.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            pc.ConvertOptions(
                column_types=types,
                include_columns=list(columns) if columns is not None else None,
                null_values=_NULLS,
                strings_can_be_null=False,
            ),
        )

    def infer(self, samples: list[tuple[File, bytes]], on_error: OnError) -> pa.Schema:
        """Return the schema: the narrowest type of each column that holds all values of the samples."""
        types: dict[str, pa.DataType] = dict.fromkeys(self.names, pa.null())
        for _, text in samples:
            # Records that cannot be parsed are named, or left out, when they are read.
            for table in readable(Records(text, 1, self.delimiter), lambda part: self._read(part, None, {})):
                types = {field.name: _wider(types[field.name], field.type) for field in table.schema}
        return pa.schema([(name, pa.string() if pa.types.is_null(kind) else kind) for name, kind in types.items()])

    def options(self) -> dict[str, object]:
        """Return what makes the same format elsewhere."""
        return {"delimiter": self.delimiter, "header": self._header, "names": self.names}


_TOGETHER = {
    frozenset((pa.int64(), pa.float64())): pa.float64(),
    frozenset((pa.date32(), pa.timestamp("s"))): pa.timestamp("s"),
    frozenset((pa.date32(), pa.timestamp("ns"))): pa.timestamp("ns"),
    frozenset((pa.timestamp("s"), pa.timestamp("ns"))): pa.timestamp("ns"),
}


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the type that Arrow would have inferred from the values of both."""
    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_binary(one) or pa.types.is_binary(other):
        return pa.binary()
    return _TOGETHER.get(frozenset((one, other)), pa.string())


def reopen(options: dict[str, Any]) -> LinesSource:
    """Open the source that a spec describes."""
    return reopened(options, _make)


def _make(options: dict[str, Any], schema: pa.Schema) -> CsvFormat:
    form = CsvFormat(options["delimiter"], options["header"])
    form.names, form.schema = options["names"], schema
    return form
