"""Slide 4: `allreduce.launch(spark, 'hdfs:///…ipynb')`: a notebook as a job of several processes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cargobike import experiment
from cargobike.compat.hops import allreduce, hdfs
from cargobike.compat.hops import experiment as hops_experiment
from cargobike.core import settings
from cargobike.core.errors import TrialFailedError

if TYPE_CHECKING:
    from pyspark import SparkContext

CELLS = [
    "%matplotlib inline\nimport os, sys\nrank, size = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])",
    "print('rank', rank, 'of', size)\nassert __name__ == '__main__'",
]


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(settings.COMPAT_WORKERS, "2")
    return write("mnist", CELLS)


def write(name: str, cells: list[str]) -> str:
    document = {"cells": [{"cell_type": "code", "source": source} for source in cells]}
    hdfs.dump(json.dumps(document), f"Jupyter/{name}.ipynb")
    return f"hdfs:///Projects/{hdfs.project_name()}/Jupyter/{name}.ipynb"


def test_all_processes_run_it_and_their_words_are_shown(notebook: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert allreduce.launch(None, notebook) == 0
    shown = capfd.readouterr().out.splitlines()
    assert sorted(line for line in shown if "of 2" in line) == ["[0] rank 0 of 2", "[1] rank 1 of 2"]
    assert experiment.load("last").name == "mnist.py"


def test_an_exit_status_is_returned_and_an_error_is_raised(notebook: str) -> None:
    leaving = write("leaving", [*CELLS, "sys.exit(3 if rank == 1 else 0)"])
    assert hops_experiment.horovod(leaving) == 3
    failing = write("failing", [*CELLS, "if rank == 1: raise ValueError('too hot')"])
    with pytest.raises(TrialFailedError, match="too hot") as caught:
        allreduce.launch(None, failing)
    assert caught.value.rank == 1


def test_on_spark(notebook: str, spark_application: SparkContext, capfd: pytest.CaptureFixture[str]) -> None:
    assert allreduce.launch(spark_application, notebook) == 0
    assert "[1] rank 1 of 2" in capfd.readouterr().out
    assert experiment.load("last").asked.placement.engine == "spark"
