"""Was retraining worth it? Champion and challenger on the newest labelled rows, before anything is promoted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.following import log_keeper
from cargobike.core.registering.modelling import KeptModel, model_keeper
from cargobike.core.values.numbers import read_number
from cargobike.monitoring.labelling.files import newest_labels, read_labels
from cargobike.monitoring.labelling.joining import label_log
from cargobike.monitoring.labelling.metrics import Metric, choose_metrics, measure
from cargobike.monitoring.notes import Compared, add_note
from cargobike.monitoring.record import find_record
from cargobike.monitoring.watching.features import OUTPUT
from cargobike.monitoring.watching.windows import seconds_of
from cargobike.store.files import project as projects

_LEAST: Final = 10
_DRAWS: Final = 2000


def compare(
    monitor: str,
    champion: str,
    challenger: str,
    *,
    metric: str | Metric = "",
    rows: int = 1000,
    confidence: float = 0.95,
    trust: bool = False,
    seed: int = 1,
) -> Compared:
    """Let two versions of a model predict the newest labelled requests, and say whether the second is better.

    Both answer the same rows, so the difference is judged row by row: the interval is a bootstrap of the paired
    differences. What comes out is recorded with the monitor.

    Args:
        monitor: The monitor that has the labels.
        champion: The version that serves: `digits@champion`.
        challenger: The version that may take its place: `digits:4`.
        metric: What is measured, lower for better; by default the monitor's first.
        rows: How many of the newest labelled rows.
        confidence: How sure the interval is.
        trust: Whether code in a model that came from elsewhere may run.
        seed: What is random is drawn from it.

    Raises:
        NotFoundError: If there is no such monitor or version.
        InvalidInputError: If there are too few labelled rows, or a model does not fit them.

    Example:
        ```python
        if monitoring.compare("digits", "digits@champion", "digits:4").better:
            models.get("digits:4").promote("champion")
        ```
    """
    project = projects.current()
    record = find_record(project, monitor)
    sure = read_number(confidence, "confidence")
    if not 0.5 <= sure < 1:
        raise InvalidInputError(f"confidence={confidence!r} was given; it is from 0.5 to below 1, such as 0.95.")
    chosen = choose_metrics([metric or record.watched.metrics[0]])
    name = next(iter(chosen))
    keeper = model_keeper()
    old, new = keeper.get(champion), keeper.get(challenger)
    labelled = newest_labelled(project, monitor, record.watched.subject, rows)
    if labelled.num_rows < _LEAST:
        raise InvalidInputError(
            f"{monitor} has {labelled.num_rows} labelled rows whose requests are in the log; at least {_LEAST} are "
            f"needed. Bring labels with monitoring.labels({monitor!r}, …)."
        )
    truth = labelled[record.watched.label].to_numpy(zero_copy_only=False)
    errors = []
    for model in (old, new):
        predictions = _predict(model, labelled, record.watched.prediction, trust=trust)
        errors.append(measure(chosen, predictions, truth)[name])
    difference = errors[1] - errors[0]
    low, high = _interval(difference, sure, seed)
    ats = seconds_of(labelled["at"])
    result = Compared(
        at=time.time(),
        champion=f"{old.name}:{old.version}",
        challenger=f"{new.name}:{new.version}",
        metric=name,
        champion_error=float(errors[0].mean()),
        challenger_error=float(errors[1].mean()),
        low=low,
        high=high,
        rows=labelled.num_rows,
        first_at=float(ats[0]),
        last_at=float(ats[-1]),
        better=high < 0,
    )
    add_note(project, monitor, result)
    return result


def newest_labelled(project: ProjectFolder, monitor: str, deployment: str, most: int) -> pa.Table:
    """Return the newest requests that have labels, with their inputs, in the order of their times."""
    parts: list[pa.Table] = []
    found = 0
    for number in range(newest_labels(project, monitor), 0, -1):
        labels = read_labels(project, monitor, number)
        joined = label_log(labels, lambda: log_keeper().follow(deployment, project)).rows
        parts.append(joined)
        found += joined.num_rows
        if found >= most:
            break
    if not parts:
        return pa.table({"at": pa.array([], pa.timestamp("us", "UTC"))})
    rows = pa.concat_tables(parts, promote_options="permissive").sort_by([("at", "ascending")])
    return rows.slice(max(0, rows.num_rows - most))


def _predict(model: KeptModel, rows: pa.Table, prediction: str, *, trust: bool) -> Any:
    """Return what a version predicts for requests of the log."""
    signature = model.signature
    if signature is None:
        raise InvalidInputError(
            f"{model.name}:{model.version} has no signature, so rows of the log cannot be given to it."
        )
    names = [field.name for field in signature.inputs]
    missing = [name for name in names if f"input.{name}" not in rows.column_names]
    if missing:
        raise InvalidInputError(f"{model.name}:{model.version} takes {missing[0]!r}, which the log does not have.")
    given = [_shaped(rows, name, signature.inputs[place].shape) for place, name in enumerate(names)]
    asked: list[Any] = (
        given[0] if len(names) == 1 else [dict(zip(names, values, strict=True)) for values in zip(*given, strict=True)]
    )
    answers: Sequence[Any] = model.predictor(trust=trust)(asked)
    outputs = [field.name for field in signature.outputs]
    if len(outputs) > 1:
        field = prediction.removeprefix(OUTPUT)
        if field not in outputs:
            raise InvalidInputError(
                f"Which of {', '.join(outputs)} is the prediction? Watch with prediction='output.…'."
            )
        answers = [answer[field] for answer in answers]
    if isinstance(next(iter(answers), None), list | tuple):
        return np.array([int(np.argmax(answer)) for answer in answers])
    return np.asarray(answers)


def _shaped(rows: pa.Table, name: str, shape: tuple[int, ...]) -> list[Any]:
    values: list[Any] = rows[f"input.{name}"].to_pylist()
    if len(shape) < 2 or -1 in shape:
        return values
    return [None if value is None else np.asarray(value).reshape(shape).tolist() for value in values]


def _interval(difference: Any, confidence: float, seed: int) -> tuple[float, float]:
    """Return where the mean of paired differences lies: percentiles of means of rows drawn again."""
    random = np.random.default_rng(seed)
    means = [float(random.choice(difference, len(difference)).mean()) for _ in range(_DRAWS)]
    tail = 50 * (1 - confidence)
    low, high = np.percentile(means, [tail, 100 - tail])
    return float(low), float(high)
