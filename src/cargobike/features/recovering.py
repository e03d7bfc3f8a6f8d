"""Finds what a step of a pipeline had made of features when its process was killed, and opens what it has kept."""

from __future__ import annotations

from typing import Any

from cargobike.core.layout import ProjectFolder
from cargobike.features.datasets.dataset import Part, TrainingDataset
from cargobike.features.datasets.record import find_dataset, versions_of_dataset
from cargobike.features.groups.commits import Commit
from cargobike.features.groups.finding import group
from cargobike.features.groups.group import Group
from cargobike.features.views.record import find_view
from cargobike.features.views.view import View
from cargobike.store.files.storages import storage_of


def recover_insert(token: str, _: ProjectFolder, into: Group, *__: Any, **___: Any) -> Commit | None:
    """Return the commit that a step made; look-ups see it then, too."""
    made = next((commit for commit in into.history() if commit.step == token), None)
    if made is not None and into.refresh().online:
        into.materialize()
    return made


def recover_dataset(
    token: str, project: ProjectFolder, view: View, name: str, *_: Any, **__: Any
) -> TrainingDataset | None:
    """Return the version of a training dataset that a step made."""
    storage = storage_of(project)
    for version in versions_of_dataset(storage, name):
        record = find_dataset(storage, name, version)
        if record.step == token:
            return TrainingDataset(record, storage)
    return None


def open_group(reference: str, project: ProjectFolder) -> Group:
    """Return a group of any project: `teams:1`."""
    name, _, version = reference.partition(":")
    return group(name, int(version), folder=project)


def open_view(reference: str, project: ProjectFolder) -> View:
    """Return a view of any project: `team_value:2`."""
    name, _, version = reference.partition(":")
    storage = storage_of(project)

    def find_group(name: str, version: int) -> Group:
        return group(name, version, folder=project)

    return View(find_view(storage, name, int(version)), storage, find_group)


def open_dataset(reference: str, project: ProjectFolder) -> TrainingDataset:
    """Return a training dataset of any project: `team_value:2`."""
    storage = storage_of(project)
    return TrainingDataset(find_dataset(storage, reference), storage)


def open_part(reference: str, project: ProjectFolder) -> Part:
    """Return a part of a training dataset of any project: `team_value:2/train`."""
    dataset, _, part = reference.partition("/")
    return open_dataset(dataset, project)[part]
