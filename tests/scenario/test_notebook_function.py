"""A train function that lives in a notebook's cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from support.scripts import environment


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Execute one notebook and return what each cell printed."""
    folder = tmp_path_factory.mktemp("notebook")
    cells = [
        "from cargobike import experiment, trial\nfactor = 2",
        (
            "def helper(x):\n    return x * factor\n\n"
            "def train(x):\n    trial.report(score=x)\n    print('seen', x)\n    return helper(x)"
        ),
        "result = experiment.launch(train, {'x': [1, 2, 3]}, quiet=True)\nprint(result.best.metric, result.logs(2))",
        "factor = 10\nprint(experiment.launch(train, {'x': [1, 2, 3]}, quiet=True).best.metric)",
        "def broken(x):\n    wanted = {}\n    return wanted['score']  # the line to see\n",
        (
            "from cargobike.core.errors import TrialFailedError\n"
            "try:\n    experiment.launch(broken, params={'x': 1}, quiet=True)\n"
            "except TrialFailedError as error:\n    print(error)"
        ),
        "shown = experiment.launch(train, {'x': [4]})\nprint(shown.value)",
        (
            "async def later():\n    return experiment.launch(train, params={'x': 1}, quiet=True).value\n"
            "print(await later())"
        ),
        "class Model:\n    bias = 1\n    def fit(self, x):\n        return x + self.bias\n",
        "print(experiment.launch(Model().fit, {'x': [1]}, quiet=True).value, experiment.launch("
        "lambda x: x / 4, {'x': [1]}, quiet=True).value)",
    ]
    notebook = nbformat.from_dict(  # type: ignore[no-untyped-call]
        {
            "cells": [
                {
                    "cell_type": "code",
                    "id": f"cell-{index}",
                    "source": text,
                    "metadata": {},
                    "outputs": [],
                    "execution_count": None,
                }
                for index, text in enumerate(cells)
            ],
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    with client.setup_kernel(env=environment()):
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)
    return [_printed(cell.outputs) for cell in notebook.cells]


def _printed(outputs: list[dict[str, Any]]) -> str:
    return "".join(output.get("text", "") for output in outputs if output["output_type"] == "stream")


def test_it_is_searched_with_what_the_cells_around_it_define(outputs: list[str]) -> None:
    assert outputs[2].split() == ["6.0", "seen", "3"]


def test_a_cell_that_is_run_again_counts(outputs: list[str]) -> None:
    assert outputs[3].strip() == "30.0"


def test_a_failure_shows_the_source_of_the_cell(outputs: list[str]) -> None:
    assert "return wanted['score']  # the line to see" in outputs[5]
    assert "KeyError: 'score'" in outputs[5]
    assert "cargobike/experiments/trial" not in outputs[5]


def test_progress_is_shown_and_the_result_returned(outputs: list[str]) -> None:
    assert "40.0" in outputs[6]


def test_it_works_in_an_event_loop_that_is_running(outputs: list[str]) -> None:
    assert outputs[7].strip() == "10.0"


def test_methods_and_lambdas_of_cells_work(outputs: list[str]) -> None:
    assert outputs[9].split() == ["2.0", "0.25"]


def test_nothing_is_written_but_into_the_project(outputs: list[str], tmp_path: Path) -> None:
    assert list(tmp_path.iterdir()) == []
