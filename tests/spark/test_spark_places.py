"""What Spark has and gives: devices, room, executors on demand, gangs; and what driver and executors must share."""

from __future__ import annotations

import importlib
import importlib.metadata
import itertools
import os
import sys
import threading
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import SparkContext

from cargobike import experiment, trial
from cargobike.core.errors import ExperimentFailedError, InvalidInputError
from cargobike.core.facts import Fact, Reported, unpack_number
from cargobike.core.records import Resources
from cargobike.core.version import __version__
from cargobike.engines.spark import engine as spark
from cargobike.engines.spark import task as spark_task
from cargobike.engines.spark.engine import SparkEngine
from cargobike.engines.spark.exclusion import Exclusion
from cargobike.experiments.asking import shipping
from cargobike.experiments.trial import context
from cargobike.testing.reception import wait_until
from support.scripts import run_script

if TYPE_CHECKING:
    from support.spark_applications import SparkApplications

pytestmark = pytest.mark.timeout(300)


def see_devices(i: int) -> float:
    return 0.0


class Reports:
    def __init__(self) -> None:
        self.found: list[dict[str, float]] = []

    def on_facts(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            if isinstance(fact, Reported):
                self.found.append({name: unpack_number(value) for name, value in fact.metrics.items()})


def test_each_worker_sees_its_own_devices_only(spark_application: SparkContext, tmp_path: Path) -> None:
    reports = Reports()
    places = str(tmp_path)

    def meet(i: int) -> float:
        """Report where this runs, once trials run at all four places: two of them could run all trials otherwise."""
        node = float(os.environ["SPARK_LOCAL_IP"].rpartition(".")[2])
        begun, visible = time.monotonic(), os.environ["CUDA_VISIBLE_DEVICES"]
        Path(places, f"place-{node}-{visible}").touch()
        while len([name for name in os.listdir(places) if name.startswith("place-")]) < 4:
            assert time.monotonic() < begun + 120.0, f"trials run only at {os.listdir(places)}"
            time.sleep(0.02)
        device = float({"left": 1, "right": 2}[visible])
        trial.report(step=0, node=node, device=device, begun=begun, ended=time.monotonic())
        return 0.0

    experiment.launch(
        meet,
        {"i": list(range(12))},
        engine=SparkEngine(spark_application),
        resources=Resources(gpus=1),
        callbacks=[reports],
        quiet=True,
    )
    used: dict[tuple[float, float], list[tuple[float, float]]] = {}
    for report in reports.found:
        used.setdefault((report["node"], report["device"]), []).append((report["begun"], report["ended"]))
    assert set(used) == {(2.0, 1.0), (2.0, 2.0), (3.0, 1.0), (3.0, 2.0)}
    for times in used.values():
        times.sort()
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(times))


def test_who_asks_for_no_device_sees_none(spark_application: SparkContext) -> None:
    def look() -> float:
        return float(len(os.environ["CUDA_VISIBLE_DEVICES"]))

    run = experiment.launch(
        look, params={}, engine=SparkEngine(spark_application), resources=Resources(gpus=0), quiet=True
    )
    assert run.trials[0].value == 0.0


def test_more_than_the_cluster_can_give_is_refused(spark_application: SparkContext) -> None:
    engine = SparkEngine(spark_application)
    with pytest.raises(
        InvalidInputError, match=r"5 workers with 1 core each .* room for 4: .* 2 executors with 4 cores"
    ):
        experiment.launch(see_devices, {"i": [1, 2, 3, 4, 5]}, engine=engine, workers=5, resources=Resources(gpus=0))
    with pytest.raises(InvalidInputError, match="3 workers with 1 core and 2 GPUs each"):
        experiment.launch(see_devices, {"i": [1, 2, 3]}, engine=engine, workers=3, resources=Resources(gpus=2))
    with pytest.raises(InvalidInputError, match="session that is made here"):
        SparkEngine(spark_application, master="local[2]")
    with pytest.raises(InvalidInputError, match="give a SparkSession"):
        SparkEngine("local[2]")


def test_a_wait_for_executors_has_an_end(spark_application: SparkContext, tmp_path: Path) -> None:
    free = tmp_path / "free"
    path = str(free)

    def occupy(_: int) -> None:
        while not os.path.exists(path):
            time.sleep(0.05)

    busy = threading.Thread(target=lambda: spark_application.parallelize(range(4), 4).foreach(occupy))
    busy.start()
    wait_until(
        lambda: bool(spark_application.statusTracker().getActiveStageIds()), lambda: time.sleep(0.05), "all are busy"
    )
    try:
        with pytest.raises(ExperimentFailedError, match=r"waited 1 s in vain for a place. spark://.* 2 executors"):
            experiment.launch(
                see_devices, {"i": [1]}, engine=SparkEngine(spark_application, wait_s=1), workers=1, quiet=True
            )
    finally:
        free.touch()
        busy.join()


def test_ranks_of_a_gang_meet_across_nodes(spark_application: SparkContext) -> None:
    def add_up(share: float) -> float:
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        total = torch.tensor([share * (trial.rank + 1)])
        dist.all_reduce(total)
        return float(total)

    run = experiment.allreduce(
        add_up,
        params={"share": 2.0},
        workers=2,
        engine=SparkEngine(spark_application),
        resources=Resources(cpus=2, gpus=0),
        quiet=True,
    )
    assert run.values == [6.0, 6.0]


