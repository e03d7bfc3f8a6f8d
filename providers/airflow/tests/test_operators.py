from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cargobike_provider.errors import CargobikeMistake, CargobikeTaskError
from cargobike_provider.operators import (
    CargobikeDeployOperator,
    CargobikeExperimentOperator,
    CargobikeFunctionOperator,
    CargobikeNotebookOperator,
    CargobikeRegisterModelOperator,
    CargobikeRollOperator,
)
from conftest import OTHER_PYTHON, Context, connect

Logged = Callable[[], str]


def function(name: str, **options: Any) -> CargobikeFunctionOperator:
    return CargobikeFunctionOperator(task_id="one", function=f"tasks.py:{name}", **options)


def test_a_function_runs_in_the_same_python_and_what_it_prints_is_logged(
    project: Path, context: Context, logged: Logged
) -> None:
    answer = function("double", op_args=[21], op_kwargs={"times": 3}).execute(context)
    assert answer == {"number": 63, "project": str(project), "python": sys.executable}
    assert "doubling 21" in logged()


def test_a_function_runs_in_another_python(project: Path, context: Context) -> None:
    assert function("double", op_args=[1], python=OTHER_PYTHON).execute(context)["python"] == OTHER_PYTHON


def test_the_users_traceback_is_in_the_log_without_our_frames(project: Path, context: Context, logged: Logged) -> None:
    with pytest.raises(CargobikeTaskError, match=r"ValueError: the roof leaks in 2 places"):
        function("fail", op_args=[2]).execute(context)
    assert 'raise ValueError(f"the roof leaks in {times} places")' in logged()
    assert "serving_requests.py" not in logged()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("give_up", "SystemExit: 3"),
        ("die", "ended with exit code 9 before it answered"),
        ("return_object", r"what was returned\[1\]\['deep'\] is a builtins.object"),
        ("return_much", "300,002 characters; XComs lie in Airflow's database"),
        ("dubble", "has no 'dubble'.*Did you mean double"),
    ],
)
def test_what_goes_wrong_is_said(project: Path, context: Context, name: str, words: str) -> None:
    with pytest.raises((CargobikeTaskError, CargobikeMistake), match=words):
        function(name).execute(context)


def test_a_file_that_is_not_there_is_no_use_trying_again(project: Path, context: Context) -> None:
    operator = CargobikeFunctionOperator(task_id="one", function="task.py:double")
    with pytest.raises(CargobikeMistake, match=r"There is no file .*task.py.*tasks.py"):
        operator.execute(context)


def test_functions_are_named_and_never_pickled(project: Path, context: Context) -> None:
    import tasks_that_import

    operator = CargobikeFunctionOperator(task_id="one", function=tasks_that_import.triple, op_args=[2])
    assert operator.function == "tasks_that_import:triple"
    with pytest.raises(CargobikeMistake, match=r"another process cannot import"):
        CargobikeFunctionOperator(task_id="two", function=lambda: 1)


def test_the_process_does_not_get_airflows_secrets(
    project: Path, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "hush")
    assert function("secrets").execute(context) == []


