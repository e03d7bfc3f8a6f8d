"""Models that a train function keeps: packed among the trial's files, and registered when the trial has completed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cargobike.core import layout
from cargobike.core.registering.modelling import KeptModel, model_keeper


class TrialModels:
    """What `trial.model` is.

    Args:
        files: Where the trial's files lie; `None` outside an experiment, where a model is registered at once.
        is_mine: Whether this process speaks for the trial: of a gang only rank 0 keeps models.
        announce: Tells the driver the name of a model that lies there whole.
    """

    def __init__(self, files: Path | None, *, is_mine: bool, announce: Callable[[str], None]) -> None:
        self._files = files
        self._is_mine = is_mine
        self._announce = announce

    def save(self, name: str, model: Any = None, **said: Any) -> KeptModel | None:
        """Keep a model, which becomes the next version of its name when the trial has completed.

        The last one under a name counts; one of a trial that is stopped early or fails stays among its files. In a gang
        rank 0 keeps it, and the call does nothing in the others. Outside an experiment it is registered at once.

        Args:
            name: The model's name in the project.
            model: The model, as `models.register` takes it.
            **said: What else `models.register` takes: `files`, `factory`, `metrics`, `signature`, `example`,
                `description`, `tags`, `requirements`. Metrics that the function returns are recorded in any case.

        Returns:
            The version outside an experiment; nothing inside one, where its number is not known yet.
        """
        if not self._is_mine:
            return None
        if self._files is None:
            return model_keeper().register(name, model, **said)
        keeper = model_keeper()
        keeper.check_name(name)
        keeper.pack(self._files / layout.PACKED_MODELS / name, name, model, **said)
        self._announce(name)
        return None
