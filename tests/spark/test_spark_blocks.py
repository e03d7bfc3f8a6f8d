"""Searches of one `with` block share the session that is made for the first of them."""

from __future__ import annotations

import os
import signal
import time

import psutil
import pytest

from cargobike import experiment
from cargobike.engines.spark.engine import SparkEngine
from cargobike.engines.spark.session import active_context
from cargobike.testing.reception import is_running, wait_until

pytestmark = pytest.mark.timeout(300)


def train(x: int) -> float:
    return float(x)


def search(engine: SparkEngine) -> list[float]:
    result = experiment.launch(train, {"x": [1, 2, 3]}, engine=engine, workers=2, quiet=True)
    return sorted(trial.value or 0.0 for trial in result.trials)


def application() -> str:
    context = active_context()
    return "" if context is None else str(context.applicationId)


def all_javas() -> set[int]:
    return {child.pid for child in psutil.Process().children() if child.name() == "java"}


def test_a_session_lasts_as_long_as_the_block_or_else_as_the_search() -> None:
    others = all_javas()  # a cluster that other tests share

    def javas() -> list[int]:
        return sorted(all_javas() - others)

    with SparkEngine(master="local[2]") as engine:
        assert not javas(), "nothing is started before it is needed"
        assert search(engine) == [1, 2, 3]
        first, java = application(), javas()
        assert first
        assert len(java) == 1
        assert search(engine) == [1, 2, 3]
        assert (application(), javas()) == (first, java)
        os.kill(java[0], signal.SIGKILL)
        wait_until(lambda: not is_running(java[0]), lambda: time.sleep(0.05), "Spark's Java has ended")
        assert search(engine) == [1, 2, 3], "a session that has died between two searches is made anew"
        assert len(javas()) == 1
    assert not application()
    assert not javas()
    assert search(engine) == [1, 2, 3]
    assert not javas(), "without a block it ends with the search"
