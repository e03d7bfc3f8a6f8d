"""Searches in virtual time: who searches, on what, how good they were when; everything found is kept in a cache."""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import quality_peers
from quality_curves import EPOCHS
from quality_peers import LinePeer, OptunaPeer
from quality_problems import Params, Problem

import cargobike.search
from cargobike.experiments.scheduling.simulation import SimulatedRun, simulate
from cargobike.search.optimizers.asha import ASHA
from cargobike.search.optimizers.auto import Auto
from cargobike.search.optimizers.bohb import BOHB
from cargobike.search.optimizers.dehb import DEHB
from cargobike.search.optimizers.hyperband import Hyperband
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.optimizers.registry import resolve_optimizer

FULL_TRAININGS = 40
WORKERS = 4
BUDGET_S = float(FULL_TRAININGS * EPOCHS / WORKERS)
"""An epoch takes a virtual second."""
SHARES = (0.25, 0.5, 1.0)


@dataclass(frozen=True)
class System:
    """Somebody who searches.

    Attributes:
        name: As in the tables.
        make: Makes the optimizer.
        is_ours: Whether it is one of Cargobike's.
        namesake: Which of ours does what this peer does.
        is_slow: Whether a search takes seconds.
    """

    name: str
    make: Callable[[], AbstractOptimizer]
    is_ours: bool = True
    namesake: str = ""
    is_slow: bool = False


def _ours(name: str) -> System:
    return System(name, functools.partial(resolve_optimizer, name), is_slow=name == "gp")


SYSTEMS = [
    _ours("auto"),
    System("auto, to the end", lambda: Auto(stops_trials=False)),
    _ours("randomsearch"),
    _ours("sobol"),
    _ours("tpe"),
    _ours("gp"),
    _ours("de"),
    System("asha, promotion", lambda: ASHA(resource_max=EPOCHS, variant="promotion")),
    System("asha, stopping", lambda: ASHA(resource_max=EPOCHS, variant="stopping")),
    System("hyperband", lambda: Hyperband(resource_max=EPOCHS)),
    System("bohb", lambda: BOHB(resource_max=EPOCHS)),
    System("dehb", lambda: DEHB(resource_max=EPOCHS)),
    System("Optuna TPE", lambda: OptunaPeer("tpe"), False, "tpe"),
    System("Optuna GP", lambda: OptunaPeer("gp"), False, "gp", is_slow=True),
    System("Optuna TPE, Hyperband pruner", lambda: OptunaPeer("tpe+hyperband"), False, "bohb"),
    System("Optuna TPE, ASHA pruner", lambda: OptunaPeer("tpe+asha"), False, "bohb"),
    System("Optuna TPE, median pruner", lambda: OptunaPeer("tpe+median"), False, "bohb"),
    System("Optuna random, Hyperband pruner", lambda: OptunaPeer("random+hyperband"), False, "hyperband"),
    System("Ray ASHA", lambda: LinePeer("ray-asha"), False, "asha, promotion"),
    System("Syne Tune ASHA", lambda: LinePeer("syne-asha"), False, "asha, promotion"),
    System("Syne Tune BOHB", lambda: LinePeer("syne-bohb"), False, "bohb", is_slow=True),
]


def search(system: System, problem: Problem, seed: int) -> list[float]:
    """Return the regret after each share of the budget, that of the best configuration trained to its end by then.

    The last number is how many configurations were looked at.
    """

    def train(params: Params, seed: int) -> SimulatedRun:
        curve = problem.curve(params)
        if problem.reports:
            return SimulatedRun(steps=[(1.0, {"loss": loss}) for loss in curve], value=curve[-1])
        return SimulatedRun(steps=[(float(EPOCHS), {})], value=curve[-1])

    result = simulate(
        train,
        problem.space,
        optimizer=system.make(),
        workers=WORKERS,
        direction="min",
        seed=seed,
        timeout_s=BUDGET_S + 1e-6,
        # Ours are asked ahead of need, as in every experiment; peers when a worker is free, as by their own loops.
        ask_ahead=1 if system.is_ours else 0,
    )
    ended = [trial for trial in result.trials if trial.state.value == "completed" and trial.value is not None]
    found = []
    for share in SHARES:
        known = [trial for trial in ended if trial.ended_at is not None and trial.ended_at <= share * BUDGET_S + 1e-6]
        best = min(known, key=lambda trial: float(trial.value or 0.0), default=None)
        if best is None:
            found.append(problem.regret(None))
        else:
            found.append(problem.regret(best.value if problem.truth is None else problem.truth(best.params)))
    return [*found, float(len(result.trials))]


