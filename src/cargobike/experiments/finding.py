"""Find an experiment of the project in use."""

from __future__ import annotations

import itertools
import math
from typing import Protocol

from cargobike.core.errors import InvalidInputError
from cargobike.core.facts import EXPERIMENT_FACTS, ExperimentStarted
from cargobike.core.layout import ExperimentFolder
from cargobike.store.files.project import current
from cargobike.store.files.shared import shared_url


class HasId(Protocol):
    """What stands for an experiment: a result, a summary, a repetition, a row of the index, a folder."""

    @property
    def id(self) -> str:
        """The experiment's id."""
        ...


ExperimentLike = str | HasId
"""An id, the unique beginning or end of one, a name (of several, the newest), `"last"`, or anything that has an id."""

_SECOND = len("20261115-220145")
"""So many characters of an id tell when an experiment began."""


def experiment_ids() -> list[str]:
    """Return the ids of all experiments of the project, oldest first."""
    _refresh()
    return [folder.id for folder in _folders()]


def find_experiment(
    experiment: ExperimentLike, *, with_checkpoints: bool = False, is_unique: bool = False
) -> ExperimentFolder:
    """Find an experiment by its id, its name, the unique start or end of its id, or `last`; or by its result.

    Looks at the folders themselves and needs no index. What lies on shared storage is brought here; checkpoints
    only if they are wanted. Of several with the same name the newest is taken, unless the name must be unique, as it
    must be for what cannot be undone.

    Raises:
        NotFoundError: If none fits, with the nearest one, or several do, with their list.
    """
    # A launch needs neither, and their import would delay its first trial.
    from cargobike.experiments.index.index import resolve  # noqa: PLC0415

    def name_of(folder: ExperimentFolder) -> str:
        header = _header(folder)
        return "" if header is None else header.name

    text = experiment if isinstance(experiment, str) else getattr(experiment, "id", None)
    if not isinstance(text, str):
        raise InvalidInputError(
            f'{experiment!r} names no experiment; give an id, a unique name, "last", or a result. '
            "`cargobike ls` lists what there is."
        )
    project = current()
    _refresh()
    found = text
    if text not in {journal.parent.name for journal in project.journals}:
        names = [(folder.id, name_of(folder)) for folder in reversed(_folders())]
        found = resolve(text, names, is_unique=is_unique)
    if shared_url(project):
        from cargobike.store.files.mirror import fetch  # noqa: PLC0415 - only for shared storage

        fetch(project.experiment(found), with_checkpoints=with_checkpoints)
    return project.experiment(found)


def find_page(text: str) -> str:
    """Return the address of the page of an experiment, named as for `find_experiment`, on a server of the project."""
    return f"/experiments/{find_experiment(text).id}"


def _folders() -> list[ExperimentFolder]:
    """Return all experiments of the project, oldest first."""
    by_id = sorted(journal.parent for journal in current().journals)
    found = list[ExperimentFolder]()
    for _, paths in itertools.groupby(by_id, key=lambda path: path.name[:_SECOND]):
        began = [ExperimentFolder(path) for path in paths]
        found += began if len(began) == 1 else sorted(began, key=_began_at)
    return found


def _began_at(folder: ExperimentFolder) -> float:
    header = _header(folder)
    return math.inf if header is None else header.at


def _header(folder: ExperimentFolder) -> ExperimentStarted | None:
    from cargobike.store.journal.journal import read_header  # noqa: PLC0415 - as above

    return read_header(folder.journal, EXPERIMENT_FACTS)


def _refresh() -> None:
    """Bring what is new on shared storage here, if the project is on one."""
    project = current()
    if shared_url(project):
        from cargobike.store.files.mirror import refresh  # noqa: PLC0415 - only for shared storage

        refresh(project, at_once=True)
