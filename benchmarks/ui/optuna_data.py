"""Write the search into Optuna's SQLite storage, through its own tables: run it in optuna-dashboard's environment.

    python optuna_data.py FILE.sqlite TRIALS POINTS

Written in bulk, because only reading is measured.
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import optuna
import sqlalchemy as sa
from data import START_S, runs
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution, distribution_to_json
from optuna.storages._rdb import models

STATES = {"completed": "COMPLETE", "stopped": "PRUNED", "failed": "FAIL"}
SPACE = {
    "lr": FloatDistribution(1e-4, 1e-1, log=True),
    "layers": IntDistribution(1, 5),
    "act": CategoricalDistribution(["relu", "gelu", "silu"]),
    "batch": CategoricalDistribution([32, 64, 128]),
    "dropout": FloatDistribution(0.0, 0.5),
}


def main() -> None:
    path, trials, points = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    optuna.create_study(study_name="big", storage=f"sqlite:///{path}", direction="maximize")
    engine = sa.create_engine(f"sqlite:///{path}")
    texts = {name: distribution_to_json(distribution) for name, distribution in SPACE.items()}
    with engine.begin() as connection:
        for run in runs(trials, points):
            key = run.number + 1
            at = datetime.datetime.fromtimestamp(START_S + run.number)
            connection.execute(
                sa.insert(models.TrialModel.__table__),
                {"trial_id": key, "number": run.number, "study_id": 1, "state": STATES[run.state],
                 "datetime_start": at, "datetime_complete": at + datetime.timedelta(seconds=1)},
            )  # fmt: skip
            params = [
                {"trial_id": key, "param_name": name, "distribution_json": texts[name],
                 "param_value": SPACE[name].to_internal_repr(value)}
                for name, value in run.params.items()
            ]  # fmt: skip
            connection.execute(sa.insert(models.TrialParamModel.__table__), params)
            steps = [
                {"trial_id": key, "step": step, "intermediate_value": value, "intermediate_value_type": "FINITE"}
                for step, value in enumerate(run.curve)
            ]
            connection.execute(sa.insert(models.TrialIntermediateValueModel.__table__), steps)
            if run.value is not None:
                value = {"trial_id": key, "objective": 0, "value": run.value, "value_type": "FINITE"}
                connection.execute(sa.insert(models.TrialValueModel.__table__), value)


if __name__ == "__main__":
    main()