class Results:
    """Regrets by system, problem and seed, kept in files so that only what changed is searched again."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache / "quality"
        self._cache.mkdir(parents=True, exist_ok=True)

    def of(
        self, system: System, problem: Problem, seeds: Iterable[int], deadline: float | None = None
    ) -> dict[int, list[float]]:
        """Return what a system found on a problem for each seed, searching where that is not known yet."""
        path, known = self._kept(system, problem.name)
        wanted = list(seeds)
        for seed in wanted:
            if str(seed) not in known and (deadline is None or time.monotonic() < deadline):
                known[str(seed)] = search(system, problem, seed)
                path.write_text(json.dumps(known))
        return {seed: known[str(seed)] for seed in wanted if str(seed) in known}

    def known(self, system: System, problem: str, seeds: Iterable[int]) -> dict[int, list[float]]:
        """Return what is known, without searching."""
        known = self._kept(system, problem)[1]
        return {seed: known[str(seed)] for seed in seeds if str(seed) in known}

    def _kept(self, system: System, problem: str) -> tuple[Path, dict[str, list[float]]]:
        path = self._cache / f"{_slug(system.name)}--{_slug(problem)}--{_state_of(system)}.json"
        return path, json.loads(path.read_text()) if path.exists() else {}


def _slug(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)


_SHARED = ("optimizer", "space", "parameter", "scales", "randomsearch", "sobol", "encoding", "standing")
_AUTO = (
    *("asha", "rungs", "sampler", "bohb", "levels", "contrast", "parzen"),
    *("tpe", "auto", "gaussian", "improvement", "foresight", "prospects"),
)
_PARTS: dict[str, tuple[str, ...]] = {
    "randomsearch": (),
    "asha": ("asha", "rungs", "sampler"),
    "sobol": (),
    "de": ("differential_evolution",),
    "tpe": ("tpe", "parzen", "contrast"),
    "gp": ("optuna_bridge",),
    "asha, promotion": ("asha", "rungs", "sampler"),
    "asha, stopping": ("asha", "rungs", "sampler"),
    "hyperband": ("asha", "rungs", "sampler", "hyperband"),
    "bohb": ("asha", "rungs", "sampler", "hyperband", "bohb", "levels", "contrast", "parzen"),
    "auto": _AUTO,
    "auto, to the end": _AUTO,
    "dehb": ("asha", "rungs", "sampler", "hyperband", "dehb", "differential_evolution"),
}


@functools.cache
def _digest(path: Path) -> str:
    """Return a digest of a file's code: neither its layout nor its comments and docstrings change what it does."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [part for part in body if not _is_text(part)]  # type: ignore[attr-defined]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_text(part: ast.AST) -> bool:
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)


def _state_of(system: System) -> str:
    """Return a digest of the code that decides what a system does."""
    if not system.is_ours:
        files = [Path(quality_peers.__file__), quality_peers.BENCHMARKS / "peers" / "halving_lines.py"]
    else:
        folder = Path(cargobike.search.__file__).parent
        files = [next(folder.rglob(f"{name}.py")) for name in (*_SHARED, *_PARTS[system.name])]
    return hashlib.sha256("".join(map(_digest, files)).encode()).hexdigest()[:12]


def describe_peers() -> dict[str, Any]:
    """Return the versions of the peers."""
    import optuna
    from rig.venvs import python_of, version_of

    root = quality_peers.BENCHMARKS.parent
    versions = {peer: version_of(peer, python_of(peer, root)) for peer in ("ray", "syne-tune")}
    return {"optuna": optuna.__version__, **versions}
