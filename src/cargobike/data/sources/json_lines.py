"""JSON-lines files: one object per line, read in stretches of whole lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from cargobike.core.errors import InvalidInputError
from cargobike.data.sources.files import Paths, as_paths, find_files
from cargobike.data.sources.lines import GROUP_BYTES, LineFormat, LinesSource, Records, reopened, sample, scan
from cargobike.data.sources.listing import File
from cargobike.data.sources.mistakes import OnError, arrow_types, checked_choice
from cargobike.data.sources.ranges import Ranges
from cargobike.store.files.in_memory import in_memory

ENDINGS = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz")
_MARK = b"\xef\xbb\xbf"
_DEEPEST = 64


def open_json_lines(
    paths: Paths,
    *,
    schema: Mapping[str, object] | None = None,
    on_error: OnError = "raise",
    group_bytes: int = GROUP_BYTES,
) -> LinesSource:
    """Open JSON-lines files as a source of rows; see `cargobike.data.json_lines`.

    Raises:
        NotFoundError: If there are no such files.
        InvalidInputError: If something given cannot be used, or the files hold no objects.
    """
    checked_choice("on_error", on_error, ("raise", "skip"))
    given = as_paths(paths, "JSON-lines files")
    files = find_files(given, ENDINGS)
    form = JsonLines()
    announced = arrow_types(schema)
    inferred = form.infer(sample(files, form), on_error, announced)
    types = {field.name: field.type for field in inferred} | announced
    form.schema = pa.schema(list(types.items()))
    parts, skips = scan(files, form, on_error, group_bytes)
    return LinesSource(given, form, parts, skips)


class JsonLines(LineFormat):
    """One JSON object per line; a field that is absent is null, one that is not in the schema is an error."""

    name = "JSON-lines"
    endings = ENDINGS
    delimiter = None

    def __init__(self, schema: pa.Schema | None = None) -> None:
        self.schema = schema

    def begin(self, file: File, ranges: Ranges) -> tuple[int, int]:
        """Return where the first line begins."""
        return (len(_MARK) if ranges.read(0, len(_MARK)) == _MARK else 0), 1

    def parse(self, text: bytes, columns: Sequence[str] | None) -> pa.Table:
        """Return the rows of whole lines."""
        table = self._read(text, self.schema, "error")
        return table if columns is None else table.select(list(columns))

    def _read(self, text: bytes, schema: pa.Schema | None, unexpected: str) -> pa.Table:
        _check_depth(text)
        _check_objects(text)
        return pj.read_json(
            in_memory(text),
            pj.ReadOptions(use_threads=False, block_size=len(text) + 1),
            pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
        )

    def infer(
        self,
        samples: list[tuple[File, bytes]],
        on_error: OnError,
        announced: Mapping[str, pa.DataType] | None = None,
    ) -> pa.Schema:
        """Return the schema of the samples, in which announced types are not in question."""
        told = pa.schema(list((announced or {}).items()))
        schemas = []
        for file, text in samples:
            if not text.strip():
                continue
            try:
                schemas.append(self._read(text, told, "infer").schema)
            except pa.ArrowInvalid as error:
                records = Records(text, 1, None)
                schemas += self._one_by_one(file, records, told, on_error, str(error))
        try:
            found = pa.unify_schemas(schemas, promote_options="permissive") if schemas else told
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InvalidInputError(
                f"{samples[0][0].shown}: {error}. Say what the column holds, such as schema={{'column': 'string'}}."
            ) from None
        return pa.schema([(field.name, _named(field.type)) for field in found])

    def _one_by_one(
        self, file: File, records: Records, told: pa.Schema, on_error: OnError, why: str
    ) -> list[pa.Schema]:
        """Return the schemas of the lines of a sample that are objects; some are not, or do not fit together."""
        schemas, seen = [], set()
        for number, (begin, end) in enumerate(records.spans):
            try:
                schema = self._read(records.text[begin:end], told, "infer").schema
            except pa.ArrowInvalid as error:
                if on_error == "raise":
                    raise InvalidInputError(
                        f"{file.shown}, line {records.line(number)}: {error}",
                        ['Correct the file; or leave such lines out and have them counted: on_error="skip".'],
                    ) from None
                continue
            if (text := schema.to_string()) not in seen:
                seen.add(text)
                schemas.append(schema)
        return schemas

    def options(self) -> dict[str, object]:
        """Return what makes the same format elsewhere: there is nothing to choose."""
        return {}


def _check_objects(text: bytes) -> None:
    """Refuse text that holds anything but objects: Arrow's parser ends the process at a line that is `null`."""
    try:
        text.decode()  # Arrow takes any bytes for names of fields
        values = _VALUES.decode_lines(text)
    except UnicodeDecodeError:
        raise pa.ArrowInvalid("it is not text in UTF-8") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise pa.ArrowInvalid(f"it is no JSON: {error}") from None
    if any(memoryview(value)[0] != _OPENING for value in values):
        raise pa.ArrowInvalid('it is no object: each line holds one, such as {"a": 1}')


_VALUES = msgspec.json.Decoder(msgspec.Raw)
_OPENING = ord("{")


def _check_depth(text: bytes) -> None:
    """Refuse text that is nested too deeply for a parser that calls itself."""
    data = np.frombuffer(text, np.uint8)
    opening = (data == 0x5B) | (data == 0x7B)
    if not opening.any():
        return
    # Most lines cannot be too deep, since they do not open so often.
    ends = np.flatnonzero(data == 0x0A)
    per_line = np.add.reduceat(opening, np.concatenate(([0], ends[ends + 1 < len(data)] + 1)), dtype=np.int64)
    if per_line.max() <= _DEEPEST:
        return
    for line in text.split(b"\n"):
        if line.count(b"[") + line.count(b"{") > _DEEPEST and _depth(line) > _DEEPEST:
            raise pa.ArrowInvalid(f"it is nested more than {_DEEPEST} deep")


def _depth(line: bytes) -> int:
    deepest = depth = 0
    is_text = is_escaped = False
    for byte in line:
        if is_text:
            if is_escaped:
                is_escaped = False
            elif byte == 0x5C:
                is_escaped = True
            elif byte == 0x22:
                is_text = False
        elif byte == 0x22:
            is_text = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def _named(kind: pa.DataType) -> pa.DataType:
    """Return the type to hold, also for a field that was only ever null."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_named(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _named(field.type)) for field in kind])
    return kind


def reopen(options: dict[str, Any]) -> LinesSource:
    """Open the source that a spec describes."""
    return reopened(options, lambda _, schema: JsonLines(schema))
