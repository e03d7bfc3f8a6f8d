"""Slide 13: `experiment.collective_all_reduce(train_fn)`, and its other names since."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cargobike.compat.hops import experiment
from cargobike.core import settings
from support.slide_functions import distributed_training

if TYPE_CHECKING:
    from pyspark import SparkContext


def test_all_names_of_the_call_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.COMPAT_WORKERS, "2")
    for call in (experiment.collective_all_reduce, experiment.mirrored):
        path, outputs = call(distributed_training, name="ring", local_logdir=True)
        assert path.startswith("/")
        assert (outputs["workers"], outputs["loss"]) == (2, 0.5)


def test_parameter_servers_have_a_role_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.COMPAT_WORKERS, "3")
    monkeypatch.setenv("NUM_TF_PS", "1")
    returned = experiment.parameter_server(distributed_training)
    assert [one["servers"] for one in returned.result.values] == [1, 1, 1]
    assert returned[1]["role"] == "chief"


def test_on_spark(monkeypatch: pytest.MonkeyPatch, spark_application: SparkContext) -> None:
    monkeypatch.setenv(settings.COMPAT_WORKERS, "2")
    returned = experiment.collective_all_reduce(distributed_training)
    assert returned.result.asked.placement.engine == "spark"
    assert returned[1]["workers"] == 2
