"""Calls of older libraries run on Spark if the program has started it, else on this machine."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from cargobike.compat.placing import placement
from cargobike.core import settings


@pytest.fixture(autouse=True)
def _nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(settings.COMPAT_ENGINE, raising=False)
    monkeypatch.delenv(settings.COMPAT_WORKERS, raising=False)
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)


def with_spark(monkeypatch: pytest.MonkeyPatch, context: object) -> None:
    monkeypatch.setitem(
        sys.modules, "pyspark", SimpleNamespace(SparkContext=SimpleNamespace(_active_spark_context=context))
    )


def test_this_machine_unless_spark_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    assert placement({}) == {}
    with_spark(monkeypatch, None)
    assert placement({"workers": 2}) == {"workers": 2}
    with_spark(monkeypatch, object())
    assert placement({}) == {"engine": "spark"}
    assert placement({"workers": 2}) == {"engine": "spark", "workers": 2}


def test_what_a_call_says_goes_first_then_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with_spark(monkeypatch, object())
    assert placement({"engine": "local"}) == {"engine": "local"}
    assert placement({"workers": 0}) == {"workers": 0}
    monkeypatch.setenv(settings.COMPAT_ENGINE, "local")
    monkeypatch.setenv(settings.COMPAT_WORKERS, "3")
    assert placement({}) == {"engine": "local", "workers": 3}
    assert placement({"workers": 1, "engine": "spark"}) == {"engine": "spark", "workers": 1}
