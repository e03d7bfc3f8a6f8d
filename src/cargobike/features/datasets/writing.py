"""Make a training dataset of a view."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping

import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.keeping import table_keeper
from cargobike.core.registering.steps import step_token
from cargobike.core.running.accounts import user_name
from cargobike.features.datasets.claims import Writing
from cargobike.features.datasets.dataset import TrainingDataset, training_part
from cargobike.features.datasets.formats import FORMATS, check_format
from cargobike.features.datasets.record import DatasetRecord, PartRecord
from cargobike.features.datasets.splitting import check_split, split_rows
from cargobike.features.views.fitted import Fitted, keep_fitted
from cargobike.features.views.record import check_name
from cargobike.features.views.transforming import apply_all, fit_all
from cargobike.features.views.view import TrainingData, View


def write_dataset(
    view: View, name: str, data: TrainingData, *, split: Mapping[str, float], seed: int, by: str, format: str
) -> TrainingDataset:
    """Write training rows as the next version of a training dataset; it appears at once or not at all.

    Transformations are fitted on the part that models learn from, and applied to all parts.

    Raises:
        InvalidInputError: If the rows cannot be split or written like this.
    """
    check_name("training dataset", name)
    check_format(format)
    query = data.query.pinned()
    keys = [key for lookup in query.plan.lookups for key in lookup.on]
    table = view.with_on_demand(query.to_arrow())
    if not len(table):
        raise InvalidInputError("There are no rows to make a training dataset of.")
    check_split(split, by, table.column_names)
    rows = split_rows(table, split, seed=seed, by=by, time=query.plan.time, keys=list(dict.fromkeys(keys)))
    parts = {part: table.take(pa.array(numbers)) for part, numbers in rows.items()}
    made = view.transformations()
    states = fit_all(made, parts[training_part(list(split))])
    if made:
        parts = {part: apply_all(made, states, some) for part, some in parts.items()}
    with Writing(view.storage, name, view.record) as writing:
        written = tuple(_write_part(view, writing, part, some, format) for part, some in parts.items())
        record = DatasetRecord(
            name=name,
            version=writing.version,
            view=view.name,
            view_version=view.version,
            label=view.label,
            commits=dict(query.commits or {}),
            group_versions={each.group: each.version for each in view.record.features},
            parts=written,
            fingerprint=_together(written),
            split=dict(split),
            seed=seed,
            by=by,
            time=query.plan.time,
            known_at=query.plan.known_at,
            format=format,
            at=time.time(),
            user=user_name(),
            made_from=tuple((thing.kind, thing.name, thing.version) for thing in data.made_from),
            step=step_token(),
        )
        if made:
            keep_fitted(view.storage, view.record, Fitted(f"{name}:{writing.version}", record.at, states))
        writing.commit(record)
    return TrainingDataset(record, view.storage)


def _write_part(view: View, writing: Writing, part: str, table: pa.Table, format: str) -> PartRecord:
    writing.renew()
    path = f"{writing.folder}/{part}"
    kept = table_keeper().write(table, f"{view.storage.url}/{path}")
    exported = ""
    if format in FORMATS:
        exported = f"{path}.{format}"
        FORMATS[format](table, view.storage, exported)
    return PartRecord(part, path, kept.num_rows, kept.fingerprint, exported, kept.version)


def _together(parts: tuple[PartRecord, ...]) -> str:
    return hashlib.sha256("\n".join(f"{part.name} {part.fingerprint}" for part in parts).encode()).hexdigest()[:32]
