"""A reader that reads nothing: rows come from a function."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Self

import numpy as np

from cargobike.compat.noticing import notice
from cargobike.compat.petastorm.unischema import Unischema
from cargobike.core.errors import InvalidInputError


class ReaderMock:
    """Rows without end.

    Args:
        schema: Their schema.
        schema_data_generator: From the schema to the values of a row by name.
        ngram: Windows of rows are not supported.
    """

    def __init__(
        self, schema: Unischema, schema_data_generator: Callable[[Unischema], dict[str, Any]], ngram: Any = None
    ) -> None:
        notice("petastorm.test_util.reader_mock.ReaderMock")
        if ngram is not None:
            raise InvalidInputError("Sequence argument not supported for ReaderMock.")
        self.schema = schema
        self.schema_data_generator = schema_data_generator
        self.ngram = None
        self.batched_output = False
        self.last_row_consumed = False
        self.num_epochs = None

    def fetch(self) -> Any:
        """Return a row."""
        return self.schema.make_namedtuple(**self.schema_data_generator(self.schema))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self.fetch()

    def next(self) -> Any:
        """Return a row."""
        return self.fetch()

    def stop(self) -> None:
        """Do nothing: there are no threads."""

    def join(self) -> None:
        """Do nothing: there are no threads."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: there are no threads."""


def schema_data_generator_example(schema: Unischema) -> dict[str, Any]:
    """Return a row of zeros; where a length may be any, it is 10."""
    return {
        name: Decimal("0.0")
        if field.numpy_dtype is Decimal
        else np.zeros(tuple(10 if length is None else length for length in field.shape), field.numpy_dtype)
        for name, field in schema.fields.items()
    }
