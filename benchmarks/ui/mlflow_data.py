"""Write the search into MLflow's SQLite store, through its own tables: run it in MLflow's environment.

    python mlflow_data.py FILE.sqlite TRIALS POINTS

Written in bulk, because only reading is measured.
"""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

import sqlalchemy as sa
from data import METRIC, START_S, runs
from mlflow.store.tracking.dbmodels.models import SqlExperiment, SqlLatestMetric, SqlMetric, SqlParam, SqlRun, SqlTag
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

STATES = {"completed": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}


def main() -> None:
    path, trials, points = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    store = SqlAlchemyStore(f"sqlite:///{path}", str(path.parent / "artifacts"))
    experiment_id = int(store.create_experiment("big"))
    engine = sa.create_engine(f"sqlite:///{path}")
    start_ms = int(START_S * 1000)
    with engine.begin() as connection:
        for run in runs(trials, points):
            run_id = uuid.UUID(int=run.number + 1).hex
            connection.execute(
                sa.insert(SqlRun.__table__),
                {
                    "run_uuid": run_id, "name": f"trial {run.number}", "source_type": "LOCAL", "user_id": "me",
                    "status": STATES[run.state], "start_time": start_ms + run.number, "end_time": start_ms + run.number,
                    "lifecycle_stage": "active", "experiment_id": experiment_id, "artifact_uri": f"/tmp/{run_id}",
                },
            )  # fmt: skip
            params = [{"run_uuid": run_id, "key": key, "value": str(value)} for key, value in run.params.items()]
            connection.execute(sa.insert(SqlParam.__table__), params)
            tags = {"mlflow.runName": f"trial {run.number}", "mlflow.user": "me", "mlflow.source.type": "LOCAL"}
            labelled = [{"run_uuid": run_id, "key": key, "value": value} for key, value in tags.items()]
            connection.execute(sa.insert(SqlTag.__table__), labelled)
            common = {"run_uuid": run_id, "key": METRIC, "is_nan": False}
            rows = [
                {**common, "value": value, "step": step, "timestamp": start_ms + step}
                for step, value in enumerate(run.curve)
            ]
            connection.execute(sa.insert(SqlMetric.__table__), rows)
            connection.execute(sa.insert(SqlLatestMetric.__table__), rows[-1:])
    print(SqlExperiment.__tablename__, experiment_id)


if __name__ == "__main__":
    main()
