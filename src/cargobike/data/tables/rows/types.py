"""Which types the columns of a table have, and how others become one of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.data.tensors import KEY, tensor_field, tensor_of

_PLAIN = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}
_REFUSED = (pa.types.is_union, pa.types.is_interval)


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Return the types that columns are stored with: one for strings of any kind, all may miss values.

    Raises:
        InvalidInputError: If columns cannot be stored; lists all of them.
    """
    twice = [name for name, count in Counter(schema.names).items() if count > 1]
    mistakes = [f"{name!r} is the name of {schema.names.count(name)} columns; rename them" for name in twice]
    fields = []
    for field in schema:
        try:
            fields.append(stored_field(field))
        except TypeError as error:
            mistakes.append(f"{field.name!r} is {field.type}, which holds {error}; turn it into other types")
    if not schema.names:
        mistakes.append("there are no columns")
    if mistakes:
        raise InvalidInputError("Some columns of the data cannot be written.", mistakes)
    metadata = {key: value for key, value in (schema.metadata or {}).items() if key == b"pandas"}
    return pa.schema(fields, metadata=metadata or None)


def stored_field(field: pa.Field) -> pa.Field:
    """Return the field that a column is stored with; raises `TypeError` that names what cannot be stored."""
    kind: Any = field.type
    if isinstance(kind, pa.FixedShapeTensorType):
        if kind.permutation is None or list(kind.permutation) == sorted(kind.permutation):
            return tensor_field(field.name, str(kind.value_type.to_pandas_dtype().__name__).rstrip("_"), kind.shape)
        kind = kind.storage_type
    metadata = {KEY: field.metadata[KEY]} if field.metadata and KEY in field.metadata else None
    return pa.field(field.name, _stored(kind), nullable=True, metadata=metadata)


def _stored(kind: Any) -> pa.DataType:
    """Return a type that Parquet holds and gives back, which may miss values at any depth."""
    if isinstance(kind, pa.BaseExtensionType):
        return _stored(kind.storage_type)
    if any(test(kind) for test in _REFUSED):
        raise TypeError(str(kind))
    if pa.types.is_dictionary(kind):
        return pa.dictionary(pa.int32(), _stored(kind.value_type))
    if pa.types.is_run_end_encoded(kind):
        return _stored(kind.value_type)
    if pa.types.is_struct(kind):
        if not kind.num_fields:
            raise TypeError("records without fields")
        return pa.struct([stored_field(kind.field(number)) for number in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(_stored(kind.key_type), stored_field(kind.item_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(stored_field(kind.value_field), kind.list_size)
    if hasattr(kind, "value_field"):
        return pa.list_(stored_field(kind.value_field))
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    return _PLAIN.get(kind, kind)


def widened(first: pa.Field, second: pa.Field) -> pa.Field:
    """Return a field that holds the values of both.

    Raises:
        TypeError: If there is none that holds them exactly.
    """
    tensors = [(field.metadata or {}).get(KEY) for field in (first, second)]
    if first.type == second.type and tensors[0] == tensors[1]:
        return first
    for one, other in ((first, second), (second, first)):
        if pa.types.is_null(one.type):
            return other
    if any(tensors):
        raise TypeError("tensors of another shape or type")
    kinds = [field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in (first, second)]
    if _family(kinds[0]) != _family(kinds[1]):
        raise TypeError(f"{first.type} and {second.type} have nothing in common")
    schemas = [pa.schema([pa.field("value", kind)]) for kind in kinds]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field("value").with_name(first.name)
    except pa.ArrowException as error:
        raise TypeError(str(error)) from None


def _family(kind: pa.DataType) -> str:
    """Return which types can be widened to each other without a change of meaning."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return "list"
    return str(kind).partition("[")[0].partition("<")[0]


def type_text(field: pa.Field) -> str:
    """Return the type of a column for people.

    Example:
        >>> type_text(tensor_field("image", "uint8", (28, 28))), type_text(pa.field("x", pa.float32()))
        ('tensor uint8[28, 28]', 'float')
    """
    tensor = tensor_of(field)
    return f"tensor {tensor.dtype}{list(tensor.shape)}" if tensor is not None else str(field.type)
