"""Peers behind our optimizer interface, so that all of them search in the same virtual time on the same workers.

Optuna is asked through its ask and tell; Ray's and Syne Tune's schedulers live in venvs of their own (see
`peers/halving_lines.py`) and are asked line by line. Each gets the space in its own words, is asked when a worker is
free and not before, and is told of every report, as its own loop would do. None of them can resume a trial.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from quality_curves import EPOCHS

from cargobike.core.records import Decision, Params, Suggestion, Trial, TrialState
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.search.spaces.parameter import Parameter

BENCHMARKS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(BENCHMARKS))

from rig.venvs import python_of  # noqa: E402 - a neighbour of this folder


class OptunaPeer(AbstractOptimizer):
    """A study of Optuna.

    Args:
        kind: `"tpe"` or `"gp"`, at their defaults and without pruning; `"tpe+hyperband"` or `"random+hyperband"`, with
            the Hyperband pruner; `"tpe+asha"`, with that of successive halving; `"tpe+median"`, with that of medians.
    """

    is_endless: ClassVar[bool] = True

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.judges_steps = "+" in kind

    def initialize(self) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        seed = self.rng.getrandbits(31)
        sampler: Any
        if self.kind == "gp":
            independent = optuna.samplers.RandomSampler(seed=seed)
            sampler = optuna.samplers.GPSampler(
                seed=seed, independent_sampler=independent, warn_independent_sampling=False
            )
        elif self.kind.startswith("random"):
            sampler = optuna.samplers.RandomSampler(seed=seed)
        else:
            sampler = optuna.samplers.TPESampler(seed=seed)
        pruner: Any = optuna.pruners.NopPruner()
        if self.kind.endswith("+hyperband"):
            pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=EPOCHS, reduction_factor=3)
        elif self.kind.endswith("+asha"):
            pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3)
        elif self.kind.endswith("+median"):
            pruner = optuna.pruners.MedianPruner()
        self._study = optuna.create_study(sampler=sampler, pruner=pruner, study_name="peer")
        self._pruned = optuna.trial.TrialState.PRUNED
        self._asked: dict[int, Any] = {}

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        asked = self._study.ask()
        known: Params = {}
        while new := [name for name in self.space.active_names(known) if name not in known]:
            for name in new:
                known[name] = _ask(asked, self.space[name])
        self._asked[asked.number] = asked
        return Suggestion(params=known, info={"asked": asked.number})

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial]) -> Decision:
        asked = self._asked[trial.info["asked"]]
        if not len(trial.curve):
            return Decision.CONTINUE
        asked.report(trial.curve.values[-1], step)
        return Decision.STOP if step < EPOCHS and asked.should_prune() else Decision.CONTINUE

    def observe(self, trial: Trial) -> None:
        asked = self._asked.pop(trial.info["asked"])
        if trial.state is TrialState.COMPLETED:
            self._study.tell(asked, trial.value)
        elif trial.state is TrialState.STOPPED:
            self._study.tell(asked, state=self._pruned)


def _ask(asked: Any, parameter: Parameter) -> Any:
    if parameter.type == "DOUBLE":
        return asked.suggest_float(parameter.name, parameter.low, parameter.high, log=parameter.scale == "log")
    if parameter.type == "INTEGER":
        return asked.suggest_int(parameter.name, parameter.low, parameter.high, log=parameter.scale == "log")
    if parameter.type == "DISCRETE":
        return sorted(parameter.values)[asked.suggest_int(parameter.name, 0, len(parameter.values) - 1)]  # type: ignore[type-var]
    return asked.suggest_categorical(parameter.name, parameter.values)


class LinePeer(AbstractOptimizer):
    """A scheduler in another process. Conditions mean nothing to it: what does not exist is thrown away.

    Args:
        system: `"ray-asha"`, `"syne-asha"` or `"syne-bohb"`.
    """

    is_endless: ClassVar[bool] = True
    judges_steps = True
    _processes: ClassVar[dict[str, subprocess.Popen[str]]] = {}

    def __init__(self, system: str) -> None:
        self.system = system

    def initialize(self) -> None:
        parameters = self.space.parameters.values()
        columns = [_column(parameter) for parameter in parameters]
        seed = self.rng.getrandbits(31)
        self._say(do="begin", system=self.system, columns=columns, epochs=EPOCHS, seed=seed)
        self._count = 0

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        number, self._count = self._count, self._count + 1
        config = self._say(do="suggest", trial=number)["config"]
        params: Params = {}
        while new := [name for name in self.space.active_names(params) if name not in params]:
            params |= {name: _value(self.space[name], config[name]) for name in new}
        return Suggestion(params=params, info={"asked": number})

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial]) -> Decision:
        if not len(trial.curve) or step >= EPOCHS:
            return Decision.CONTINUE
        loss = trial.curve.values[-1]
        answer = self._say(do="result", trial=trial.info["asked"], epoch=step, loss=loss)
        return Decision.STOP if answer["stop"] else Decision.CONTINUE

    def observe(self, trial: Trial) -> None:
        if trial.state is TrialState.COMPLETED:
            self._say(do="complete", trial=trial.info["asked"], epoch=EPOCHS, loss=trial.value)

    def _say(self, **what: Any) -> Any:
        process = self._process()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(what) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.system} died; its last words are above")
        return json.loads(answer)

    def _process(self) -> subprocess.Popen[str]:
        venv = "ray" if self.system.startswith("ray") else "syne-tune"
        if venv not in self._processes:
            self._processes[venv] = subprocess.Popen(
                [str(python_of(venv, BENCHMARKS.parent)), str(BENCHMARKS / "peers" / "halving_lines.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        return self._processes[venv]

    @classmethod
    def dismiss_all(cls) -> None:
        """End the processes; closing what they listen to is enough."""
        for process in cls._processes.values():
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout=60)
        cls._processes.clear()


def _column(parameter: Parameter) -> list[Any]:
    if parameter.type == "DOUBLE":
        return [parameter.name, "float", parameter.low, parameter.high, parameter.scale == "log"]
    if parameter.type == "INTEGER":
        return [parameter.name, "int", parameter.low, parameter.high]
    return [parameter.name, "choice" if parameter.type == "CATEGORICAL" else "ordered", len(parameter.values)]


def _value(parameter: Parameter, told: Any) -> Any:
    if parameter.type == "DOUBLE":
        assert parameter.low is not None
        assert parameter.high is not None
        return min(max(float(told), parameter.low), parameter.high) if math.isfinite(told) else parameter.low
    if parameter.type == "INTEGER":
        assert parameter.low is not None
        assert parameter.high is not None
        return int(min(max(told, parameter.low), parameter.high))
    values = sorted(parameter.values) if parameter.type == "DISCRETE" else list(parameter.values)  # type: ignore[type-var]
    return values[told]
