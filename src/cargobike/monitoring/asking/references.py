"""The reference of a monitor: what a user gives, or what the served model was trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from cargobike.core.errors import CargobikeError, InvalidInputError, NotFoundError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.following import Logged, log_keeper
from cargobike.core.registering.keeping import table_keeper
from cargobike.core.registering.modelling import KeptModel, model_keeper
from cargobike.core.registering.steps import Keepable, Kept, open_kept
from cargobike.core.registering.tracing import Thing, lineage_of
from cargobike.monitoring.reference import Reference
from cargobike.monitoring.rows.reading import opened, sample_of
from cargobike.monitoring.states.making import LEARNED_FROM
from cargobike.monitoring.watching.features import OUTPUT, answered, features_of, features_of_log

_KINDS: Final = ("dataset", "table")
_LOOKED_AT: Final = 1000
_PREDICTED: Final = 10_000
"""For so many rows of the reference, at most, the model is asked what it predicts; then they are the reference."""


class Chosen(NamedTuple):
    """What a monitor compares with.

    Attributes:
        reference: What is usual.
        name: What people call it.
        thing: What lineage calls it; its kind is empty if it is nothing of the project.
        left_out: Features that are not judged, each with the reason.
    """

    reference: Reference
    name: str
    thing: Thing
    left_out: dict[str, str]


def choose_reference(
    given: Any,
    logged: Logged,
    subject: str,
    project: ProjectFolder,
    *,
    window: int,
    false_alarms: float,
    columns: Sequence[str] | None,
    seed: int,
    asked: Callable[[str], bool] | None = None,
) -> Chosen:
    """Return what windows are compared with.

    Args:
        given: A `Reference`, rows of any kind, or `None` for what the served model was trained on.
        logged: What is known of the deployment.
        subject: Its name.
        project: Where to look.
        window: How many rows windows will have.
        false_alarms: Which part of windows without a shift may be unusual.
        columns: The features to judge; by default all.
        seed: What is random is drawn from it.
        asked: Tells whether requests have a feature; without it, all of the reference are judged.

    Raises:
        InvalidInputError: If it cannot be a reference, or if there is nothing that the model was trained on.
    """
    if isinstance(given, Reference):
        return Chosen(given, "a reference that was given", Thing("", ""), {})
    thing, name = Thing("", ""), "a table that was given"
    if given is None:
        thing = trained_on(logged, subject, project)
        name, given = str(thing), open_thing(thing, project)
    elif isinstance(given, Keepable):
        thing = _thing(given.kept_as())
        name = str(thing)
    elif isinstance(given, str):
        name = given
    with opened(given, "reference") as source:
        names = list(source.schema.names)
        rows = sample_of(source, names, LEARNED_FROM, np.random.default_rng([seed, 0x5E]))
    left_out: dict[str, str] = {}
    features = _with_predictions(rows, logged, left_out, seed)
    for feature in features.column_names:
        if feature.partition("[")[0].removeprefix(OUTPUT) in logged.redacted:
            left_out[feature] = "the log leaves it out (redact)"
    if columns is None and asked is not None:
        left_out |= {name: "requests do not have it" for name in features.column_names if not asked(name)}
    features = features.drop_columns([name for name in features.column_names if name in left_out])
    if not features.num_columns:
        raise InvalidInputError(
            f"{name} has nothing in common with what {subject} is asked and answers.",
            [f"{feature!r}: {reason}" for feature, reason in left_out.items()],
        )
    wanted = None if columns is None else [one.removeprefix("input.") for one in columns]
    reference = Reference(features, window=window, false_alarms=false_alarms, seed=seed, columns=wanted)
    return Chosen(reference, name, thing, {**reference.skipped, **left_out})


def asked_for(
    logged: Logged, subject: str, project: ProjectFolder, kind: str = "deployment"
) -> Callable[[str], bool] | None:
    """Return what tells whether requests have a feature: labels, keys and times of a training dataset they have not.

    The log says it, or the signature of the model while the log is empty; `None` if neither does.
    """
    follower = log_keeper(kind).follow(subject, project)
    try:
        rows = answered(follower.read("", _LOOKED_AT).rows)
    finally:
        follower.close()
    if rows.num_rows:
        names = set(features_of_log(rows).column_names)
        return names.__contains__
    try:
        signature = model_keeper().get(_served(logged)).signature if logged.model else None
    except CargobikeError:
        signature = None
    if signature is None:
        return None
    fields = {field.name for field in signature.inputs} | {f"{OUTPUT}{field.name}" for field in signature.outputs}
    return lambda name: any(name == field or name.startswith((f"{field}[", f"{field}.")) for field in fields)


def trained_on(logged: Logged, subject: str, project: ProjectFolder) -> Thing:
    """Return what the model of a deployment was trained on.

    Raises:
        InvalidInputError: If that is not known; says what to give.
    """
    advice = "Give what it was trained on: reference=training_dataset, a table, or a monitoring.Reference."
    if not logged.model:
        raise InvalidInputError(f"Which model {subject} serves is not known here. {advice}")
    model = _served(logged)
    try:
        sources = lineage_of(project, model, "model").sources
    except NotFoundError:
        sources = []
    for kind in _KINDS:
        for edge in sources:
            if edge.source.kind == kind:
                return edge.source
    raise InvalidInputError(f"Nothing says what the model {model} of {subject} was trained on. {advice}")


def open_thing(thing: Thing, project: ProjectFolder) -> Any:
    """Return the rows of something that a project keeps.

    Raises:
        InvalidInputError: If they are not there any more.
    """
    try:
        try:
            return open_kept(Kept(thing.kind, thing.id), project)
        except NotFoundError:
            if thing.kind != "table":
                raise
            return table_keeper().open(thing.name, version=int(thing.version) if thing.version.isdigit() else None)
    except CargobikeError as error:
        raise InvalidInputError(
            f"The {thing} is what the model was trained on, and cannot be opened: {error}"
        ) from error


def _thing(kept: Kept) -> Thing:
    """Return what lineage calls something that is kept; a part of a dataset is called like the dataset."""
    name, _, version = kept.id.rpartition(":")
    if kept.kind == "dataset-part":
        return Thing("dataset", name, version.partition("/")[0])
    return Thing(kept.kind, name, version) if name else Thing(kept.kind, kept.id)


def _served(logged: Logged) -> str:
    return f"{logged.model}:{logged.version}" if logged.version else logged.model


def _with_predictions(rows: pa.Table, logged: Logged, left_out: dict[str, str], seed: int) -> pa.Table:
    """Return features with what the served version predicts for them, so that predictions are watched as well."""
    features = features_of(rows)
    if any(name.startswith(OUTPUT) for name in features.column_names) or not logged.model:
        return features
    random = np.random.default_rng([seed, 0x0D])
    chosen = np.sort(random.choice(rows.num_rows, min(_PREDICTED, rows.num_rows), replace=False))
    try:
        model = model_keeper().get(_served(logged))
        predicted = _predicted(model, rows.take(pa.array(chosen)))
    except Exception as error:  # noqa: BLE001 - a model may fail in any way; its inputs are watched all the same
        left_out[OUTPUT.removesuffix(".")] = f"what the model predicts for the reference is not known: {error}"
        return features
    features = features.take(pa.array(chosen))
    for name in predicted.column_names:
        features = features.append_column(name, predicted[name])
    return features


def _predicted(model: KeptModel, rows: pa.Table) -> pa.Table:
    """Return what a model predicts for rows of its reference."""
    signature = model.signature
    if signature is None:
        raise InvalidInputError(f"{model.name}:{model.version} has no signature")
    names = [field.name for field in signature.inputs]
    columns = {name: name if name in rows.column_names else f"input.{name}" for name in names}
    missing = [name for name, column in columns.items() if column not in rows.column_names]
    if missing:
        raise InvalidInputError(f"it has no column {missing[0]!r}")
    chosen = pa.table({name: rows[column] for name, column in columns.items()})
    given = chosen.to_pylist()
    predict: Callable[[list[Any]], Sequence[Any]] = model.predictor()
    answers = predict([row[names[0]] for row in given] if len(names) == 1 else given)
    outputs = [field.name for field in signature.outputs]
    if len(outputs) == 1:
        return features_of(pa.table({f"{OUTPUT}{outputs[0]}": pa.array(list(answers))}))
    return features_of(pa.table({f"{OUTPUT}{name}": pa.array([row[name] for row in answers]) for name in outputs}))
