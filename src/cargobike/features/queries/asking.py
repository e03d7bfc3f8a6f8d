"""Make a query of names of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from cargobike.features.queries.labels import as_table, is_spark
from cargobike.features.queries.names import Owned, find_owners
from cargobike.features.queries.planning import plan_for_group, plan_for_labels
from cargobike.features.queries.query import Query
from cargobike.features.reading import ReadGroup


def ask(
    names: Sequence[str], groups: Sequence[ReadGroup], labels: Any = None, *, time: str = "", known_at: str = ""
) -> Query:
    """Return a query for features of some groups; arguments are those of `get_features`.

    Raises:
        InvalidInputError: If names are unknown, or rows cannot be joined; says why.
    """
    if labels is None:
        query = Query(plan_for_group(find_owners(names, groups)))
    else:
        rows = labels if is_spark(labels) else as_table(labels)
        query = ask_owned(find_owners(names, groups, schema_of(rows).names), rows, time=time)
    return query.known_at(known_at) if known_at else query


def ask_owned(owned: Sequence[Owned], rows: Any, *, time: str = "") -> Query:
    """Return a query for features whose owners are known, for given rows: an Arrow table or a Spark DataFrame."""
    return Query(plan_for_labels(owned, schema_of(rows), time), rows)


def schema_of(rows: Any) -> pa.Schema:
    """Return names and types of the columns of an Arrow table or a Spark DataFrame."""
    return rows.schema if isinstance(rows, pa.Table) else rows.limit(0).toArrow().schema
