"""Bring labels to the requests of a log, by the id of the request, and by the row in it if labels say that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.following import Follower
from cargobike.monitoring.alarms.labels import Labelled, join_labels
from cargobike.monitoring.labelling.files import ID, ROW
from cargobike.monitoring.watching.features import OUTPUT, answered, features_of_log

Open = Callable[[], Follower]
"""Opens the log."""

_KEY: Final = "__key__"
_AT_ONCE: Final = 100_000


def label_log(labels: pa.Table, opened: Open) -> Labelled:
    """Return the rows of a log that labels are about, with the labels.

    All that is kept of the log is read: labels say nothing about when their requests came.

    Raises:
        StoreError: If the log cannot be read now.
    """
    follower, position, parts = opened(), "", list[pa.Table]()
    wanted = labels[ID].combine_chunks()
    try:
        while True:
            stretch = follower.read(position, _AT_ONCE)
            rows = answered(stretch.rows)
            parts.append(rows.filter(pc.is_in(rows[ID], value_set=wanted)))
            position = stretch.position
            if not stretch.more:
                break
    finally:
        follower.close()
    return _joined(pa.concat_tables(parts, promote_options="permissive"), labels)


def _joined(rows: pa.Table, labels: pa.Table) -> Labelled:
    if ROW not in labels.column_names:
        return join_labels(rows, labels)
    joined = join_labels(
        rows.append_column(_KEY, _keys(rows)),
        labels.append_column(_KEY, _keys(labels)).drop_columns([ID, ROW]),
        on=_KEY,
    )
    return Labelled(joined.rows.drop_columns([_KEY]), joined.waiting, joined.unmatched, joined.repeated)


def _keys(table: pa.Table) -> Any:
    return pc.binary_join_element_wise(table[ID], table[ROW].cast(pa.int64()).cast(pa.string()), "/")


def predictions_in(rows: pa.Table, asked: str) -> tuple[str, Any]:
    """Return the column of a log that labels are about: its name and its values.

    Args:
        rows: Rows of the log.
        asked: Which one; empty if there is only one.

    Raises:
        InvalidInputError: If there is no such column, or several.
    """
    outputs = {name: rows[name] for name in rows.column_names if name.startswith(OUTPUT)}
    if not outputs and rows["output"].null_count < rows.num_rows:
        features = features_of_log(rows)
        outputs = {name: features[name] for name in features.column_names if name.startswith(OUTPUT)}
    for name in (asked, f"{OUTPUT}{asked}"):
        if asked and name in outputs:
            return name, outputs[name]
    if not asked and len(outputs) == 1:
        return next(iter(outputs.items()))
    names = list(outputs)
    raise InvalidInputError(
        f"Which of {', '.join(names) or 'no outputs'} is the prediction that labels are about? Say so: "
        f"prediction={names[0] if names else 'output.…'!r}."
    )
