"""Functions for Horovod on the executors of a Spark session."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

import cargobike.compat.horovod.spark as horovod_spark
from cargobike.core.errors import EngineError, InvalidInputError

if TYPE_CHECKING:
    from support.spark_applications import SparkApplications

pytestmark = pytest.mark.timeout(300)


def test_ranks_return_from_executors_by_rank(spark_applications: SparkApplications) -> None:
    spark_applications.context()

    def train(factor: int, plus: int = 0) -> tuple[int, int, str]:
        import os

        import torch

        import cargobike.compat.horovod.torch as hvd

        hvd.init()
        print("on Spark")
        total = hvd.allreduce(torch.tensor([float(hvd.rank() + 1)]), op=hvd.Sum)
        return int(total) * factor + plus, hvd.rank(), os.environ["COLOUR"]

    printed = io.StringIO()
    answers = horovod_spark.run(train, (10,), {"plus": 1}, num_proc=2, env={"COLOUR": "blue"}, stdout=printed)
    assert answers == [(31, 0, "blue"), (31, 1, "blue")]
    assert sorted(printed.getvalue().splitlines()) == ["[0]<stdout>:on Spark", "[1]<stdout>:on Spark"]


def test_ranks_on_executors_may_be_lost(spark_applications: SparkApplications) -> None:
    spark_applications.context()

    def train(folder: str) -> tuple[int, int, int]:
        import os
        import signal

        import cargobike.compat.horovod.torch as hvd

        hvd.init()

        @hvd.elastic.run
        def steps(state: hvd.elastic.TorchState) -> int:
            while state.step < 6:
                killed = os.path.join(folder, "killed")
                if state.step == 2 and hvd.rank() == 1 and not os.path.exists(killed):
                    open(killed, "w").close()
                    os.kill(os.getpid(), signal.SIGKILL)
                state.step += 1
                state.commit()
            return int(state.step)

        return steps(hvd.elastic.TorchState(step=0)), hvd.rank(), hvd.size()

    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        answers = horovod_spark.run_elastic(train, (folder,), num_proc=2, min_num_proc=1)
    assert [answer[:2] for answer in answers] == [(6, rank) for rank in range(len(answers))]


def test_mistakes_are_said_before_anything_starts(spark_applications: SparkApplications) -> None:
    spark_applications.context()
    with pytest.raises(InvalidInputError, match="num_proc=0"):
        horovod_spark.run(print, num_proc=0)
    with pytest.raises(InvalidInputError, match="no MPI"):
        horovod_spark.run(print, num_proc=1, use_mpi=True)
    with pytest.raises(InvalidInputError, match="min_num_proc=3, num_proc=2"):
        horovod_spark.run_elastic(print, num_proc=2, min_num_proc=3)


def test_without_a_session_there_is_nothing_to_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark import SparkContext

    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    with pytest.raises(EngineError, match="no active Spark session"):
        horovod_spark.run(print, num_proc=1)
