"""What changed in a group between two commits: rows that came, went, or have other values."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.features.definition import WRITTEN_AT, Definition
from cargobike.features.delta.log import Log, Snapshot
from cargobike.features.groups.columns import identity_of
from cargobike.features.groups.reading import dataset_of_files
from cargobike.features.groups.rows.matching import look_for

CHANGE: Final = "_change"


def changes_between(log: Log, before: Snapshot, after: Snapshot, definition: Definition) -> pa.Table:
    """Return the rows that differ: new values of those that came or changed, old values of those that went.

    Only files that one of the two states has and the other lacks are read; compaction changes files and no rows.
    """
    old, new = (
        dataset_of_files(
            log, [file for path, file in one.files.items() if path not in other.files], definition
        ).to_table()
        for one, other in ((before, after), (after, before))
    )
    if not old.num_rows:
        return _marked(new, ["insert"] * new.num_rows)
    wanted = look_for(old, identity_of(definition), "")
    found, partners = wanted.partners(new) if new.num_rows else (np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64))
    written = (new.column(WRITTEN_AT).filter(pa.array(found)), old.column(WRITTEN_AT).take(pa.array(partners)))
    is_same = found.copy()
    is_same[found] = np.asarray(pc.equal(*written).to_numpy(), dtype=bool)
    is_gone = np.ones(old.num_rows, dtype=bool)
    is_gone[partners] = False
    words = np.where(found, "update", "insert")[~is_same]
    came = _marked(new.filter(pa.array(~is_same)), list(words))
    gone = old.filter(pa.array(is_gone))
    return pa.concat_tables([came, _marked(gone, ["delete"] * gone.num_rows)])


def _marked(rows: pa.Table, words: list[str]) -> pa.Table:
    return rows.append_column(CHANGE, pa.array(words, pa.string()))
