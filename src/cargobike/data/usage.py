"""Which experiments were given a table."""

from __future__ import annotations

import contextlib

from cargobike.core import layout
from cargobike.core.errors import StoreError
from cargobike.core.facts import EXPERIMENT_FACTS
from cargobike.core.layout import JOURNAL, ProjectFolder
from cargobike.data.keeping import KeptTable
from cargobike.store.journal.journal import read_header


def experiments_with(project: ProjectFolder, table: KeptTable) -> list[str]:
    """Return the ids of the experiments of a project that were given a table, as far as they lie on this host."""
    place = f"{layout.DATA}/{table.id}"
    fingerprint = table.table.fingerprint if table.table is not None else ""
    ids = []
    for journal in sorted((project.root / layout.EXPERIMENTS).glob(f"*/{JOURNAL}")):
        with contextlib.suppress(StoreError):
            header = read_header(journal, EXPERIMENT_FACTS)
            if header is None:
                continue
            asked = header.asked
            if asked.keeping.data == place or (fingerprint and asked.feeding.fingerprint == fingerprint):
                ids.append(header.id)
    return ids
