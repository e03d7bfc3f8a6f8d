from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cargobike_provider.errors import CargobikeMistake, CargobikeTaskError
from cargobike_provider.operators import CargobikePipelineOperator
from conftest import Context

Logged = Callable[[], str]


def operator(name: str, folder: Path, **options: object) -> CargobikePipelineOperator:
    return CargobikePipelineOperator(
        task_id="one", pipeline=f"runs.py:{name}", parameters={"folder": str(folder)}, **options
    )


def test_a_pipeline_that_is_tried_again_goes_on_where_it_was(
    project: Path, context: Context, tmp_path: Path, logged: Logged
) -> None:
    with pytest.raises(CargobikeTaskError, match=r"the mill is not there"):
        operator("bake", tmp_path).execute(context)
    assert "raise FileNotFoundError" in logged()
    (tmp_path / "mill").touch()
    answer = operator("bake", tmp_path).execute(context)
    assert (answer["state"], answer["result"], answer["steps"]) == ("completed", "flour bread", 2)
    assert (tmp_path / "grown").read_text() == "once "  # the first step was not run a second time
    assert operator("bake", tmp_path).execute(context) == answer
    assert answer["id"].startswith("airflow-retrain-one-")
    event = context["events"]["cargobike://cargobike_default/pipeline/bake"]
    assert event.extra["cargobike"]["id"] == answer["id"]


def test_another_run_of_the_dag_is_another_run(project: Path, context: Context, tmp_path: Path) -> None:
    (tmp_path / "mill").touch()
    first = operator("bake", tmp_path).execute(context)
    context["ti"].run_id = "manual__2026-01-02T00:00:00+00:00"
    assert operator("bake", tmp_path).execute(context)["id"] != first["id"]


def test_a_pipeline_called_wrongly_says_how_it_is_called(project: Path, context: Context) -> None:
    wrong = CargobikePipelineOperator(task_id="one", pipeline="runs.py:bake", parameters={"foldr": "x"})
    with pytest.raises(CargobikeMistake, match=r"(?s)no parameter 'foldr'.*Did you mean 'folder'"):
        wrong.execute(context)
