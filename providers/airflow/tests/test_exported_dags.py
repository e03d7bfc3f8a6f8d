"""What `cargobike pipelines export --airflow` writes runs in a real Airflow."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session

from cargobike_provider.operators import CargobikePipelineOperator
from conftest import HERE, OTHER_PYTHON, Context, use_dags


@pytest.mark.parametrize(
    ("name", "tasks", "returned"),
    [
        ("search", ["load", "score__2", "score__3", "keep", "describe"], "best scored:2 1.5"),
        ("with_objects", ["with_objects"], {"kind": "pipeline", "name": "with_objects", "result": 4}),
    ],
)
def test_an_exported_pipeline_runs_as_a_dag(
    full_project: Path,
    context: Context,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    tasks: list[str],
    returned: Any,
) -> None:
    run = CargobikePipelineOperator(task_id="run", pipeline=f"runs.py:{name}", parameters={"rows": 3})
    before = run.execute(context)
    dags = tmp_path / "dags"
    dags.mkdir()
    target = dags / f"{name}.py"
    export = ["pipelines", "export", before["id"], "--airflow", "-o", str(target)]
    variables = {**os.environ, "CARGOBIKE_PROJECT": str(full_project)}
    variables.pop("PYTHONPATH", None)
    subprocess.run(
        [OTHER_PYTHON, "-m", "cargobike.cli", *export],
        env=variables,
        cwd=HERE,
        check=True,
        timeout=120,
        capture_output=True,
    )
    use_dags(monkeypatch, dags)
    bag = DagBag(str(dags))
    assert bag.import_errors == {}
    outcome = bag.dags[name].test()
    assert {one.task_id: str(one.state) for one in outcome.get_task_instances()} == dict.fromkeys(tasks, "success")
    with create_session() as session:
        rows = session.query(XComModel).filter_by(dag_id=name, run_id=outcome.run_id, task_id=tasks[-1])
        value = XComModel.deserialize_value(rows.filter_by(key="return_value").one())
    if isinstance(returned, dict):
        assert returned.items() <= value.items()
        assert value["id"] != before["id"]
    else:
        assert value == returned
