"""What calls of hops return: both kinds at once.

Until 1.0 a call returned the path of what it kept, a text. From 1.1 on it returned a tuple that begins with that path.
Scripts of both times write the same call, so both get one object: it is the path, and it unpacks into the tuple.
Only `differential_evolution` returned two tuples of different length; how it was spelled decides (`returns_as_before`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from cargobike import project
from cargobike.core import settings
from cargobike.core.layout import ExperimentFolder

if TYPE_CHECKING:
    from cargobike.results import RecordedTrial, Result


class Returned(str):
    """A path, as text, that unpacks into itself and what else came out.

    Iterating, unpacking and indexing by number give the parts; in everything else it is the text: it can be joined,
    compared, opened and printed as any path.

    Attributes:
        parts: The tuple of 1.1 and later.
        result: Our own result, with everything that is known.

    Example:
        >>> path, outputs = returned = Returned("runs/7", ({"metric": 0.5},))
        >>> path + "/logs", outputs["metric"], returned[1] is outputs
        ('runs/7/logs', 0.5, True)
    """

    parts: tuple[Any, ...]
    result: Result | None

    def __new__(cls, path: str, others: tuple[Any, ...], result: Result | None = None) -> Returned:
        """Make one of a path and what follows it in the tuple."""
        self = super().__new__(cls, path)
        self.parts = (str(path), *others)
        self.result = result
        return self

    def __iter__(self) -> Iterator[Any]:
        """Yield the parts, not characters."""
        return iter(self.parts)

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        """Return a part by its number; a slice is one of the text."""
        return super().__getitem__(index) if isinstance(index, slice) else self.parts[index]

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as a plain text."""
        return str, (str(self),)


def returns_as_before(*, is_new: bool) -> bool:
    """Tell whether a call of `differential_evolution` returns two things, as until 1.0, and not three.

    Args:
        is_new: Whether it has an argument that did not exist then. Calls without one are as old as they look: among the
            examples of hops, those that unpack two things have no such argument, and the others do.
    """
    version = os.environ.get(settings.HOPS_VERSION, "")
    return version.startswith(("0.", "1.0")) if version else not is_new


def path_of(result: Result, trial: RecordedTrial | None = None) -> str:
    """Return where an experiment lies, or one of its trials: a path, or an address on shared storage."""
    folder = ExperimentFolder(result.folder)
    return project.path(_inner(folder, folder.root if trial is None else folder.trial(trial.number).root))


def outputs_of(result: Result, trial: RecordedTrial) -> dict[str, Any]:
    """Return what a train function returned: its numbers, texts and files, and where its log is.

    Files are named by their path in the project, as the log is.
    """
    experiment = ExperimentFolder(result.folder)
    folder = experiment.trial(trial.number)
    files = {path.relative_to(folder.files).as_posix(): _inner(experiment, path) for path in trial.artifacts}
    outputs: dict[str, Any] = {name: value for name, value in trial.metrics.items() if not math.isnan(value)}
    if not trial.metrics and trial.value is not None:
        outputs["metric"] = trial.value
    for name, value in trial.extras.items():
        outputs[name] = files.get(os.path.normpath(value), value) if isinstance(value, str) and value else value
    if not outputs:
        outputs["metric"] = None
    outputs["log"] = _inner(experiment, folder.stdout)
    return outputs


def _inner(experiment: ExperimentFolder, path: Path) -> str:
    """Return the path in the project of something that belongs to an experiment."""
    return path.relative_to(experiment.project.root).as_posix()
