"""Searches on Spark, end to end."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark import SparkContext

from cargobike import experiment, project, trial
from cargobike.core.errors import InvalidInputError, MissingLibraryError
from cargobike.core.records import Resources
from cargobike.engines.spark.engine import SparkEngine
from cargobike.engines.spark.java import find_java, java_home, write_wrapper
from cargobike.testing.reception import wait_until
from cargobike.testing.spark_cluster import SparkCluster

if TYPE_CHECKING:
    from support.spark_applications import SparkApplications

pytestmark = pytest.mark.timeout(300)


def train(x: int) -> float:
    print(f"trying {x}")
    trial.report(closeness=-abs(x - 3), step=0)
    return -float((x - 3) ** 2)


def test_java_is_called_without_what_it_does_not_understand(tmp_path: Path) -> None:
    java = tmp_path / "real java"
    java.write_text('#!/bin/sh\nfor word do echo "<$word>"; done\n')
    java.chmod(0o755)
    home = write_wrapper(tmp_path / "home", java)
    said = subprocess.run(
        [f"{home}/bin/java", "-cp", "a b", "--add-modules=jdk.incubator.vector", "", "Main", "*"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.splitlines() == ["<-cp>", "<a b>", "<>", "<Main>", "<*>"]


def test_without_any_java_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingLibraryError, match="apt install default-jre-headless"), java_home({"PATH": "/nowhere"}):
        pass


def test_the_command_line_runs_on_spark(spark_cluster: SparkCluster, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("def train(x):\n    return 2 * x\n")
    command = [sys.executable, "-m", "cargobike.cli", "run", f"{tmp_path}/job.py:train", "--param", "x=21"]
    conf = tmp_path / "spark-defaults.conf"
    settings = spark_cluster.settings(spark__master=spark_cluster.master, spark__cores__max="1")
    conf.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    done = subprocess.run(
        [*command, "--engine", "spark", "--json"],
        env=dict(os.environ, SPARK_CONF_DIR=str(tmp_path), PYTHONPATH=os.pathsep.join(sys.path)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["best"]["value"] == 42.0


def test_a_search_on_a_cluster_leaves_the_session_as_it_was(
    spark_application: SparkContext,
) -> None:
    context = spark_application
    before = context.getConf().getAll(), context.getLocalProperty("spark.jobGroup.id"), context.getJobTags()
    engine = SparkEngine(context)
    assert engine.capacity(Resources(gpus=0)) == 4

    def where(i: int) -> float:
        trial.report(i=float(i))
        return float(os.getppid())

    result = experiment.launch(where, {"i": list(range(12))}, engine=engine, resources=Resources(gpus=0), quiet=True)
    assert len(result.trials) == 12
    assert all(t.state.value == "completed" for t in result.trials)
    assert (context.getConf().getAll(), context.getLocalProperty("spark.jobGroup.id"), context.getJobTags()) == before
    assert context.parallelize(range(10), 2).sum() == 45


def test_a_search_on_a_session_of_our_own_with_java_from_pypi(
    spark_applications: SparkApplications, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_applications.close()  # else its session would be used
    monkeypatch.setenv("JAVA_HOME", "/there/is/none")
    assert find_java(os.environ) is None
    result = experiment.launch(train, {"x": [1, 2, 3, 4]}, engine="spark", workers=2, quiet=True)
    assert result.best is not None
    assert result.best.params == {"x": 3}
    assert [t.state.value for t in result.trials] == ["completed"] * 4
    folder = Path(project.current().root) / "experiments" / result.id / "trials" / "0002"
    assert (folder / "stdout.log").read_text() == "trying 3\n"
    assert os.environ["JAVA_HOME"] == "/there/is/none"


def test_executors_come_and_go_with_the_work(spark_applications: SparkApplications) -> None:
    context = spark_applications.context(
        spark__dynamicAllocation__enabled="true",
        spark__dynamicAllocation__minExecutors="0",
        spark__dynamicAllocation__maxExecutors="2",
        spark__dynamicAllocation__executorIdleTimeout="1s",
        spark__dynamicAllocation__schedulerBacklogTimeout="1s",
    )
    engine = SparkEngine(context)
    assert engine.capacity(Resources(gpus=0)) == 4
    with pytest.raises(InvalidInputError, match="may give at most 2 executors with 2 cores"):
        engine.check_workers(5, Resources(gpus=0))
    result = experiment.launch(lambda i: i / 2, {"i": [1, 2, 3, 4, 5, 6]}, engine=engine, quiet=True)
    assert len(result.trials) == 6
    infos = context._jsc.sc().statusTracker().getExecutorInfos
    wait_until(lambda: len(infos()) == 1, lambda: time.sleep(0.1), "all executors but the driver have been given back")
