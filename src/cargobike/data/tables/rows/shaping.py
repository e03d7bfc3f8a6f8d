"""Brings batches whose types differ to one schema, which grows as rows arrive."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from cargobike.core.errors import InvalidInputError
from cargobike.data.tables.rows.incoming import Incoming
from cargobike.data.tables.rows.types import stored_schema, widened


class Shaping:
    """The schema of a stream: the types of its first batch, widened by those that follow.

    Args:
        incoming: The stream.
        types: What some columns must be, whatever arrives.

    Attributes:
        schema: Types that hold everything that has arrived; `None` before the first batch.
        num_rows: How many rows have arrived.
    """

    def __init__(self, incoming: Incoming, types: pa.Schema | None = None) -> None:
        self._incoming = incoming
        self._types = stored_schema(types) if types is not None else None
        self.schema: pa.Schema | None = None
        self.num_rows = 0
        self._ahead: pa.RecordBatch | None = None

    def stretches(self) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        """Yield stretches of the stream, each with its schema and its batches; the next one has wider types.

        The batches of one stretch are to be taken before the next is asked for.
        """
        while (batch := self._next()) is not None:
            self.schema, self._ahead = self._wider(batch), batch
            yield self.schema, self._stretch(self.schema)

    def _stretch(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        while (batch := self._next()) is not None:
            if self._wider(batch) != schema:
                self._ahead = batch
                return
            shaped = cast_batch(batch, schema, self.num_rows)
            self.num_rows += batch.num_rows
            yield shaped

    def finish(self) -> pa.Schema:
        """Return the schema that holds everything, after the last stretch.

        Raises:
            InvalidInputError: If nothing has arrived that tells the columns.
        """
        if self.schema is not None:
            return self.schema
        if self._types is None:
            raise InvalidInputError("There are no rows, so the columns are not known; say them: schema=pa.schema([…]).")
        return self._types

    def _next(self) -> pa.RecordBatch | None:
        batch, self._ahead = self._ahead, None
        return batch if batch is not None else next(self._incoming.batches, None)

    def _wider(self, batch: pa.RecordBatch) -> pa.Schema:
        """Return the schema so far, widened by the types of a batch."""
        given = stored_schema(batch.schema)
        if self.schema is None:
            return self._wanted(given)
        if given.equals(self.schema, check_metadata=True):
            return self.schema
        self._check_names(given)
        fields = []
        for field in self.schema:
            index = given.get_field_index(field.name)
            try:
                fields.append(field if index < 0 or self._is_fixed(field) else widened(field, given.field(index)))
            except TypeError as error:
                raise InvalidInputError(
                    f"Column {field.name!r} is {given.field(index).type} from row {self.num_rows} on, and {field.type} "
                    f"before: {error}. Give all rows one type, or say one that holds them: schema=pa.schema([…])."
                ) from None
        fields += [field for field in self._wanted(given) if self.schema.get_field_index(field.name) < 0]
        return pa.schema(fields, metadata=self.schema.metadata)

    def _wanted(self, given: pa.Schema) -> pa.Schema:
        if self._types is None:
            return given
        names = [name for name in self._types.names if given.get_field_index(name) < 0]
        if names and not self._incoming.may_lack_columns:
            raise InvalidInputError(f"schema= names {names}, which the data does not have; it has {given.names}.")
        fields = [self._types.field(field.name) if self._is_fixed(field) else field for field in given]
        return pa.schema([*fields, *(self._types.field(name) for name in names)], metadata=given.metadata)

    def _is_fixed(self, field: pa.Field) -> bool:
        return self._types is not None and self._types.get_field_index(field.name) >= 0

    def _check_names(self, given: pa.Schema) -> None:
        assert self.schema is not None
        if self._incoming.may_lack_columns:
            return
        missing = [name for name in self.schema.names if name not in given.names]
        added = [name for name in given.names if name not in self.schema.names]
        if missing or added:
            words = [f"lack {', '.join(map(repr, missing))}"] * bool(missing)
            words += [f"also have {', '.join(map(repr, added))}"] * bool(added)
            raise InvalidInputError(
                f"The rows from {self.num_rows} on {' and '.join(words)}. Give all the same columns."
            )


def cast_batch(batch: pa.RecordBatch, schema: pa.Schema, first_row: int) -> pa.RecordBatch:
    """Return a batch with the types of a schema; columns that it lacks have nothing.

    Raises:
        InvalidInputError: If a value does not fit; names row and column.
    """
    columns = []
    for field in schema:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            columns.append(pa.nulls(batch.num_rows, field.type))
        else:
            columns.append(_cast(batch.column(index), field, first_row))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, field: pa.Field, first_row: int) -> pa.Array:
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if column.type == field.type:
        return column
    if pa.types.is_fixed_size_binary(field.type) and pa.types.is_fixed_size_list(column.type):
        return _as_tensors(column, field)
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(field.type):
        column = column.dictionary_decode()
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        number = next((one for one in range(len(column)) if not _fits(column.slice(one, 1), field.type)), 0)
        raise InvalidInputError(
            f"Row {first_row + number} has {column[number].as_py()!r} in column {field.name!r}, which does not "
            f"fit {field.type}: {error}. Give all rows one type, or say one that holds them: schema=pa.schema([…])."
        ) from None


def _fits(value: pa.Array, kind: pa.DataType) -> bool:
    try:
        value.cast(kind)
    except pa.ArrowException:
        return False
    return True


def _as_tensors(column: pa.Array, field: pa.Field) -> pa.Array:
    """Return lists of a fixed size, as Arrow's own tensors are stored, as a column of tensors."""
    filled = column.values.slice(column.offset * column.type.list_size, len(column) * column.type.list_size)
    data = pa.py_buffer(filled.to_numpy(zero_copy_only=False))
    validity = None
    if column.null_count:
        bits = column.is_valid()
        validity = bits.buffers()[1]
    return pa.Array.from_buffers(field.type, len(column), [validity, data])
