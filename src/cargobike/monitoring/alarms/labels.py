"""Labels that come late: brought to their predictions by the id of the request."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from cargobike.core.errors import InvalidInputError, nearest

_ROW = "__row__"


@dataclass(frozen=True, slots=True)
class Labelled:
    """Predictions with their labels, and what has no other half yet.

    Attributes:
        rows: Predictions that have a label, in their order, with the columns of the labels behind their own.
        waiting: Predictions without a label: give them again when more labels have come.
        unmatched: Labels without a prediction: those of requests that were not logged, or not yet.
        repeated: How many labels were replaced by a later one for the same request.
    """

    rows: pa.Table
    waiting: pa.Table
    unmatched: pa.Table
    repeated: int


def join_labels(predictions: pa.Table, labels: pa.Table, *, on: str = "request_id") -> Labelled:
    """Bring labels to the predictions of the same requests.

    A request may have several predictions (it was sent again) and several labels (one was corrected): each prediction
    is kept, and the last label counts. Rows without an id are never matched.

    Args:
        predictions: What was predicted, in order of time.
        labels: What turned out to be true, in order of time.
        on: The column with the ids, in both.

    Raises:
        InvalidInputError: If one lacks the ids, they are of different types, or another column is in both.

    Example:
        >>> import pyarrow as pa
        >>> predictions = pa.table({"request_id": ["a", "b"], "prediction": [1, 0]})
        >>> labels = pa.table({"request_id": ["b", "x"], "label": [1, 1]})
        >>> labelled = join_labels(predictions, labels)
        >>> labelled.rows.to_pylist()
        [{'request_id': 'b', 'prediction': 0, 'label': 1}]
        >>> labelled.waiting.num_rows, labelled.unmatched.num_rows
        (1, 1)
    """
    _check(predictions, labels, on)
    wanted, given = predictions.column(on), labels.column(on)
    if wanted.type != given.type:
        given = given.cast(wanted.type)
    last = _last_of_each(given)
    chosen = labels.take(last)
    value_set = given.take(last)
    places = pc.index_in(wanted, value_set=value_set, skip_nulls=True)
    has_label = pc.and_(places.is_valid(), wanted.is_valid())
    values = chosen.take(places.filter(has_label)).drop_columns([on])
    rows = predictions.filter(has_label)
    for name in values.column_names:
        rows = rows.append_column(values.schema.field(name), values.column(name))
    has_prediction = pc.is_valid(pc.index_in(value_set, value_set=wanted, skip_nulls=True))
    unmatched = pa.concat_tables([chosen.filter(pc.invert(has_prediction)), labels.filter(given.is_null())])
    repeated = labels.num_rows - chosen.num_rows - given.null_count
    return Labelled(rows, predictions.filter(pc.invert(has_label)), unmatched, repeated)


def _last_of_each(ids: pa.ChunkedArray) -> pa.Array:
    """Return the last row of each id, in order; rows without one are left out."""
    numbered = pa.table({"id": ids, _ROW: pa.array(range(len(ids)), pa.int64())}).filter(ids.is_valid())
    last = numbered.group_by("id").aggregate([(_ROW, "max")]).column(f"{_ROW}_max")
    return last.combine_chunks().sort() if len(last) else pa.array([], pa.int64())


def _check(predictions: pa.Table, labels: pa.Table, on: str) -> None:
    mistakes = [
        f"the {what} have no column {on!r}.{nearest(on, table.column_names)}"
        for what, table in (("predictions", predictions), ("labels", labels))
        if on not in table.column_names
    ]
    both = [name for name in labels.column_names if name != on and name in predictions.column_names]
    mistakes += [f"the column {name!r} is in both; rename one of them" for name in both]
    if not mistakes:
        one, other = predictions.schema.field(on).type, labels.schema.field(on).type
        if _family(one) != _family(other):
            mistakes.append(f"{on!r} is {one} in the predictions, and {other} in the labels; cast one of them")
    if mistakes:
        raise InvalidInputError("Labels and predictions cannot be joined.", mistakes)


def _family(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    return str(kind)
