"""Scripts of TensorFlowOnSpark on Spark: clusters of executors that are fed by tasks, records, estimators."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.streaming import StreamingContext

from cargobike.compat.tensorflowonspark import TFCluster, TFNode, TFParallel, compat, dfutil, reservation
from cargobike.compat.tensorflowonspark.pipeline import TFEstimator
from cargobike.core.errors import EngineError, InvalidInputError, TrialFailedError
from cargobike.engines import SparkEngine

if TYPE_CHECKING:
    from support.spark_applications import SparkApplications

pytestmark = pytest.mark.timeout(300)

SPARK = TFCluster.InputMode.SPARK


@pytest.fixture
def sc(spark_applications: SparkApplications) -> SparkContext:
    """Two executors with one slot each, as TensorFlowOnSpark wanted them: nodes take all slots that there are."""
    return spark_applications.context(
        spark__executor__cores="1",
        spark__cores__max="2",
        spark__executor__resource__gpu__amount="1",
        spark__task__resource__gpu__amount="1",
    )


def test_nodes_that_took_every_slot_are_fed_and_answer_in_order(sc: SparkContext, tmp_path: Path) -> None:
    def train(args: Any, ctx: Any) -> None:
        feed, seen = ctx.get_data_feed(), 0
        while not feed.should_stop():
            seen += len(feed.next_batch(10))
            if args["most"] and seen >= args["most"]:
                feed.terminate()
        (Path(args["folder"]) / f"{ctx.job_name}-{ctx.task_index}").write_text(str(seen))

    def square(args: Any, ctx: Any) -> None:
        feed = TFNode.DataFeed(ctx.mgr, False)
        while not feed.should_stop():
            feed.batch_results([[row[0] ** 2] for row in feed.next_batch(10)])

    drawn = sc.accumulator(0)

    def count(row: int) -> int:
        drawn.add(1)
        return row

    rows = sc.parallelize([[row] for row in range(1000)], 10)
    with TFCluster.run(sc, square, {}, 2, 0, input_mode=SPARK) as cluster:
        results = cluster.inference(rows)
        assert results.map(lambda row: row[0]).collect() == [row * row for row in range(1000)]
        assert results.count() == 1000
    args = {"folder": str(tmp_path), "most": 0}
    with TFCluster.run(sc, train, args, 2, 0, input_mode=SPARK, master_node="chief") as cluster:
        cluster.train(rows, num_epochs=3)
    told = [int((tmp_path / name).read_text()) for name in ("chief-0", "worker-0")]
    assert sum(told) == 3000
    assert min(told) > 500
    many = sc.parallelize(range(200_000), 20).map(count)
    args = {"folder": str(tmp_path), "most": 500}
    with TFCluster.run(sc, train, args, 2, 0, input_mode=SPARK, master_node="chief") as cluster:
        cluster.train(many)  # until functions stop; what they do not want is not computed
    assert [int((tmp_path / name).read_text()) for name in ("chief-0", "worker-0")] == [500, 500]
    assert 1000 <= drawn.value < 100_000


def test_frames_are_fed_by_columns(sc: SparkContext, tmp_path: Path) -> None:
    def train(args: Any, ctx: Any) -> None:
        feed = ctx.get_data_feed(input_mapping={"b": "label", "a": "image"})
        labels: list[Any] = []
        while not feed.should_stop():
            batch = feed.next_batch(7)
            assert [len(image) for image in batch["image"]] == [2] * len(batch["label"])
            labels += batch["label"]
        (Path(args) / str(ctx.task_index)).write_text(str(sum(labels)))

    frame = SparkSession(sc).range(1000, numPartitions=4).selectExpr("array(id, id) as a", "id as b")
    with TFCluster.run(sc, train, str(tmp_path), 2, 0, input_mode=SPARK) as cluster:
        cluster.train(frame, num_epochs=1)
    assert sum(int((tmp_path / name).read_text()) for name in ("0", "1")) == sum(range(1000))


def test_errors_of_nodes_and_lost_executors_reach_the_driver(sc: SparkContext) -> None:
    def fail(args: Any, ctx: Any) -> None:
        ctx.get_data_feed().next_batch(3)
        raise RuntimeError("FAKE exception during feeding")

    def give_too_many(args: Any, ctx: Any) -> None:
        feed = ctx.get_data_feed(False)
        while not feed.should_stop():
            feed.batch_results([0, *feed.next_batch(10)])

    def wait(args: Any, ctx: Any) -> None:
        feed = ctx.get_data_feed()
        while not feed.should_stop():
            feed.next_batch(10)

    rows = sc.parallelize(range(1000), 10)
    cluster = TFCluster.run(sc, fail, None, 2, 0, input_mode=SPARK)
    with pytest.raises(TrialFailedError, match="FAKE exception during feeding"):
        cluster.train(rows)
    with pytest.raises(TrialFailedError, match="FAKE exception during feeding"):
        cluster.shutdown()
    cluster = TFCluster.run(sc, give_too_many, None, 2, 0, input_mode=SPARK)
    with pytest.raises(Exception, match=r"11 results for 10 rows|worker:. takes no rows"):
        cluster.inference(rows).count()
    with pytest.raises(TrialFailedError, match="11 results for 10 rows"):
        cluster.shutdown()
    cluster = TFCluster.run(sc, wait, None, 2, 0, input_mode=SPARK)
    victim = cluster.cluster_info[0]
    os.kill(victim["pid"], signal.SIGKILL)
    with pytest.raises(
        EngineError, match=rf"has lost a node(.|\n)*worker:0 \(executor 0\) on .*, process {victim['pid']}"
    ):
        cluster.train(rows)
    with pytest.raises(InvalidInputError, match=r"3 workers with .* were asked for, but there is room for 2"):
        TFCluster.run(sc, wait, None, 3, 0)


def test_independent_functions_run_at_once_or_one_after_the_other(sc: SparkContext, tmp_path: Path) -> None:
    def map_fn(args: Any, ctx: Any) -> None:
        (Path(args) / str(ctx.worker_num)).write_text(str(ctx.num_workers))

    def told() -> list[tuple[str, str]]:
        return sorted((path.name, path.read_text()) for path in tmp_path.glob("[0-9]"))

    TFParallel.run(sc, map_fn, str(tmp_path), 2)
    assert told() == [("0", "2"), ("1", "2")]
    with pytest.raises(InvalidInputError, match="there is room for 2"):
        TFParallel.run(sc, map_fn, str(tmp_path), 3)
    TFParallel.run(sc, map_fn, str(tmp_path), 3, use_barrier=False)
    assert told() == [("0", "3"), ("1", "3"), ("2", "3")]


def test_frames_become_records_and_come_back(sc: SparkContext, tmp_path: Path) -> None:
    session = SparkSession(sc)
    row = ("text string", 1, [2, 3, 4, 5], -1.1, [-2.2, -3.3], bytearray(b"\xff\xfe"), True)
    frame = session.createDataFrame([row], ["a", "b", "c", "d", "e", "f", "g"])
    folder = str(tmp_path / "records")
    dfutil.saveAsTFRecords(frame, folder)
    with pytest.raises(InvalidInputError, match="exists already, and is not empty"):
        dfutil.saveAsTFRecords(frame, folder)
    loaded = dfutil.loadTFRecords(sc, folder, binary_features=["f"])
    types = dict(loaded.dtypes)
    assert list(types) == ["a", "b", "c", "d", "e", "f", "g"]
    assert list(types.values()) == ["string", "bigint", "array<bigint>", "double", "array<double>", "binary", "bigint"]
    back = loaded.first()
    assert (back.a, back.b, back.c, bytes(back.f), back.g) == ("text string", 1, [2, 3, 4, 5], b"\xff\xfe", 1)
    assert back.d == pytest.approx(-1.1, abs=1e-6)
    assert back.e == pytest.approx([-2.2, -3.3], abs=1e-6)
    assert dfutil.isLoadedDF(loaded)
    assert not dfutil.isLoadedDF(frame)
    assert not dfutil.isLoadedDF(loaded.filter(loaded.a == "x"))
    with pytest.raises(InvalidInputError, match="'when' is date"):
        dfutil.saveAsTFRecords(session.sql("SELECT current_date() AS when"), str(tmp_path / "dates"))
    (written,) = [path for path in Path(folder).iterdir() if path.name.startswith("part-r-") and path.stat().st_size]
    written.write_bytes(written.read_bytes()[:-1] + b"?")
    with pytest.raises(InvalidInputError, match="its checksum is wrong"):
        dfutil.loadTFRecords(sc, folder)


def test_an_estimator_trains_and_its_model_predicts(sc: SparkContext, tmp_path: Path) -> None:
    def train(args: Any, ctx: Any) -> None:
        import tensorflow as tf

        feed = TFNode.DataFeed(ctx.mgr, input_mapping=args.input_mapping)
        weights, bias = tf.Variable([[0.0], [0.0]]), tf.Variable([0.0])
        while not feed.should_stop():
            batch = feed.next_batch(args.batch_size)
            if not batch["x"]:
                break
            x, y = tf.constant(batch["x"], tf.float32), tf.constant(batch["y_"], tf.float32)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ weights + bias - y) ** 2)
            for variable, gradient in zip((weights, bias), tape.gradient(loss, (weights, bias)), strict=True):
                variable.assign_sub(0.5 * gradient)
        inputs = tf.keras.Input((2,), name="features")
        model = tf.keras.Model(inputs, tf.keras.layers.Dense(1, name="dense")(inputs))
        model.set_weights([weights.numpy(), bias.numpy()])
        compat.export_saved_model(model, args.export_dir, ctx.job_name == "chief")

    rng = np.random.default_rng(0)
    features, known = rng.random((1000, 2)), np.array([3.14, 1.618])
    rows = [(feature.tolist(), [float(feature @ known)]) for feature in features]
    session = SparkSession(sc)
    frame = session.createDataFrame(rows, ["col1", "col2"]).repartition(2)
    estimator = (
        TFEstimator(train, {"export_dir": ""})
        .setInputMapping({"col1": "x", "col2": "y_"})
        .setExportDir(str(tmp_path / "export"))
        .setClusterSize(1)
        .setBatchSize(20)
        .setEpochs(20)
    )
    model = estimator.fit(frame)
    assert (tmp_path / "export" / "saved_model.pb").exists()
    test = session.createDataFrame([([1.0, 1.0], 0.0), ([0.0, 2.0], 1.0)], ["c1", "c2"])
    with pytest.raises(InvalidInputError, match="setOutputMapping"):
        model.transform(test)
    model.setTagSet("serve").setInputMapping({"c1": "dense_input"}).setOutputMapping({"dense": "c2"})
    predicted = model.transform(test)
    assert predicted.columns == ["c2"]
    answers = [row.c2[0] for row in predicted.collect()]
    assert answers == pytest.approx([known.sum(), 2 * known[1]], abs=0.05)


def test_a_stream_feeds_a_cluster_until_its_end_is_asked_for(sc: SparkContext, tmp_path: Path) -> None:
    def train(args: Any, ctx: Any) -> None:
        feed, seen = ctx.get_data_feed(), 0
        while not feed.should_stop():
            seen += len(feed.next_batch(10))
            (Path(args) / f"seen-{ctx.task_index}").write_text(str(seen))

    def seen() -> int:
        return sum(int(path.read_text() or 0) for path in tmp_path.glob("seen-*"))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of Spark's own, about streams of this kind
        stream = StreamingContext(sc, 1)
    cluster = TFCluster.run(sc, train, str(tmp_path), 2, 0, input_mode=SPARK)
    cluster.train(stream.queueStream([sc.parallelize(range(100), 4) for _ in range(2)]))
    stream.start()
    deadline = time.monotonic() + 120
    while seen() < 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    reservation.Client(cluster.cluster_meta["server_addr"]).request_stop()
    cluster.shutdown(stream)
    assert seen() == 200


def test_nodes_end_with_their_driver(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        """
import time
from cargobike.compat.tensorflowonspark import TFCluster
from cargobike.engines.spark.session import OwnContext

def wait(args, ctx):
    time.sleep(600)

if __name__ == "__main__":
    own = OwnContext("local[2]", {})
    cluster = TFCluster.run(own.context, wait, None, 2, 0, input_mode=TFCluster.InputMode.SPARK)
    print("nodes", *[node["pid"] for node in cluster.cluster_info], flush=True)
    time.sleep(600)
"""
    )
    driver = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert driver.stdout is not None
    with driver.stdout:
        told = next(line for line in driver.stdout if line.startswith("nodes"))
    nodes = [int(pid) for pid in told.split()[1:]]
    assert all(os.path.exists(f"/proc/{node}") for node in nodes)
    driver.kill()
    driver.wait()
    deadline = time.monotonic() + 60
    while any(os.path.exists(f"/proc/{node}") for node in nodes):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_workers_give_slots_back_only_if_they_can(sc: SparkContext) -> None:
    with pytest.raises(EngineError, match=r"make it with SparkEngine\(detaches=True\)"):
        SparkEngine(sc).free_slots()