def test_a_missing_connection_says_how_to_make_it(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_CARGOBIKE_DEFAULT", raising=False)
    with pytest.raises(CargobikeMistake, match=r"There is no connection 'elsewhere'.*AIRFLOW_CONN_ELSEWHERE"):
        function("double", op_args=[1], cargobike_conn_id="elsewhere").execute(context)


def test_a_project_needs_no_connection(tmp_path: Path, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_CARGOBIKE_DEFAULT", raising=False)
    folder = tmp_path / "new"
    answer = function("double", op_args=[1], project=str(folder), create_project=True).execute(context)
    assert answer["project"] == str(folder)


def test_a_project_that_is_not_there_is_not_made_by_mistake(
    project: Path, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, project.with_name("projet"))
    with pytest.raises(CargobikeMistake, match=r"There is no project in .*projet.*Beside it there is project"):
        function("double", op_args=[1]).execute(context)
    assert not project.with_name("projet").exists()


def test_a_python_that_is_not_there_is_said(project: Path, context: Context) -> None:
    with pytest.raises(CargobikeMistake, match=r"/no/python cannot be started.*No such file"):
        function("double", op_args=[1], python="/no/python").execute(context)


def test_an_experiment_is_handed_on_by_reference_and_tagged(project: Path, context: Context) -> None:
    operator = CargobikeExperimentOperator(
        task_id="search",
        train="tasks.py:train",
        space={"rate": [0.1, 0.3]},
        metric="accuracy",
        options={"workers": 1},
    )
    answer = operator.execute(context)
    assert (answer["kind"], answer["state"], answer["trials"]) == ("experiment", "completed", 2)
    assert answer["best"]["params"] == {"rate": 0.3}
    event = context["events"]["cargobike://cargobike_default/experiment/train"]
    assert event.extra["cargobike"]["id"] == answer["id"]
    assert event.extra["dag_id"] == "retrain"
    from cargobike import experiment
    from cargobike import project as projects

    projects.use(project)
    assert "airflow-dag=retrain" in experiment.load(answer["id"]).tags


def test_a_search_space_is_plain_data(project: Path, context: Context) -> None:
    space = {"rate": ["DOUBLE", [0.0, 1.0]]}
    operator = CargobikeExperimentOperator(
        task_id="search", train="tasks.py:train", space=space, num_trials="2", metric="accuracy", options={"workers": 1}
    )
    assert operator.execute(context)["trials"] == 2


def test_a_failed_run_shows_the_traceback_of_its_trial(project: Path, context: Context, logged: Logged) -> None:
    operator = CargobikeExperimentOperator(
        task_id="search", train="tasks.py:train_badly", parameters={"rate": 3.0}, options={"workers": 1}
    )
    with pytest.raises(CargobikeTaskError, match=r"diverged at 3.0"):
        operator.execute(context)
    assert 'raise ArithmeticError(f"diverged at {rate}")' in logged()


def test_a_model_is_registered_promoted_deployed_and_rolled(full_project: Path, context: Context) -> None:
    first = CargobikeRegisterModelOperator(
        task_id="register",
        model_name="price",
        model="predictors.py:cheap",
        metrics={"error": 2.0},
        example=[1.0],
        promote_to="champion",
    ).execute(context)
    assert (first["id"], first["alias"]) == ("price:1", "champion")
    deploy = CargobikeDeployOperator(task_id="deploy", deployment="prices", model="price@champion")
    try:
        served = deploy.execute(context)
        assert (served["state"], served["model"]) == ("serving", "price:1")
        assert deploy.execute(context)["url"] == served["url"]  # a second try changes nothing
        second = CargobikeRegisterModelOperator(
            task_id="register", model_name="price", model="predictors.py:dear", metrics={"error": 1.0}
        ).execute(context)
        roll = CargobikeRollOperator(task_id="roll", deployment="prices", model=second)
        assert roll.execute(context)["model"] == "price:2"
        assert context["events"]["cargobike://cargobike_default/deployment/prices"].extra["cargobike"]["version"] == 2
        watch = {"requests": 0, "watch_s": 0.1}
        canary = CargobikeRollOperator(task_id="roll", deployment="prices", model="price:1", canary=0.5, watch=watch)
        assert canary.execute(context)["model"] == "price:1"
        with pytest.raises(CargobikeTaskError, match=r"serves .* already"):
            CargobikeDeployOperator(task_id="again", deployment="prices", model="price:2", if_serving="fail").execute(
                context
            )
    finally:
        CargobikeFunctionOperator(task_id="stop", function="predictors.py:stop", op_args=["prices"]).execute(context)
    with pytest.raises(CargobikeTaskError, match=r"prices is stopped, so there is nothing to roll"):
        roll.execute(context)


def test_a_gate_that_does_not_let_pass_fails_the_task(full_project: Path, context: Context) -> None:
    operator = CargobikeRegisterModelOperator(
        task_id="register",
        model_name="price",
        model="predictors.py:cheap",
        metrics={"error": 2.0},
        promote_to="champion",
        when="error < 1",
    )
    with pytest.raises(CargobikeTaskError, match=r"price:1 does not pass"):
        operator.execute(context)


def test_an_alias_that_points_nowhere_cannot_be_deployed(full_project: Path, context: Context) -> None:
    function("register", python=OTHER_PYTHON).execute(context)
    operator = CargobikeDeployOperator(task_id="deploy", deployment="prices", model="price@champion")
    with pytest.raises(CargobikeMistake, match=r"champion"):
        operator.execute(context)


def test_a_notebook_runs_with_parameters_and_is_kept_even_if_a_cell_fails(
    full_project: Path, context: Context, tmp_path: Path
) -> None:
    import nbformat_free

    source = nbformat_free.write_notebook(
        tmp_path / "report.ipynb", "answer = 1", "print(answer * 2)\nassert answer < 50"
    )
    good = CargobikeNotebookOperator(task_id="one", input_nb=str(source), parameters={"answer": 21}).execute(context)
    assert "42" in nbformat_free.printed(Path(good["id"]))
    assert full_project in Path(good["id"]).parents
    target = tmp_path / "failed.ipynb"
    bad = CargobikeNotebookOperator(
        task_id="one", input_nb=str(source), output_nb=str(target), parameters={"answer": 99}
    )
    with pytest.raises(CargobikeTaskError, match=r"A cell of report.ipynb failed: AssertionError"):
        bad.execute(context)
    assert "198" in nbformat_free.printed(target)


def test_templates_are_filled_in() -> None:
    for operator in (CargobikeDeployOperator, CargobikeExperimentOperator, CargobikeRegisterModelOperator):
        assert {"cargobike_conn_id", "project", "python"} < set(operator.template_fields)
    register = CargobikeRegisterModelOperator(task_id="one", model_name="m_{{ ds_nodash }}", trial="last")
    assert register.outlets == []  # its name is not known when the DAG is parsed
    register.render_template_fields({"ds_nodash": "20260101"})
    assert register.model_name == "m_20260101"
