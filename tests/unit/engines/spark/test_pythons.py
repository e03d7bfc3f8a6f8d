"""Which Python runs our tasks."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from cargobike.engines.spark.pythons import is_on_this_machine, python_for_tasks


@pytest.mark.parametrize(
    ("master", "here"),
    [
        ("local", True),
        ("local[*]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("spark://[::1]:7077", True),
        ("spark://127.0.0.1:7077,127.0.0.2:7077", True),
        ("spark://127.0.0.1:7077,head:7077", False),
        ("spark://head:7077", False),
        ("yarn", False),
        ("k8s://https://127.0.0.1:6443", False),
    ],
)
def test_masters_of_this_machine(master: str, here: bool) -> None:
    assert is_on_this_machine(master) is here


def context(master: str, **conf: str) -> Any:
    return SimpleNamespace(master=master, pythonExec="python3", getConf=lambda: conf)


def lent(context: Any) -> str:
    with python_for_tasks(context):
        python = context.pythonExec
    assert context.pythonExec == "python3"
    return str(python)


def test_our_own_python_is_lent_where_spark_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert lent(context("local[2]")) == sys.executable
    assert lent(context("spark://head:7077")) == "python3"


def test_a_python_that_was_named_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert lent(context("local[2]", **{"spark.pyspark.python": "/opt/python"})) == "python3"
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    assert lent(context("local[2]")) == "python3"
