from __future__ import annotations

import ast
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cargobike import pipelines
from cargobike.cli.app import app
from cargobike.errors import InvalidInputError, StepFailedError
from cargobike.pipelines.exporting.airflow import as_airflow_dag

PIPELINES = """
from cargobike import pipelines


@pipelines.step
def load(rows):
    return list(range(rows))


@pipelines.step
def train(data, rate):
    return {"score": rate * len(data)}


@pipelines.step
def best(scores):
    return max(score["score"] for score in scores)


def search(rows=3):
    data = load(rows)
    return best(train.map([data, data], [0.1, 0.2])).result()


def with_objects(rows=3):
    inner = pipelines.step(lambda rows: object, name="inner")
    return str(pipelines.step(str)(inner((1, 2))).result())


def failing():
    return load("x").result()
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(tmp_path / "project"))
    path = tmp_path / "search_steps.py"
    path.write_text(PIPELINES)
    return path


def test_each_step_becomes_a_task_that_is_given_what_others_return(file: Path) -> None:
    run = pipelines.run(f"{file}:search", rows=4)
    dag = as_airflow_dag(run.record, dag_id="nightly", schedule="@daily", conn_id="team")
    assert (dag.dag_id, dag.tasks, dag.reasons) == ("nightly", ["load", "train__2", "train__3", "best"], [])
    ast.parse(dag.text)
    assert "DAG('nightly', schedule='@daily'" in dag.text
    assert f"function='{file}:load'" in dag.text
    assert "'rows': 4," in dag.text
    assert "'data': load.output," in dag.text
    assert "'rate': 0.2," in dag.text
    assert "'scores': [train__2.output, train__3.output]," in dag.text
    assert "cargobike_conn_id='team'" in dag.text


def test_steps_that_cannot_stand_alone_make_it_one_task_and_are_named(file: Path) -> None:
    run = pipelines.run(f"{file}:with_objects", rows=4)
    dag = as_airflow_dag(run.record)
    assert dag.tasks == ["with_objects"]
    ast.parse(dag.text)
    assert f"pipeline='{file}:with_objects'" in dag.text
    assert "parameters={'rows': 4}" in dag.text
    words = "\n".join(dag.reasons)
    assert "step 1 (inner) is made of a function that is not at the top of a file" in words
    assert "step 1 (inner) is given rows, (1, 2), which is not plain data" in words
    assert "step 1 (inner) hands on" in words


def test_what_cannot_be_exported_is_said_at_once(file: Path) -> None:
    with pytest.raises(StepFailedError):
        pipelines.run(f"{file}:failing")
    with pytest.raises(InvalidInputError, match=r"(?s)dag_id='a b'.*is failed: which steps there are"):
        as_airflow_dag(pipelines.get("last").record, dag_id="a b")


def test_a_pipeline_in_memory_cannot_be_found_from_there(file: Path) -> None:
    run = pipelines.run(lambda: 1)
    with pytest.raises(InvalidInputError, match="not at the top of a file"):
        as_airflow_dag(run.record)


def test_the_command_writes_a_file_whole(file: Path, tmp_path: Path) -> None:
    pipelines.run(f"{file}:search")
    target = tmp_path / "dag.py"
    done = CliRunner().invoke(app, ["pipelines", "export", "last", "--airflow", "-o", str(target)])
    assert done.exit_code == 0, done.output
    assert "the DAG search with load, train__2, train__3, best" in done.output
    compile(target.read_text(), str(target), "exec")
    printed = CliRunner().invoke(app, ["pipelines", "export", "--airflow"])
    assert printed.output == target.read_text()
