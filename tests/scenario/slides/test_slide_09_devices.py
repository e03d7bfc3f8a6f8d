"""Slide 9: `devices.get_num_gpus()`: the GPUs of this worker, not of the machine."""

from __future__ import annotations

import pytest

from cargobike.compat.hops import devices, experiment
from cargobike.core import settings
from support.slide_functions import devices_of_this_worker


def test_each_worker_sees_its_own_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.FAKE_GPUS, "0,1")
    monkeypatch.setenv(settings.COMPAT_WORKERS, "2")
    assert devices.get_num_gpus() == 2
    returned = experiment.mirrored(devices_of_this_worker)
    assert [one["gpus"] for one in returned.result.values] == [1, 1]


def test_without_gpus_it_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.FAKE_GPUS, "")
    _, outputs = experiment.launch(devices_of_this_worker)
    assert outputs["gpus"] == 0
