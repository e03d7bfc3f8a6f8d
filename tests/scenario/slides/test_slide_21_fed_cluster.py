"""Slide 21: run, train with 0 epochs, inference and shutdown, in this order, as the slide has them; without Spark.

The same on Spark is in `tests/spark/test_spark_tfos.py`.
"""

from __future__ import annotations

from typing import Any

from cargobike.compat.tensorflowonspark import TFCluster
from cargobike.compat.tensorflowonspark.TFCluster import InputMode


def map_fn(args: Any, ctx: Any) -> None:
    """Learn the mean of some rows, until it is known well enough; then answer with the distance from it."""
    feed, seen, total = ctx.get_data_feed(qname_in="input"), 0, 0.0
    while seen < 1000:
        batch = feed.next_batch(args["batch_size"])
        seen, total = seen + len(batch), total + sum(batch)
    feed.terminate()
    answers = ctx.get_data_feed(False, qname_in="questions")
    while not answers.should_stop():
        answers.batch_results([abs(row - total / seen) for row in answers.next_batch(args["batch_size"])])


def test_the_calls_of_the_slide() -> None:
    data_rdd = [[1.0, 3.0] * 50, [2.0] * 100]
    args = {"batch_size": 25}
    num_executors, num_ps, tensorboard = 2, 0, False
    queues = ["input", "questions", "output", "error"]
    cluster = TFCluster.run(None, map_fn, args, num_executors, num_ps, tensorboard, InputMode.SPARK, queues=queues)
    cluster.train(data_rdd, num_epochs=0)
    results = list(cluster.inference([[2.0, 2.5], [0.0]], qname="questions"))
    cluster.shutdown()
    assert len(results) == 3
    assert all(abs(result - wanted) < 0.2 for result, wanted in zip(results, [0.0, 0.5, 2.0], strict=True))
