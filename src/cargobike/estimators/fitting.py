"""Trains a function once, as a tracked run, and returns the model that it saved.

The contract is the same for every kind of estimator: `train(data, **params)` gets the rows, saves its model with
`trial.checkpoint.save(model)` and returns a score; `predict(model, batch)` gets what was saved last and a pandas
DataFrame, and returns one value for each row.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from cargobike.core.errors import FunctionError, InvalidInputError, SignatureError, nearest
from cargobike.core.records import Resources
from cargobike.core.values.times import Seconds
from cargobike.engines.engine import Engine
from cargobike.experiments.front import launch
from cargobike.experiments.gang_front import allreduce
from cargobike.experiments.results.trial import TrialCheckpoint

DATA = "data"
Train = Callable[..., Any]
Predict = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Run:
    """How an estimator trains.

    Attributes:
        workers: How many ranks train together; 0 trains in this process.
        engine: Where they live.
        name: What the experiment is called.
        seed: For the train function.
        timeout_s: After which time training is ended.
        quiet: Whether to show no progress.
        resources: What each worker gets.
    """

    workers: int = 1
    engine: str | Engine = "local"
    name: str = ""
    seed: int | None = None
    timeout_s: Seconds | None = None
    quiet: bool = True
    resources: Resources | Mapping[str, Any] | None = None

    def on(self, engine: str | Engine) -> Run:
        """Return the same on another engine."""
        return replace(self, engine=engine)

    def described(self) -> dict[str, Any]:
        """Return it as plain data, without its engine."""
        resources = self.resources
        plain = {name: getattr(self, name) for name in ("workers", "name", "seed", "timeout_s", "quiet")}
        return {**plain, "resources": msgspec.to_builtins(resources)}


@dataclass(frozen=True)
class Fitted:
    """A model that a train function saved, and the experiment that knows how."""

    checkpoint: TrialCheckpoint
    experiment: str
    value: Any


def fit(train: Train, params: Mapping[str, Any], data: object, run: Run) -> Fitted:
    """Train once with data, and return what was saved.

    Raises:
        InvalidInputError: If something given cannot be used.
        FunctionError: If the function has saved no model.
        TrialFailedError: If the function failed.
    """
    shared: dict[str, Any] = {
        "resources": run.resources,
        "params": dict(params),
        "data": data,
        "engine": run.engine,
        "name": run.name,
        "seed": run.seed,
        "timeout_s": run.timeout_s,
        "quiet": run.quiet,
    }
    if type(run.workers) is not int or run.workers < 0:
        raise InvalidInputError(f"workers={run.workers!r} was given; give a whole number, 0 to train in this process.")
    if run.workers > 1:
        result = allreduce(train, workers=run.workers, **shared)
    else:
        result = launch(train, workers=run.workers, **shared)
    trial = result.trials[0]
    if trial.checkpoint is None:
        raise FunctionError(
            f"{getattr(train, '__name__', 'train')} returned {result.value!r} and saved no model. Save it before it "
            "returns: trial.checkpoint.save(model), with `from cargobike import trial`."
        )
    return Fitted(trial.checkpoint, result.id, result.value)


def hyperparameters(train: Train) -> tuple[dict[str, Any], bool]:
    """Return the parameters of a train function with their defaults, and whether it takes any others.

    One without a default has `inspect.Parameter.empty`.

    Raises:
        FunctionError: If it is no function.
        SignatureError: If it takes no data.
    """
    if not callable(train):
        raise FunctionError(f"train={train!r} was given; give a function: def train(data, lr=0.1): …")
    found = inspect.signature(train).parameters
    if DATA not in found:
        names = ", ".join(found) or "nothing"
        raise SignatureError(
            f"{getattr(train, '__name__', 'train')} takes {names}; a train function of an estimator gets its rows as "
            f"`data`: def train(data, …).{nearest(DATA, found)}"
        )
    named = {
        name: parameter.default
        for name, parameter in found.items()
        if name != DATA and parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    }
    return named, any(parameter.kind is parameter.VAR_KEYWORD for parameter in found.values())


def check_names(train: Train, params: Mapping[str, Any], taken: frozenset[str]) -> None:
    """Raise an error if parameters are none of the train function's, or are called like a setting of the estimator.

    Raises:
        SignatureError: If there are such; names all of them.
    """
    named, takes_any = hyperparameters(train)
    mistakes = [
        f"{name!r} is a setting of the estimator; call the parameter of the train function otherwise"
        for name in named
        if name in taken
    ]
    if not takes_any:
        allowed = [*named, *taken]
        mistakes += [f"{name!r} is unknown.{nearest(name, allowed)}" for name in params if name not in named]
    if mistakes:
        wanted = ", ".join(named) or "no parameters"
        raise SignatureError(f"{getattr(train, '__name__', 'train')} takes {wanted} besides data.", mistakes)
