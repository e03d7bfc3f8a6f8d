"""What an experiment came from, as its row in the index holds it: so that lineage reads no journals."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple

import msgspec

from cargobike.core.asked import Asked
from cargobike.core.registering.tracing import Relation


class ExperimentOrigin(NamedTuple):
    """A thing that an experiment came from; see `Edge`."""

    kind: str
    name: str
    version: str
    relation: Relation
    detail: str = ""


def origins_of(asked: Asked) -> list[ExperimentOrigin]:
    """Return what an experiment came from: the data that it was fed with, experiments that it repeats or learned from.

    Data that was only in memory was written into the project as a table whose name is an id.
    """
    feeding, folder = asked.feeding, PurePosixPath(asked.keeping.data).name
    origins = []
    if feeding.kind:
        detail = f"part {feeding.part}" if feeding.part else ""
        origins.append(ExperimentOrigin(feeding.kind, feeding.source, feeding.version, "trained on", detail))
    elif folder:
        origins.append(ExperimentOrigin("table", folder, "", "trained on", feeding.source))
    elif feeding.source:
        origins.append(ExperimentOrigin("file", feeding.source, feeding.version, "trained on"))
    if asked.reproduces:
        origins.append(ExperimentOrigin("experiment", asked.reproduces, "", "made from", "its trials once more"))
    for warm in asked.search.warm_start:
        origins.append(ExperimentOrigin("experiment", warm, "", "made from", "warm start"))
    return origins


def decode_origins(text: str) -> list[ExperimentOrigin]:
    """Return what a row holds."""
    return msgspec.json.decode(text, type=list[ExperimentOrigin])
