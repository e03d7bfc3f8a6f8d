"""Slide 2: a function of (argv, ctx) on a cluster with a parameter server, in the form that TensorFlow 2 has."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from cargobike.compat.tensorflowonspark import TFCluster, TFNode
from cargobike.core.errors import TrialFailedError


def test_workers_train_while_a_server_serves(tmp_path: Path) -> None:
    def training_fun(argv: Any, ctx: Any) -> None:
        if ctx.job_name == "ps":
            threading.Event().wait()  # as `tf.distribute.Server(…).join()` does
        assert ctx.cluster_spec[ctx.job_name][ctx.task_index]
        (Path(argv[1]) / f"{ctx.job_name}-{ctx.task_index}").write_text(f"{ctx.num_workers} {argv[0]}")

    cluster = TFCluster.run(None, training_fun, ["train.py", str(tmp_path)], 3, 1)
    cluster.shutdown()
    told = {path.name: path.read_text() for path in tmp_path.glob("worker-*")}
    assert told == {"worker-0": "2 train.py", "worker-1": "2 train.py"}
    assert not list(tmp_path.glob("ps-*"))


def test_the_call_of_tensorflow_1_shows_the_line_of_tensorflow_2() -> None:
    def training_fun(argv: Any, ctx: Any) -> None:
        TFNode.start_cluster_server(ctx)

    with pytest.raises(TrialFailedError, match="MultiWorkerMirroredStrategy"):
        TFCluster.run(None, training_fun, [], 1, 0).shutdown()
