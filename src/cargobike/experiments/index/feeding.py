"""The process that feeds the index with the journal of one experiment while its driver runs."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from pathlib import Path
from typing import Final

from cargobike.core.errors import CargobikeError
from cargobike.core.facts import EXPERIMENT_FACTS
from cargobike.core.layout import ExperimentFolder
from cargobike.experiments.index.journals import TABLES
from cargobike.store.files.shared import shared_url
from cargobike.store.index.opening import index_url, open_database
from cargobike.store.journal.journal import read_header
from cargobike.workers.processes import die_with_parent, volunteer

_NICE: Final = 5
"""Behind the trials, but not so far that it would never come to its turn beside them."""
_EVERY_S: Final = 1.0
_SHARE: Final = 3.0
"""The share of a processor that it may take: after a round that took a second of one it rests for three."""


def main() -> None:
    """Feed the index until standard input is closed, or the driver, whose process is named first, is gone."""
    owner, root = int(sys.argv[1]), sys.argv[2]
    die_with_parent(owner)
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    volunteer()
    with contextlib.suppress(CargobikeError, OSError):
        feed(ExperimentFolder(Path(root)))


def feed(folder: ExperimentFolder) -> None:
    """Read on in the journal of an experiment again and again, and once more when standard input has been closed.

    The index of a team is left to the people who ask: a driver would write to a database of theirs. So is that of
    a project on shared storage. With repeats, reading on means to read all of a journal, so it is left too.

    Raises:
        StoreError: If the index cannot be used.
    """
    project = folder.project
    header = read_header(folder.journal, EXPERIMENT_FACTS)
    if shared_url(project) or index_url(project) or header is None or header.repeats > 1:
        return
    with open_database(project, TABLES) as database:
        is_over = False
        while not is_over:
            began_s = time.process_time()
            database.follow(folder.root)
            rest_s = max(_EVERY_S, _SHARE * (time.process_time() - began_s))
            is_over = bool(select.select([sys.stdin], [], [], rest_s)[0])
        database.follow(folder.root)
