"""`cargobike rm`."""

from __future__ import annotations

import os
import shutil
from typing import Annotated

import typer

from cargobike.cli.asking import Yes, confirm
from cargobike.cli.printing import print_json
from cargobike.core.errors import CargobikeError, InvalidInputError, NotFoundError, StoreError
from cargobike.core.layout import ExperimentFolder, ProjectFolder
from cargobike.experiments.commands.naming import complete_experiment
from cargobike.experiments.finding import find_experiment
from cargobike.store.files import project
from cargobike.store.files.locking import DriverLock, clear_strange, holder, is_held
from cargobike.store.files.mirror import share_removal
from cargobike.store.files.resources import sweep_pool


def rm(
    experiments: Annotated[
        list[str],
        typer.Argument(
            metavar="ID", help="Ids, starts or ends of some, names, or `last`.", autocompletion=complete_experiment
        ),
    ],
    yes: Yes = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; needs --yes.")] = False,
) -> None:
    """Remove experiments and everything they wrote."""
    folders = _find_all(project.current(), experiments)
    names = "\n  ".join(folder.id for folder in folders)
    confirm(f"Remove for good:\n  {names}\n?", yes=yes, as_json=as_json)
    for folder in folders:
        share_removal(folder)
        _remove(folder)
    sweep_pool(project.current().resource_pool)
    if as_json:
        print_json({"removed": [folder.id for folder in folders]})
    else:
        typer.echo(f"Removed {', '.join(folder.id for folder in folders)}.")


def _find_all(project_folder: ProjectFolder, texts: list[str]) -> list[ExperimentFolder]:
    """Find all experiments that are meant, and make sure that each may be removed, before any of them is."""
    folders: dict[str, ExperimentFolder] = {}
    mistakes = []
    for text in texts:
        try:
            folder = _find(project_folder, text)
            _check(project_folder, folder)
            folders[folder.id] = folder
        except CargobikeError as error:
            mistakes.append(str(error))
    if mistakes:
        raise InvalidInputError("Nothing was removed:", mistakes)
    return list(folders.values())


def _find(project_folder: ProjectFolder, text: str) -> ExperimentFolder:
    try:
        return find_experiment(text, is_unique=True)
    except NotFoundError:
        # A driver that died before it wrote its first line has left a folder without a journal.
        if text in _entries(project_folder):
            return project_folder.experiment(text)
        raise


def _entries(project_folder: ProjectFolder) -> set[str]:
    try:
        return {name for name in os.listdir(project_folder.experiments) if not name.startswith(".")}
    except OSError:
        return set()


def _check(project_folder: ProjectFolder, folder: ExperimentFolder) -> None:
    if not folder.root.is_dir():
        return  # a file, a pipe or a link to nothing
    if folder.root.is_symlink() or folder.root.resolve().parent != project_folder.experiments.resolve():
        raise InvalidInputError(
            f"{folder.id} is a link out of the project, to {folder.root.resolve()}; "
            "remove the link or what it points to by hand"
        )
    if is_held(folder):
        raise StoreError(f"{folder.id} is being run by {holder(folder)}; end it first: cargobike stop {folder.id}")


def _remove(folder: ExperimentFolder) -> None:
    doomed = folder.root.with_name(f".removing-{folder.id}-{os.getpid()}")
    try:
        if not folder.root.is_dir():
            folder.root.unlink()
            return
        clear_strange(folder)
        # Held, so that no driver resumes it meanwhile; renamed, so that no reader ever sees half of it.
        with DriverLock(folder):
            folder.root.rename(doomed)
        shutil.rmtree(doomed)
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"Cannot remove {folder.root}: {error.strerror} ({error.filename}).") from error
