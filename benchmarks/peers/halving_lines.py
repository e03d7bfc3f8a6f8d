"""Ray's and Syne Tune's schedulers, asked line by line: run by the interpreter of their venv, imports nothing of ours.

Each line that comes in is a JSON object with a `do`, each line that goes out the answer to it:

    begin    system, columns, epochs, seed    {}
    suggest  trial                            {"config": {…}}
    result   trial, epoch, loss               {"stop": true or false}
    complete trial, epoch, loss               {}

A column is [name, "float", low, high, is_log], [name, "int", low, high], [name, "ordered", count] or
[name, "choice", count]; of the last two kinds a config holds positions.
"""

from __future__ import annotations

import json
import logging
import sys
import types
from datetime import datetime
from typing import Any

import numpy as np


class RayASHA:
    """Ray's scheduler with trials drawn at random, as Ray does without a search algorithm."""

    def __init__(self, system: str, columns: list[list[Any]], epochs: int, seed: int) -> None:
        from ray.tune.schedulers.async_hyperband import ASHAScheduler

        self.scheduler = ASHAScheduler(
            time_attr="epoch", metric="loss", mode="min", max_t=epochs, grace_period=1, reduction_factor=3
        )
        self.columns = columns
        self.rng = np.random.RandomState(seed)
        self.trials: dict[int, Any] = {}

    def suggest(self, trial: int) -> dict[str, Any]:
        self.trials[trial] = types.SimpleNamespace(trial_id=str(trial))
        self.scheduler.on_trial_add(None, self.trials[trial])
        return {name: self._draw(kind, *rest) for name, kind, *rest in self.columns}

    def _draw(self, kind: str, *rest: Any) -> Any:
        if kind == "float":
            low, high, is_log = rest
            if is_log:
                return float(np.exp(self.rng.uniform(np.log(low), np.log(high))))
            return float(self.rng.uniform(low, high))
        if kind == "int":
            return int(self.rng.randint(rest[0], rest[1] + 1))
        return int(self.rng.randint(rest[0]))

    def result(self, trial: int, epoch: int, loss: float) -> bool:
        return bool(self.scheduler.on_trial_result(None, self.trials[trial], {"epoch": epoch, "loss": loss}) == "STOP")

    def complete(self, trial: int, epoch: int, loss: float) -> None:
        self.scheduler.on_trial_complete(None, self.trials[trial], {"epoch": epoch, "loss": loss})


class SyneTune:
    """One of Syne Tune's baselines."""

    def __init__(self, system: str, columns: list[list[Any]], epochs: int, seed: int) -> None:
        from syne_tune import config_space
        from syne_tune.optimizer import baselines

        np.random.seed(seed)  # parts of it draw from the global source
        kinds = {
            "float": lambda low, high, is_log: (config_space.loguniform if is_log else config_space.uniform)(low, high),
            "int": config_space.randint,
            "ordered": lambda count: config_space.ordinal(list(range(count)), kind="equal"),
            "choice": lambda count: config_space.choice(list(range(count))),
        }
        space = {name: kinds[kind](*rest) for name, kind, *rest in columns}
        make = {"syne-asha": baselines.ASHA, "syne-bohb": baselines.BOHB}[system]
        self.scheduler = make(
            space, metric="loss", time_attr="epoch", max_t=epochs, do_minimize=True, random_seed=seed % 2**31
        )
        self.trials: dict[int, Any] = {}

    def suggest(self, trial: int) -> dict[str, Any]:
        from syne_tune.backend.trial_status import Trial

        config = self.scheduler.suggest().config
        self.trials[trial] = Trial(trial, config, datetime(2000, 1, 1))
        self.scheduler.on_trial_add(self.trials[trial])
        return {name: value.item() if isinstance(value, np.generic) else value for name, value in config.items()}

    def result(self, trial: int, epoch: int, loss: float) -> bool:
        decision = self.scheduler.on_trial_result(self.trials[trial], {"epoch": epoch, "loss": loss})
        if decision == "STOP":
            self.scheduler.on_trial_remove(self.trials[trial])
        return bool(decision == "STOP")

    def complete(self, trial: int, epoch: int, loss: float) -> None:
        self.scheduler.on_trial_complete(self.trials[trial], {"epoch": epoch, "loss": loss})


def main() -> None:
    logging.disable(logging.WARNING)
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever they print must not be taken for an answer
    peer: Any = None
    for line in sys.stdin:
        asked = json.loads(line)
        do = asked.pop("do")
        answer: dict[str, Any] = {}
        if do == "begin":
            peer = (RayASHA if asked["system"].startswith("ray") else SyneTune)(**asked)
        elif do == "suggest":
            answer["config"] = peer.suggest(**asked)
        elif do == "result":
            answer["stop"] = peer.result(**asked)
        else:
            peer.complete(**asked)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
