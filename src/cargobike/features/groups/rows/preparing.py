"""Make rows ready to be inserted: they fit the group, break no expectation, and no two have the same key and time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.features.definition import Definition, Expectation
from cargobike.features.groups.columns import identity_of, schema_of, with_columns
from cargobike.features.groups.definitions import newest_revision, revise
from cargobike.features.groups.rows.expecting import Check, broken, check_expectations
from cargobike.features.groups.rows.fitting import Columns, bad_rows, fit, kept_types
from cargobike.features.groups.rows.matching import Duplicates, without_duplicates
from cargobike.store.files.storage import Storage

_EXAMPLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a user said about rows that are not as they should be."""

    duplicates: Duplicates = "refuse"
    columns: Columns = field(default_factory=Columns)
    bad_rows: Literal["refuse", "quarantine"] = "refuse"
    expectations: Sequence[Check] = ()


@dataclass(frozen=True, slots=True)
class Ready:
    """Rows that can be inserted.

    Attributes:
        definition: The group, which knows all their columns now.
        rows: The rows, with exactly the columns of the group.
        all_rows: Also those that are to be put aside.
        bad: Which of `all_rows` are to be put aside, by reason.
    """

    definition: Definition
    rows: pa.Table
    all_rows: pa.Table
    bad: dict[str, Any]


def prepare(storage: Storage, definition: Definition, table: pa.Table, rules: Rules) -> Ready:
    """Return rows ready to be inserted; columns that are to be added are added to the definition, as the last thing.

    Raises:
        InvalidInputError: If they do not fit; nothing was written then.
    """
    while True:
        definition = newest_revision(storage, definition)
        types = kept_types(table, definition, rules.columns)
        coming = with_columns(definition, types)
        expectations = [*definition.expectations, *rules.expectations]
        check_expectations(expectations, coming, schema_of(coming).names)
        fitted = fit(table, coming, schema_of(coming))
        bad = check_rows(fitted, coming, expectations, rules)
        rows = fitted.filter(pa.array(~np.logical_or.reduce(list(bad.values())))) if bad else fitted
        rows = without_duplicates(rows, coming, rules.duplicates)
        definition = learn_types(storage, definition, types)
        if schema_of(definition) == schema_of(coming):
            return Ready(definition, rows, fitted, bad)
        # Another process has changed the group in between: the rows must fit what it is now.


def learn_types(storage: Storage, definition: Definition, types: dict[str, Any]) -> Definition:
    """Write down the types of columns, unless another process has revised the definition; returns the newest."""
    return revise(storage, definition, partial(_learn, definition.revision, types))


def _learn(seen: int, types: dict[str, Any], newest: Definition) -> Definition:
    """Return a definition that knows types, unless it is not the revision that was seen."""
    return with_columns(newest, types) if newest.revision == seen else newest


def needs_all_rows(expectation: Check) -> bool:
    """Tell whether an expectation is about all rows of an insert together, not about each alone."""
    return not isinstance(expectation, Expectation) or expectation.kind in {"unique", "fresh"}


def check_rows(
    rows: pa.Table, definition: Definition, expectations: Sequence[Check], rules: Rules, before: int = 0
) -> dict[str, Any]:
    """Return which rows are bad, by reason; refuses them unless bad ones are to be put aside.

    Args:
        rows: The rows, with exactly the columns of the group.
        definition: The group.
        expectations: All that must be true.
        rules: What a user said about bad rows.
        before: How many rows of the same insert came before these.

    Raises:
        InvalidInputError: Lists what is wrong.
    """
    masks = {
        reason: np.asarray(mask.to_numpy(), dtype=bool)
        for reason, mask in bad_rows(rows, definition, time.time()).items()
    }
    found, whole = broken(rows, expectations, definition)
    masks.update(found)
    if whole or (masks and rules.bad_rows == "refuse"):
        mistakes = [_told(rows, reason, mask, definition, before) for reason, mask in masks.items()] + whole
        advice = "" if whole else ' insert(…, bad_rows="quarantine") writes the others and puts these aside.'
        raise InvalidInputError(
            f"Some of {before + rows.num_rows} rows are bad; none was inserted into the group {definition.name!r}."
            f"{advice}",
            mistakes,
        )
    return masks


def _told(rows: pa.Table, reason: str, mask: Any, definition: Definition, before: int) -> str:
    """Return a sentence with the first rows that are bad for a reason."""
    places = np.nonzero(mask)[0]
    names = identity_of(definition)
    shown = [
        f"row {before + place} ({', '.join(f'{name}={rows.column(name)[place].as_py()}' for name in names)})"
        for place in places[:_EXAMPLES].tolist()
    ]
    more = f" and {len(places) - _EXAMPLES} more" if len(places) > _EXAMPLES else ""
    return f"{reason}: {', '.join(shown)}{more}"
