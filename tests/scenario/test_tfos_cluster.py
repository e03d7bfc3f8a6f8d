"""Functions written for TensorFlowOnSpark run as clusters of processes of this machine, without Spark."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cargobike import experiment
from cargobike.compat.tensorflowonspark import TFCluster, TFNode
from cargobike.core.errors import EngineError, InvalidInputError, PredictionError, TrialFailedError, WaitError

SPARK = TFCluster.InputMode.SPARK


def test_a_cluster_reads_for_itself_and_knows_its_roles(tmp_path: Path) -> None:
    def map_fun(args: Any, ctx: Any) -> None:
        if ctx.job_name == "ps":
            time.sleep(600)  # a server never returns
        told = {
            "role": [ctx.job_name, ctx.task_index, ctx.executor_id, ctx.worker_num, ctx.num_workers],
            "roles": sorted(ctx.cluster_spec),
            "config": json.loads(os.environ["TF_CONFIG"])["task"],
            "path": ctx.absolute_path("model"),
            "port": ctx.tmp_socket is None,
        }
        (Path(args["folder"]) / f"{ctx.executor_id}.json").write_text(json.dumps(told))

    cluster = TFCluster.run(None, map_fun, {"folder": str(tmp_path)}, 3, 1, master_node="chief")
    assert [node["job_name"] for node in cluster.cluster_info] == ["ps", "chief", "worker"]
    cluster.shutdown()
    cluster.shutdown()
    told = {path.name: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}
    assert sorted(told) == ["1.json", "2.json"]
    assert told["1.json"]["role"] == ["chief", 0, 1, 1, 2]
    assert told["2.json"]["role"] == ["worker", 0, 2, 2, 2]
    assert told["2.json"]["config"] == {"type": "worker", "index": 0}
    assert told["1.json"]["roles"] == ["chief", "ps", "worker"]
    assert told["1.json"]["path"] == f"file://{os.getcwd()}/model"
    assert told["1.json"]["port"]
    assert experiment.load(cluster.cluster_id).trials[0].state == "completed"
    with pytest.raises(InvalidInputError, match=r"started with InputMode\.TENSORFLOW"):
        cluster.train([[1]])


def test_it_is_fed_until_the_function_stops_and_answers_in_order(tmp_path: Path) -> None:
    def map_fun(args: Any, ctx: Any) -> None:
        feed, seen = TFNode.DataFeed(ctx.mgr), 0
        while not feed.should_stop():
            seen += len(feed.next_batch(10))
            if seen >= 500:
                feed.terminate()
        (Path(args) / str(ctx.task_index)).write_text(str(seen))

    def answer(args: Any, ctx: Any) -> None:
        feed = ctx.get_data_feed(train_mode=False)
        while not feed.should_stop():
            feed.batch_results([row * row for row in feed.next_batch(7)])

    with TFCluster.run(None, map_fun, str(tmp_path), 2, 0, input_mode=SPARK) as cluster:
        cluster.train([range(10), range(25)])  # 0 epochs: for as long as functions take rows
    assert [(tmp_path / name).read_text() for name in ("0", "1")] == ["500", "500"]
    with TFCluster.run(None, answer, None, 2, 0, input_mode=SPARK) as cluster:
        results = cluster.inference([range(100), [], range(100, 130)])
        assert isinstance(results, Iterator)
        assert list(results) == [row * row for row in range(130)]
        with pytest.raises(InvalidInputError, match="num_epochs=3 was given with an iterator"):
            cluster.train(iter([[1]]), num_epochs=3)
        with pytest.raises(InvalidInputError, match="qname='inptu' is unknown"):
            cluster.train([[1]], qname="inptu")
        with pytest.raises(InvalidInputError, match="A partition must hold rows, and int does not"):
            cluster.train([1, 2])
        with pytest.raises(InvalidInputError, match="The data has no rows"):
            cluster.train([[], []])


def test_an_endless_stream_of_partitions_ends_with_the_function() -> None:
    def map_fun(args: Any, ctx: Any) -> None:
        feed = ctx.get_data_feed()
        for _ in range(5):
            feed.next_batch(100)

    with TFCluster.run(None, map_fun, None, 1, 0, input_mode=SPARK) as cluster:
        cluster.train(range(50) for _ in itertools.count())


def test_errors_of_functions_reach_those_that_feed_and_those_that_wait() -> None:
    def fail(args: Any, ctx: Any) -> None:
        ctx.get_data_feed().next_batch(3)
        raise RuntimeError("FAKE exception during feeding")

    def give_too_few(args: Any, ctx: Any) -> None:
        feed = ctx.get_data_feed(False)
        while not feed.should_stop():
            feed.batch_results(feed.next_batch(3)[:-1])

    with (
        pytest.raises(TrialFailedError, match="FAKE exception during feeding"),
        TFCluster.run(None, fail, None, 2, 0, input_mode=SPARK) as cluster,
    ):
        cluster.train([range(1000)], num_epochs=1)
    cluster = TFCluster.run(None, give_too_few, None, 1, 0, input_mode=SPARK)
    with pytest.raises(PredictionError, match="2 results for 3 rows: there must be one for each row"):
        list(cluster.inference([range(10)]))
    with pytest.raises(TrialFailedError, match="2 results for 3 rows"):
        cluster.shutdown()


def test_a_node_that_is_killed_is_named() -> None:
    def map_fun(args: Any, ctx: Any) -> None:
        feed = ctx.get_data_feed()
        while not feed.should_stop():
            feed.next_batch(10)

    def rows() -> Iterator[range]:
        yield range(100)
        os.kill(victim["pid"], signal.SIGKILL)
        yield from itertools.repeat(range(100))

    cluster = TFCluster.run(None, map_fun, None, 2, 0, input_mode=SPARK)
    victim = cluster.cluster_info[1]
    with pytest.raises(EngineError, match=r"has lost a node(.|\n)*worker:1 \(executor 1\) on .*, process "):
        cluster.train(rows())
    with pytest.raises(EngineError, match="has lost a node"):
        cluster.shutdown()


def test_functions_that_do_not_return_in_time_are_named_and_ended() -> None:
    def map_fun(args: Any, ctx: Any) -> None:
        time.sleep(600 if ctx.task_index else 0)

    cluster = TFCluster.run(None, map_fun, None, 2, 0)
    with pytest.raises(WaitError, match=r"waited 0\.5 s for the functions of worker:1, and ended them"):
        cluster.shutdown(timeout=0.5)


def test_what_cannot_be_a_cluster_is_refused_before_anything_starts() -> None:
    def map_fun(args: Any, ctx: Any) -> None: ...

    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: TFCluster.run(None, "f", None, 1, 0), "give a function: def map_fun"),  # type: ignore[arg-type]
        (lambda: TFCluster.run(None, map_fun, None, 2, 2), "needs at least 3 nodes"),
        (lambda: TFCluster.run(None, map_fun, None, 1, 0, input_mode=7), "input_mode=7"),
        (lambda: TFCluster.run(None, map_fun, None, 2, 0, input_mode=SPARK, eval_node=True), "eval_node"),
        (lambda: TFCluster.run(None, map_fun, None, 1, 0, tensorboard=True), "log_dir"),
        (lambda: TFCluster.run(object(), map_fun, None, 1, 0), "give a SparkSession"),
    ]
    for call, words in calls:
        with pytest.raises(InvalidInputError, match=words):
            call()
