"""The operator that searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cargobike_provider.errors import CargobikeMistake
from cargobike_provider.operators.operator import CargobikeOperator, Function, read_function


class CargobikeExperimentOperator(CargobikeOperator):
    """Search a train function over a space, or run it once, tracked.

    Returns `{"kind": "experiment", "id": …, "state": …, "best": {"trial": …, "params": …, "value": …}}`. The experiment
    carries the DAG, its run and the task as tags, so that `cargobike ls --tag airflow-dag=…` finds it.

    Args:
        train: `"file.py:function"`, relative to the DAG's folder; or a function that can be imported.
        space: What to try, as plain data: lists are a grid, `{"lr": ["DOUBLE_LOG", [0.001, 0.1]]}` is a search space;
            or the path of a YAML or JSON file.
        parameters: One set of parameters, for a single run; instead of `space`.
        experiment_name: The experiment's name; by default the function's.
        num_trials: How many trials.
        metric: Which entry of a returned dict to optimize.
        direction: `"max"` or `"min"`.
        options: Further arguments of `experiment.launch`, as plain data.
    """

    template_fields: Sequence[str] = (
        *CargobikeOperator.template_fields,
        "train",
        "space",
        "parameters",
        "experiment_name",
        "num_trials",
        "metric",
        "options",
    )

    def __init__(
        self,
        *,
        train: Function,
        space: Mapping[str, Any] | Sequence[Mapping[str, Any]] | str | None = None,
        parameters: Mapping[str, Any] | None = None,
        experiment_name: str | None = None,
        num_trials: int | str | None = None,
        metric: str | None = None,
        direction: str | None = None,
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.train = read_function("train", train)
        self.space = space
        self.parameters = parameters
        self.experiment_name = experiment_name
        self.num_trials = num_trials
        self.metric = metric
        self.direction = direction
        self.options = options
        self.announce("experiment", experiment_name or self.train.rpartition(":")[2])

    def request(self) -> tuple[str, dict[str, Any]]:
        """Return what the program is asked for."""
        own = {
            "params": self.parameters,
            "name": self.experiment_name,
            "num_trials": None if self.num_trials is None else int(self.num_trials),
            "metric": self.metric,
            "direction": self.direction,
        }
        twice = sorted(
            set(self.options or {}) & {"train", "space", *(key for key, one in own.items() if one is not None)}
        )
        if twice:
            raise CargobikeMistake(f"options: {', '.join(twice)} is given twice.")
        options = {**{key: one for key, one in own.items() if one is not None}, **(self.options or {})}
        return "experiment", {"train": self.train, "space": self.space, "options": options}
