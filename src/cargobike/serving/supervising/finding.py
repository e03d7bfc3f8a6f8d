"""Finding the versions of a model that a release is about, without keeping the supervisor's loop waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import msgspec

from cargobike.core.errors import CargobikeError, InvalidInputError
from cargobike.core.registering.modelling import model_keeper


class Version(msgspec.Struct, frozen=True):
    """What a supervisor needs to know of a version."""

    name: str
    version: int
    libraries: tuple[str, ...] = ()


def model_name(reference: str) -> str:
    """Return the name in `digits`, `digits:3` or `digits@champion`.

    Example:
        >>> model_name("digits@champion")
        'digits'
    """
    return reference.partition("@")[0].partition(":")[0]


def find_version(reference: str, model: str = "") -> Version:
    """Return the version that a reference means now.

    Args:
        reference: `digits:3`, `digits@champion`, or `digits` for the newest.
        model: The name that it must have: a deployment serves versions of one model.

    Raises:
        InvalidInputError: If it is another model.
        NotFoundError: If there is no such version.
    """
    if model and model_name(reference) != model_name(model):
        raise InvalidInputError(
            f"{reference!r} is another model than {model!r}. A deployment serves versions of one model; deploy the "
            "other one under a name of its own."
        )
    kept = model_keeper().get(reference)
    return Version(kept.name, kept.version, tuple(kept.libraries))


class Finder:
    """Looks for versions in threads of its own: storage may take long to answer, and replicas still need watching.

    Args:
        model: The model of the deployment, as asked for.
        wake: Called in such a thread when there is something to take.
    """

    def __init__(self, model: str, wake: Callable[[], None]) -> None:
        self._model = model
        self._wake = wake
        self._results: SimpleQueue[tuple[Any, Version | str]] = SimpleQueue()

    def look(self, reference: str, about: Any) -> None:
        """Begin to look for a version; `take` returns it with `about`."""
        threading.Thread(target=self._look, args=(reference, about), name="cargobike-find-model", daemon=True).start()

    def take(self) -> list[tuple[Any, Version | str]]:
        """Return what was found, or why it was not."""
        taken = []
        while not self._results.empty():
            taken.append(self._results.get())
        return taken

    def _look(self, reference: str, about: Any) -> None:
        try:
            result: Version | str = find_version(reference, self._model)
        except CargobikeError as error:
            result = str(error)
        except Exception as error:  # noqa: BLE001 - a user waits for an answer, whatever it is
            result = f"{reference!r} cannot be found: {type(error).__name__}: {error}"
        self._results.put((about, result))
        self._wake()
