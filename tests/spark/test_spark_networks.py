"""A cluster whose machines have networks of their own: everything meets by addresses, nothing by loopback or disk."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cargobike import experiment, trial
from cargobike.engines.spark.engine import SparkEngine
from cargobike.testing.networks import Networks, networks
from cargobike.testing.spark_cluster import SparkCluster

if TYPE_CHECKING:
    from support.spark_applications import SparkApplications

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def machines() -> Iterator[Networks]:
    with networks(2) as found:
        if found is None:
            pytest.skip("this machine allows no network namespaces")
        yield found


@pytest.fixture(scope="module")
def cluster(machines: Networks) -> Iterator[SparkCluster]:
    with SparkCluster(networks=machines, cores=2) as started:
        yield started


@pytest.fixture
def engine(cluster: SparkCluster, machines: Networks, spark_applications: SparkApplications) -> SparkEngine:
    spark_applications.close()  # a process has one context
    return SparkEngine(
        master=cluster.master,
        conf=cluster.settings(spark__executor__cores="2"),
        address=machines.head,
        share_disk=False,
    )


def where() -> float:
    """Return the last part of the address that the others know this worker by."""
    return float(os.environ["SPARK_LOCAL_IP"].rpartition(".")[2])


def test_a_search_goes_over_the_network(engine: SparkEngine, tmp_path: Path) -> None:
    def train(x: int) -> float:
        (tmp_path / f"at-{where()}").touch()
        give_up_at = time.monotonic() + 200
        while len(list(tmp_path.glob("at-*"))) < 2:  # no machine does it all because the other came late
            assert time.monotonic() < give_up_at, "no worker came on the other machine"
            time.sleep(0.05)
        trial.report(step=0, place=where(), score=0.0)
        trial.checkpoint.save({"x": x})
        Path("note.txt").write_text(str(x))
        trial.artifact("note.txt")
        return float(x)

    result = experiment.launch(train, {"x": [0, 1, 2, 3, 4, 5, 6, 7]}, engine=engine, workers=4, quiet=True)
    assert [ended.value for ended in result.trials] == [float(x) for x in range(8)]
    assert {result.curves(ended)["place"].values[0] for ended in result.trials} == {2.0, 3.0}
    assert [result.artifacts(ended)[0].read_text() for ended in result.trials] == [str(x) for x in range(8)]


def test_a_gang_meets_over_the_network(engine: SparkEngine) -> None:
    def add_up() -> dict[str, float]:
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        total = torch.tensor([trial.rank + 1.0])
        dist.all_reduce(total)
        return {"total": float(total), "place": where()}

    run = experiment.allreduce(add_up, workers=4, engine=engine, quiet=True)
    assert [value["total"] for value in run.values] == [10.0] * 4
    assert sorted(value["place"] for value in run.values) == [2.0, 2.0, 3.0, 3.0]
    assert [value["place"] for value in run.values] in ([2.0, 2.0, 3.0, 3.0], [3.0, 3.0, 2.0, 2.0])


def test_a_short_cut_costs_nothing(engine: SparkEngine, machines: Networks) -> None:
    def train(x: int) -> float:
        for step in range(30):
            trial.report(score=float(step), step=step)
            time.sleep(0.1)
        return float(x)

    def unplug() -> None:
        machines.cut(machines.addresses[0])
        time.sleep(1.0)
        machines.join(machines.addresses[0])

    class Unplug:
        """Cuts one machine off for a second when the first report has come."""

        thread: threading.Thread | None = None

        def on_facts(self, facts: object) -> None:
            if self.thread is None and "Reported" in str(facts):
                self.thread = threading.Thread(target=unplug)
                self.thread.start()

    callback = Unplug()
    result = experiment.launch(
        train, {"x": [0, 1, 2, 3]}, engine=engine, workers=4, callbacks=[callback], optimizer="grid", quiet=True
    )
    assert callback.thread is not None
    callback.thread.join()
    assert [ended.value for ended in result.trials] == [0.0, 1.0, 2.0, 3.0]
    assert [ended.attempts for ended in result.trials] == [1, 1, 1, 1]
    assert [list(ended.curve.steps) for ended in result.trials] == [list(range(30))] * 4
