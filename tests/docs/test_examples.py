"""Every example is a program that runs, with small budgets here."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from support import snippets

EXAMPLES = snippets.ROOT / "examples"


def run_example(folder: Path, name: str, *arguments: str) -> str:
    """Run an example in an empty folder and return what it printed."""
    command = ["python", str(EXAMPLES / name), *arguments]
    return snippets.run(command, folder, snippets.environment(folder))


def number_after(words: str, output: str) -> float:
    """Return the number that follows the words in a program's output."""
    match = re.search(rf"{words} (-?[0-9.e-]+)", output)
    assert match, output
    return float(match[1])


def test_quickstart_comes_near_the_best_point(tmp_path: Path) -> None:
    output = run_example(tmp_path, "quickstart.py")
    assert "50 completed" in output
    assert 0.8 < number_after("best", output) <= 1
    assert "'shape': 'round'" in output


def test_an_optimizer_of_ones_own_is_used(tmp_path: Path) -> None:
    output = run_example(tmp_path, "own_optimizer.py")
    assert "climbed for 60 trials" in output
    assert 0 <= number_after("best", output) < 5


def test_a_football_league_is_kept_as_features(tmp_path: Path) -> None:
    output = run_example(tmp_path, "football_league.py")
    assert "400 of 400 rows found a row in teams; 400 of these were written after" in output
    assert "trained on team_value:1, 320 rows" in output
    assert number_after("error", output) < 200
    assert "team 3 now: {'team_budget': " in output


def test_the_best_trial_becomes_champion_and_then_has_to_be_beaten(tmp_path: Path) -> None:
    output = run_example(tmp_path, "models.py")
    assert "registered line:1, error" in output
    assert "champion is version 1. champion points at no version yet" in output
    assert "line:2" in run_example(tmp_path, "models.py")


def test_a_pipeline_that_failed_is_resumed_and_does_nothing_twice(tmp_path: Path) -> None:
    output = run_example(tmp_path, "pipeline_steps.py")
    assert "step 5 (check) failed: RuntimeError: not approved yet\ncompleted line:1" in output
    assert "1 prepare completed attempt 1" in output
    assert "5 check completed attempt 2" in output


def test_versions_are_released_and_a_broken_one_is_taken_back(tmp_path: Path) -> None:
    output = run_example(tmp_path, "serving.py")
    assert "version 2 says 360.0" in output
    assert "version 1 again says 300.0" in output
    assert "version 3 was taken back: 100.0% of its requests failed" in output


def test_a_function_is_asked_over_http(tmp_path: Path) -> None:
    output = run_example(tmp_path, "serving_http.py")
    assert "one row    6" in output
    assert "KServe v1  {'predictions': [1]}" in output
    assert """pieces     ['"piece"', '"by"', '"piece"']""" in output
    assert "a mistake  The body is not JSON" in output


def test_a_served_model_is_watched_and_a_better_one_takes_its_place(tmp_path: Path) -> None:
    output = run_example(tmp_path, "watching.py")
    assert "alarm-1: age, output.output moved" in output
    assert "error 0.000 instead of" in output
    assert "on 800 rows" in output
    assert "buys:2 serves" in output


def test_a_table_is_published_and_got_by_another_project(tmp_path: Path) -> None:
    output = run_example(tmp_path, "sharing.py")
    assert "published points, version 1, 10000 rows" in output
    assert "got 10000 rows, found again: points" in output


def test_drift_is_found_with_its_columns_and_its_beginning(tmp_path: Path) -> None:
    output = run_example(tmp_path, "drift.py")
    assert "alarm since window 7" in output
    assert re.search(r"window 12: ALARM.*temperature × pressure", output)
    assert 600 <= number_after("errors changed since request", output) <= 700


def test_digits_trains_when_called_directly(tmp_path: Path) -> None:
    output = run_example(tmp_path, "digits.py", "--direct", "--epochs", "5")
    assert number_after("accuracy", output) > 0.8


