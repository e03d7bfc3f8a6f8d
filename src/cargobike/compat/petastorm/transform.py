"""What a reader makes of rows before it hands them out, and which fields they then have."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from cargobike.compat.petastorm.unischema import Unischema, UnischemaField
from cargobike.core.errors import InvalidInputError


class TransformSpec:
    """A function of rows, and how it changes their schema.

    Args:
        func: Takes and returns a dict for each row (`make_reader`), or a DataFrame of pandas for each row group
            (`make_batch_reader`). It is called by the threads that read.
        edit_fields: New or changed fields, as `(name, numpy_dtype, shape, is_nullable)`.
        removed_fields: Names of fields to remove.
        selected_fields: Names of the fields to keep, in order; instead of `removed_fields`.
    """

    def __init__(
        self,
        func: Callable[[Any], Any] | None = None,
        edit_fields: Sequence[Any] | None = None,
        removed_fields: Sequence[str] | None = None,
        selected_fields: Sequence[str] | None = None,
    ) -> None:
        if removed_fields is not None and selected_fields is not None:
            raise InvalidInputError("Only one of removed_fields and selected_fields can be given.")
        self.func = func
        self.edit_fields = list(edit_fields or [])
        self.removed_fields = list(removed_fields or [])
        self.selected_fields = None if selected_fields is None else list(selected_fields)


def edit_field(
    name: str, numpy_dtype: Any, shape: tuple[int | None, ...], nullable: bool = False
) -> tuple[str, Any, tuple[int | None, ...], bool]:
    """Return a field for `edit_fields`."""
    return name, numpy_dtype, shape, nullable


def transform_schema(schema: Unischema, transform_spec: TransformSpec) -> Unischema:
    """Return the schema that rows have after a transform."""
    edited = [UnischemaField(each[0], each[1], tuple(each[2]), None, each[3]) for each in transform_spec.edit_fields]
    gone = {field.name for field in edited} | set(transform_spec.removed_fields)
    fields = [field for name, field in schema.fields.items() if name not in gone] + edited
    _warn_unknown(transform_spec.removed_fields, list(schema.fields), "removed_fields")
    if transform_spec.selected_fields is not None:
        by_name = {field.name: field for field in fields}
        _warn_unknown(transform_spec.selected_fields, list(by_name), "selected_fields")
        fields = [by_name[name] for name in transform_spec.selected_fields if name in by_name]
    return Unischema(f"{schema._name}_transformed", fields)


def _warn_unknown(names: Sequence[str], known: Sequence[str], argument: str) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        warnings.warn(
            f"{argument} names fields that are not part of the schema; they are ignored: {', '.join(unknown)}",
            stacklevel=3,
        )
