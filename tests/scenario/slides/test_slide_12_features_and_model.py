"""Slide 12: `experiment.collective_all_reduce(features, model)`, which never had a function in it."""

from __future__ import annotations

import numpy as np
import pytest

from cargobike.compat.hops import experiment
from cargobike.core import settings
from cargobike.core.errors import FunctionError, InvalidInputError
from support.slide_functions import distributed_training, fit_share


def test_the_right_call_is_shown() -> None:
    features = {"x": np.arange(10.0)}
    with pytest.raises(FunctionError, match=r"collective_all_reduce\(train_fn, …\); data .* is given as data=…"):
        experiment.collective_all_reduce(features, object())
    with pytest.raises(InvalidInputError, match="has no parameter of that name"):
        experiment.collective_all_reduce(distributed_training, model=object())


def test_data_is_shared_out_and_the_model_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.COMPAT_WORKERS, "2")
    x = np.arange(1.0, 101.0)
    features = {"x": x, "y": 2 * x}
    _, outputs = experiment.collective_all_reduce(fit_share, data=features, model={"start": 0.25})
    assert outputs["rows"] == 100
    assert outputs["slope"] == pytest.approx(2.0)
    assert outputs["start"] == 0.25
