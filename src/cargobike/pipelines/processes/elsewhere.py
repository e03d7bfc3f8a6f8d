"""A step on another engine: its process here launches it there, as a tracked run of one worker, and waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.steps import Kept, open_kept
from cargobike.engines.engine import Engine
from cargobike.experiments.front import launch
from cargobike.pipelines.values import pickling

_RESULT: Final = "step-result.pickle"


def call_elsewhere(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    engine: str | Engine,
    name: str,
    project: ProjectFolder,
) -> Any:
    """Call a function on an engine and return what it returned.

    Args:
        function: What to call.
        args: Arguments by place; they travel with it.
        kwargs: Arguments by name.
        engine: Where: its name, its address, or itself.
        name: What to call the run there.
        project: The project.

    Raises:
        TrialFailedError: If it failed there, with its own traceback.
        EngineError: If the engine has no place for it.
    """

    def work() -> None:
        # In the working directory of the trial, from where files are brought back.
        Path(_RESULT).write_bytes(pickling.dump(function(*args, **kwargs)))

    result = launch(work, params={}, engine=engine, workers=1, name=name, quiet=True)
    trial = result.trial(0)
    path = trial.experiment.trial(trial.number).files / _RESULT
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"What {name} returned did not come back from {engine}: {error.strerror} ({path}).") from error

    def opened(thing: Kept) -> Any:
        return open_kept(thing, project)

    return pickling.load(data, opened)
