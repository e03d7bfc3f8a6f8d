"""Copies of experiments whose drivers died after so many lines of their journals."""

from __future__ import annotations

import shutil

import msgspec

from cargobike import project
from cargobike.core.facts import EXPERIMENT_FACTS, ExperimentStarted
from cargobike.core.layout import ExperimentFolder
from cargobike.results import Result
from cargobike.store.journal.journal import JournalWriter, read_journal


def cut_copy(result: Result, lines: int, torn: bytes = b"") -> str:
    """Copy an experiment, without what its trials wrote, as if its driver had died; returns the id of the copy."""
    source = ExperimentFolder(result.folder)
    target = project.current().experiment(f"{result.id[:-4]}x{lines:03d}")
    shutil.copytree(source.root, target.root)
    shutil.rmtree(target.trials, ignore_errors=True)
    header, *facts = read_journal(source.journal, EXPERIMENT_FACTS)
    assert isinstance(header, ExperimentStarted)
    target.journal.unlink()
    with JournalWriter(target.journal) as writer:
        writer.append([msgspec.structs.replace(header, id=target.id), *facts][:lines])
    with target.journal.open("ab") as file:
        file.write(torn)
    return target.id
