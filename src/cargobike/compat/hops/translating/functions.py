"""Train functions of hops as ours: what they return becomes a score, and files that they name are kept."""

from __future__ import annotations

import functools
import inspect
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cargobike import devices, trial
from cargobike.core.errors import FunctionError, InvalidInputError
from cargobike.core.values.numbers import NotANumberError, to_float

_VISIBLE_DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
METRIC = "metric"
"""What a number is called that was returned without a name."""


def checked(function: object, call: str) -> Callable[..., Any]:
    """Return a train function.

    Raises:
        FunctionError: If it is not a function; shows how the call is written.
    """
    if callable(function):
        return function
    what = "nothing" if function is None else f"{type(function).__name__}, which is no function,"
    raise FunctionError(
        f"experiment.{call} was given {what} to train. Its first argument is the train function: "
        f"experiment.{call}(train_fn, …); data that each worker gets its share of is given as data=…"
    )


def keeping_files(function: Callable[..., Any], **fixed: Any) -> Callable[..., Any]:
    """Return a train function whose returned file names are kept with its trial.

    Args:
        function: What to call.
        **fixed: Arguments that are the same for every call, and need not be plain data.
    """
    kept_name = _without(function, fixed)

    @functools.wraps(function)
    def train(*args: Any, **params: Any) -> Any:
        return _with_files(function(*args, **params, **fixed))

    if fixed:
        train.__signature__ = kept_name  # type: ignore[attr-defined]
    return train


def alone_on_its_gpus(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a train function that sees the GPUs of its own rank only, as an executor of hops did.

    Our own ranks see all GPUs of their gang on a machine if each has one, and take that of their local rank, as code
    for torchrun does. Strategies of TensorFlow take every GPU that they see.
    """

    @functools.wraps(function)
    def train(*args: Any, **params: Any) -> Any:
        names = devices.get_gpus()
        if trial.is_distributed and len(names) == int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > 1:
            for variable in _VISIBLE_DEVICES:
                os.environ[variable] = names[trial.local_rank]
        return function(*args, **params)

    return train


def scoring(function: Callable[..., Any], key: str | None, *, needs_score: bool) -> Callable[..., Any]:
    """Return a train function that always has a score of a known name, and keeps files that it names.

    Args:
        function: What to call.
        key: Which entry of a returned dict is the score; `METRIC` for any single number.
        needs_score: Whether to refuse what has no score; otherwise the score is then "not a number".
    """

    @functools.wraps(function)
    def train(*args: Any, **params: Any) -> dict[str, Any]:
        returned = _with_files(function(*args, **params))
        return with_score(returned, key, needs_score=needs_score)

    return train


def with_score(returned: object, key: str | None, *, needs_score: bool) -> dict[str, Any]:
    """Return what a train function returned as a dict that holds its score.

    Raises:
        InvalidInputError: If a score is needed and there is none, or several and none was chosen.
    """
    name = key or METRIC
    if not isinstance(returned, Mapping):
        if not needs_score and (returned is None or _number(returned) is None):
            return {name: math.nan} | ({} if returned is None else {"returned": returned})
        return {name: returned}
    outputs: dict[str, Any] = dict(returned)
    if name in outputs:
        return outputs
    numbers = [entry for entry, value in outputs.items() if _number(value) is not None]
    if len(numbers) == 1 and (key is None or key == METRIC):
        return {**outputs, name: outputs[numbers[0]]}
    if needs_score:
        raise InvalidInputError(
            f"The train function returned a dict with {', '.join(map(repr, outputs)) or 'nothing in it'}; "
            f"optimization_key={name!r} is not among them. Name the entry to optimize."
        )
    return {**outputs, name: math.nan}


def _with_files(returned: Any) -> Any:
    if not isinstance(returned, Mapping):
        return returned
    return {name: _kept(value) for name, value in returned.items()}


def _kept(value: Any) -> Any:
    """Return the name of a file in the trial's folder, where what was returned is the path of a file elsewhere."""
    if not isinstance(value, str) or not value or len(value) > os.pathconf("/", "PC_PATH_MAX"):
        return value
    path, files = Path(value), trial.current().files
    try:
        if not path.exists() or not files.exists():
            return value
        if path.resolve().is_relative_to(files.resolve()):
            return path.resolve().relative_to(files.resolve()).as_posix()
    except (OSError, ValueError):  # a text that cannot be a path
        return value
    trial.artifact(path, path.name)
    return path.name


def _number(value: object) -> float | None:
    try:
        return to_float(value)
    except NotANumberError:
        return None


def _without(function: Callable[..., Any], fixed: Mapping[str, Any]) -> Any:
    if not fixed:
        return None
    whole = inspect.signature(function)
    return whole.replace(parameters=[one for name, one in whole.parameters.items() if name not in fixed])
