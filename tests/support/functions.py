"""Functions to search in tests, and a loop that is quicker than a driver because it copies nothing."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

from cargobike.core.records import Params, Suggestion, Trial, TrialState
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.spaces.space import Searchspace

PLANE = Searchspace(x=("DOUBLE", [-5.0, 10.0]), y=("DOUBLE", [0.0, 15.0]))
BRANCHES = Searchspace(
    model=("CATEGORICAL", ["tree", "net", "line"]),
    depth=("INTEGER", [1, 20], {"when": {"model": "tree"}}),
    rate=("DOUBLE", [1e-5, 1.0], "log", {"when": {"model": "net"}}),
    act=("CATEGORICAL", ["relu", "tanh", "gelu"], {"when": {"model": "net"}}),
)


def branin(params: Params) -> float:
    """A smooth function on `PLANE` with three equal minima; here 0 is the lowest."""
    x, y = float(params["x"]), float(params["y"])
    bowl = (y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6) ** 2
    return bowl + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10 - 0.397887


def branches(params: Params) -> float:
    """A function on `BRANCHES` that is lowest, 0, for one model with the right numbers."""
    if params["model"] == "net":
        return abs(math.log10(params["rate"]) + 2) + (0 if params["act"] == "gelu" else 0.3)
    return 1.0 + (abs(params["depth"] - 7) / 10 if params["model"] == "tree" else 0.5)


def minimize(
    optimizer: AbstractOptimizer, function: Callable[[Params], float], space: Searchspace, trials: int, seed: int
) -> list[float]:
    """Run trials one after the other and return their values."""
    optimizer.setup(space, num_trials=trials, direction="min", seed=seed)
    optimizer.initialize()
    values: list[float] = []
    for number in range(trials):
        answer = optimizer.get_suggestion()
        suggestion = Suggestion(params=answer) if isinstance(answer, dict) else answer
        assert isinstance(suggestion, Suggestion)
        value = function(suggestion.params)
        trial = Trial(suggestion.params, number=number, state=TrialState.COMPLETED, value=value, info=suggestion.info)
        optimizer.trials[number] = trial
        optimizer.final_store.append(trial)
        optimizer.observe(trial)
        values.append(value)
    return values


def typical_best(
    make: Callable[[], AbstractOptimizer], function: Callable[[Params], float], space: Searchspace, trials: int
) -> float:
    """Return the median over nine seeds of the best value found."""
    return statistics.median(min(minimize(make(), function, space, trials, seed)) for seed in range(9))
