"""From the front door to a request, without any process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest

from cargobike import experiment
from cargobike.core.asked import Gang, Keeping, Limits
from cargobike.core.records import Resources
from cargobike.engines.local.engine import LocalEngine
from cargobike.experiments.asking import launching
from cargobike.experiments.driving.request import Request
from cargobike.experiments.trial.payload import Payload
from cargobike.search.optimizers.tpe import TPE


class _Cold(LocalEngine):
    """Starts nothing ahead of need."""

    def warm_up(self, *args: object, **named: object) -> None:
        pass


class _Caught(Exception):
    def __init__(self, request: Request) -> None:
        super().__init__()
        self.request = request


@pytest.fixture(autouse=True)
def _nothing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def catch(request: Request) -> NoReturn:
        raise _Caught(request)

    monkeypatch.setattr(launching, "conduct", catch)
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(tmp_path))


def train(x: float) -> float:
    return x


def _request(door: Any, *given: Any, **named: Any) -> Request:
    with pytest.raises(_Caught) as caught:
        door(train, *given, engine=_Cold(), quiet=True, **named)
    return caught.value.request


def test_every_argument_of_launch_is_in_the_record(tmp_path: Path) -> None:
    file = tmp_path / "list.csv"
    file.touch()
    request = _request(
        experiment.launch,
        {"x": ("DOUBLE", [0.0, 1.0])},
        optimizer=TPE(startup=3),
        num_trials=7,
        direction="min",
        metric="loss",
        constraints="cost <= 1",
        start_points=[{"x": 0.5}],
        early_stop="patience",
        workers=2,
        gang=2,
        resources=Resources(cpus=1),
        name="mine",
        description="words",
        seed=5,
        deterministic=True,
        max_failures=4,
        timeout_s=90.0,
        trial_timeout_s=9.0,
        stall_timeout_s=8.0,
        working_directory="launch",
        durability="power",
        versioned_resources=[file],
        tensorboard=True,
    )
    settings = request.asked.settings()
    expected = {
        "name": "mine",
        "description": "words",
        "optimizer": "tpe",
        "optimizer.startup": 3,
        "num_trials": 7,
        "direction": "min",
        "metric": "loss",
        "constraints": ["cost <= 1"],
        "start_points": [{"x": 0.5}],
        "workers": 2,
        "gang": 2,
        "resources.cpus": 1,
        "seed": 5,
        "deterministic": True,
        "engine": "local",
    }
    assert {name: settings[name] for name in expected} == expected
    assert settings["early_stop"] == ["patience(patience=5, min_delta=0.0)"]
    assert request.asked.limits == Limits(timeout_s=90.0, trial_timeout_s=9.0, stall_timeout_s=8.0, max_failures=4)
    assert request.asked.keeping == Keeping(
        durability="power", working_directory="launch", versioned_resources=(str(file),), tensorboard=True
    )
    assert request.code.resources == (file,)
    assert request.optimizer.num_trials == 7


def test_an_allreduce_is_a_single_run_of_one_gang() -> None:
    request = _request(experiment.allreduce, params={"x": 1.0}, workers=(1, 2), timeout_s=3.0)
    assert request.asked.is_single
    assert request.asked.placement.gang == Gang(size=2, least=1, is_distributed=True)
    assert (request.plan.gang, request.plan.least_gang, request.plan.num_trials) == (2, 1, 1)
    assert request.asked.limits == Limits(timeout_s=3.0, stall_timeout_s=600.0)


def test_options_of_parameter_servers_are_in_the_record_and_reach_the_workers() -> None:
    request = _request(experiment.parameter_server, params={"x": 1.0}, workers=1, servers=2, staleness=8)
    assert request.asked.placement.gang.options == {"staleness": 8}
    assert request.plan.servers == 2
    assert Payload.decode(request.payload).options == {"staleness": 8}