def test_digits_is_searched(tmp_path: Path) -> None:
    output = run_example(tmp_path, "digits.py", "--trials", "4", "--workers", "2", "--epochs", "2")
    assert number_after("best", output) > 0.2
    assert re.search(r"cargobike show [0-9]{8}-[0-9]{6}-\w+", output)
    assert len(list(tmp_path.glob("experiments/*/trials/*/checkpoints/*"))) >= 4


def test_ranks_train_with_torch_and_survive_a_death(tmp_path: Path) -> None:
    output = run_example(tmp_path, "distributed_torch.py", "--steps", "30", "--die-at", "10")
    assert number_after("loss", output) < 5
    assert re.search(r"attempt 1: rank 1 on \S+ \(last step 10\): .* SIGKILL", output)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("strategy", ["mirrored", "ps"])
def test_ranks_train_with_tensorflow(tmp_path: Path, strategy: str) -> None:
    pytest.importorskip("tensorflow")
    output = run_example(tmp_path, "distributed_tensorflow.py", "--strategy", strategy)
    assert number_after("weights", output) == pytest.approx(4, abs=0.1)


@pytest.mark.timeout(300)
def test_ranks_train_with_jax(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    output = run_example(tmp_path, "distributed_jax.py")
    assert number_after("weights", output) == pytest.approx(4, abs=0.1)
    assert "devices 2" in output


@pytest.mark.timeout(300)
def test_ranks_train_with_keras(tmp_path: Path) -> None:
    pytest.importorskip("keras")
    pytest.importorskip("jax")
    output = run_example(tmp_path, "distributed_keras.py")
    assert number_after("loss", output) < 0.1
    assert number_after("weights", output) == number_after("and", output)


def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in snippets.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    client = NotebookClient(notebook, timeout=snippets.TIMEOUT_S, resources={"metadata": {"path": tmp_path}})
    client.execute()
    assert notebook.cells[-1].outputs[-1]["data"]["text/plain"] == "True"


def test_every_example_is_listed_and_none_is_forgotten_here() -> None:
    files = {path.name for path in EXAMPLES.iterdir() if path.suffix in {".py", ".ipynb"}}
    listed = set(re.findall(r"\[([\w.]+)\]\(\1\)", (EXAMPLES / "README.md").read_text()))
    assert files == listed
    tested = Path(__file__).read_text()
    assert [name for name in sorted(files) if f'"{name}"' not in tested] == []


@pytest.mark.parametrize("strategy", ["ddp", "diloco"])
def test_a_gang_trains_digits(tmp_path: Path, strategy: str) -> None:
    output = run_example(tmp_path, "gang.py", "--strategy", strategy)
    assert number_after("accuracy", output) > 0.85


def test_workers_train_digits_through_servers(tmp_path: Path) -> None:
    output = run_example(tmp_path, "parameter_server.py")
    assert number_after("accuracy", output) > 0.75


def test_a_pipeline_goes_from_data_to_a_model_that_is_served_and_watched(tmp_path: Path) -> None:
    output = run_example(tmp_path, "retrain.py")
    assert "completed, 12 steps" in output
    assert number_after("has an error of", output) < 6.0
    assert 180 < number_after("a team with a budget of 40:", output) < 260


def test_a_model_split_over_two_processes_learns(tmp_path: Path) -> None:
    output = run_example(tmp_path, "pipeline.py")
    assert number_after("loss", output) < 0.6


def test_keras_fits_digits_with_a_gang_on_tensorflow(tmp_path: Path) -> None:
    output = run_example(tmp_path, "keras_gang.py")
    assert number_after("accuracy", output) > 0.85


def test_a_function_is_an_estimator_of_scikit_learn(tmp_path: Path) -> None:
    output = run_example(tmp_path, "estimator_sklearn.py")
    assert re.search(r"R² of five folds: \[0\.[3-6]", output)
    assert re.search(r"best: \{'estimator__alpha': [0-9.]+\}", output)


def test_a_function_is_an_estimator_of_spark(tmp_path: Path) -> None:
    output = run_example(tmp_path, "estimator_spark.py")
    assert number_after("worst error:", output) < 0.01
