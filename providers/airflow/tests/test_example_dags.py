"""The example runs from data to a deployment in a real Airflow, by `dag.test()`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.models.asset import AssetEvent
from airflow.utils.session import create_session

from cargobike_provider import example_dags
from cargobike_provider.operators import CargobikeFunctionOperator
from conftest import Context, use_dags

FOLDER = Path(example_dags.__file__).parent


@pytest.fixture
def served(full_project: Path, context: Context, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a project, and stop what the example has deployed there."""
    use_dags(monkeypatch, FOLDER)
    yield full_project
    CargobikeFunctionOperator(task_id="stop", function="predictors.py:stop", op_args=["houses"]).execute(context)


def run(dag: Any) -> dict[str, str]:
    outcome = dag.test()
    return {instance.task_id: str(instance.state) for instance in outcome.get_task_instances()}


def test_the_example_goes_from_data_to_a_deployment_that_is_rolled(served: Path, context: Context) -> None:
    from cargobike_provider.example_dags.example_cargobike import dag, roll_dag

    tasks = ("make_data", "make_features", "fresh", "search", "register", "deploy")
    assert run(dag) == dict.fromkeys(tasks, "success")
    ask = CargobikeFunctionOperator(
        task_id="ask", function="predictors.py:predict", op_args=["houses", {"rooms": 3, "area": 70.0}]
    )
    assert ask.execute(context) == pytest.approx(240, rel=0.1)
    with create_session() as session:
        events = {event.asset.uri: event.extra for event in session.query(AssetEvent).all()}
    model = events["cargobike://cargobike_default/model/house_prices"]["cargobike"]
    assert model["alias"] == "champion"
    assert "dataset house_prices:1" in model["made_from"]
    assert events["cargobike://cargobike_default/group/houses"]["cargobike"]["commit"] == 0
    assert events["cargobike://cargobike_default/deployment/houses"]["dag_id"] == "example_cargobike"
    promote = CargobikeFunctionOperator(
        task_id="other", function="predictors.py:promote_another", op_args=["house_prices"]
    )
    other = promote.execute(context)
    assert other != model["id"]
    assert run(roll_dag) == {"roll": "success"}
    version = CargobikeFunctionOperator(task_id="v", function="predictors.py:version_of", op_args=["houses"])
    assert version.execute(context) == other
    assert os.path.isdir(served)
