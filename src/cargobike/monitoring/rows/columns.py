"""Which columns can be judged, and as what: numbers or categories."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from cargobike.core.errors import InvalidInputError, nearest


def is_number(kind: pa.DataType) -> bool:
    """Tell whether values of a type are judged as numbers; times are, if they are asked for."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind))
    )


def is_category(kind: pa.DataType) -> bool:
    """Tell whether values of a type are judged as categories."""
    if pa.types.is_dictionary(kind):
        return is_category(kind.value_type)
    return bool(
        pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
    )


def is_unknown(kind: pa.DataType) -> bool:
    """Tell whether a column has no values at all, so that any type would do."""
    return bool(pa.types.is_null(kind))


def texts_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return categories as texts."""
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def choose_columns(schema: pa.Schema, wanted: Sequence[str] | None) -> tuple[list[str], list[str], dict[str, str]]:
    """Return the names of numbers, of categories, and of what is not judged with the reason.

    Args:
        schema: The reference's columns.
        wanted: The columns to judge; all that can be judged except times if not given.

    Raises:
        InvalidInputError: If one that is wanted is not there or cannot be judged, or if none is left.
    """
    mistakes = [
        f"there is no column {name!r}.{nearest(name, schema.names)}"
        for name in wanted or ()
        if name not in schema.names
    ]
    numbers: list[str] = []
    categories: list[str] = []
    skipped: dict[str, str] = {}
    for name in dict.fromkeys(schema.names):
        kind = schema.field(schema.get_all_field_indices(name)[0]).type
        if wanted is not None and name not in wanted:
            continue
        reason = _reason_against(kind, is_wanted=wanted is not None)
        if schema.names.count(name) > 1:
            reason = "several columns have this name"
        if reason and wanted is not None:
            mistakes.append(f"{name!r} cannot be judged: {reason}")
        elif reason:
            skipped[name] = reason
        else:
            (categories if is_category(kind) else numbers).append(name)
    if mistakes:
        raise InvalidInputError("The reference cannot be made with these columns.", mistakes)
    if not numbers and not categories:
        reasons = [f"{name!r}: {reason}" for name, reason in skipped.items()]
        raise InvalidInputError("The reference has no column that can be judged.", reasons)
    return numbers, categories, skipped


def _reason_against(kind: pa.DataType, *, is_wanted: bool) -> str:
    if pa.types.is_temporal(kind) and not is_wanted:
        return f"{kind} values always move on; name the column in `columns` to judge it"
    if is_number(kind) or is_category(kind) or is_unknown(kind):
        return ""
    return f"{kind} values are neither numbers nor categories"