def test_parameter_servers_get_no_device(
    spark_application: SparkContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "server_of_a_test.py").write_text(
        "import os, time\n"
        "from cargobike.experiments.trial import context\n"
        "def serve():\n"
        "    here = context.current()\n"
        "    here.gang.publish('devices', os.environ['CUDA_VISIBLE_DEVICES'].encode())\n"
        "    while not here.should_stop:\n"
        "        time.sleep(0.02)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(shipping, "PARAMETER_SERVER", "server_of_a_test:serve")
    spark_application.addPyFile(str(tmp_path / "server_of_a_test.py"))

    def train() -> float:
        served = context.current().gang.gather("devices", of="servers", timeout_s=60)
        assert served == [b"", b""], served
        return float(set(os.environ["CUDA_VISIBLE_DEVICES"].split(",")) <= {"left", "right"})

    run = experiment.parameter_server(
        train, workers=2, servers=2, engine=SparkEngine(spark_application), resources=Resources(gpus=1), quiet=True
    )
    assert run.values == [1.0, 1.0]


ORDER: dict[str, Any] = {
    "module": "cargobike.experiments.trial.program",
    "python": "{}.{}".format(*sys.version_info[:2]),
    "cargobike": __version__,
    "libraries": {"msgspec": importlib.metadata.version("msgspec")},
}


def test_differences_between_driver_and_executor_are_told() -> None:
    assert spark_task._obstacles(ORDER) == []
    assert spark_task._differences(ORDER) == []
    assert "Python" in spark_task._obstacles({**ORDER, "python": "3.8"})[0]
    assert "0.0.1 in the driver" in spark_task._obstacles({**ORDER, "cargobike": "0.0.1"})[0]
    assert spark_task._obstacles({**ORDER, "libraries": {"no-such-library": "1"}}) == [
        "no-such-library 1 is not installed there"
    ]
    assert "msgspec" in spark_task._differences({**ORDER, "libraries": {"msgspec": "0.0.1"}})[0]


def test_an_executor_with_another_version_runs_no_trial(
    spark_application: SparkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "__version__", "0.0.1")
    with pytest.raises(
        ExperimentFailedError, match=r"cannot run on .*: Cargobike .* and 0.0.1 in the driver"
    ) as caught:
        experiment.launch(see_devices, {"i": [1]}, engine=SparkEngine(spark_application), workers=1, quiet=True)
    assert not [t for t in caught.value.result.trials if t.attempts]


def test_a_python_without_cargobike_is_named(spark_applications: SparkApplications, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare")
    python = str(tmp_path / "bare" / "bin" / "python")
    context = spark_applications.context(spark__pyspark__python=python)
    with pytest.raises(ExperimentFailedError, match=rf"imported there by {python} .*; install it, or name another"):
        experiment.launch(see_devices, {"i": [1]}, engine=SparkEngine(context), workers=1, quiet=True)


OWN_SESSION = """
    import json
    from pyspark.sql import SparkSession
    from cargobike import experiment

    def square(x):
        return float(x * x)

    if __name__ == "__main__":
        session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        result = experiment.launch(square, {"x": [3]}, engine="spark", workers=1, quiet=True)
        print(json.dumps([result.trials[0].value, session.sparkContext.pythonExec]))
"""


def test_a_session_on_this_machine_whose_python_lacks_cargobike_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "bare")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bare' / 'bin'}:{os.environ['PATH']}")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert run_script(tmp_path, OWN_SESSION) == [9.0, "python3"], "our tasks ran, and the session is as it was"


def test_a_local_module_travels_by_value(
    spark_application: SparkContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "code" / "recipes_of_mine"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "numbers_of_mine.py").write_text("def double(x):\n    return 2 * x\n")
    (package / "training.py").write_text(
        "def train(x):\n    from recipes_of_mine.numbers_of_mine import double\n    return float(double(x))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    train = importlib.import_module("recipes_of_mine.training").train

    class Hide:
        def on_facts(self, facts: Sequence[Fact]) -> None:
            if (tmp_path / "code").exists():
                (tmp_path / "code").rename(tmp_path / "hidden")

    # The sources are hidden before the first worker looks for them: as if it were on another machine.
    monkeypatch.setattr(spark.SparkEngine, "start_worker", _after(Hide().on_facts, spark.SparkEngine.start_worker))
    result = experiment.launch(train, {"x": [1, 2]}, engine=SparkEngine(spark_application), workers=1, quiet=True)
    assert [t.value for t in result.trials] == [2.0, 4.0]


def _after(first: Any, then: Any) -> Any:
    def both(*given: Any) -> Any:
        first([])
        return then(*given)

    return both


def test_an_executor_is_excluded_only_if_things_go_well_elsewhere() -> None:
    exclusion = Exclusion()
    assert not any(exclusion.note("a", died=True) for _ in range(10))
    exclusion.note("b", died=False)
    assert exclusion.note("a", died=True)
    assert exclusion.is_excluded("a")
    assert not any(exclusion.note("b", died=True) for _ in range(10)), "the last one stays"
