"""Boosters and estimators of XGBoost and LightGBM, for numbers, two classes and several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.models.flavours.registry import load, save

pytestmark = pytest.mark.slow

POINTS = np.random.default_rng(7).normal(size=(60, 3))
NUMBERS = POINTS[:, 0] * 2
CLASSES = np.digitize(POINTS[:, 0], [-0.5, 0.5])


def answers(model: Any, folder: Path, rows: Any = None) -> Any:
    saved = save(model, folder)
    assert not saved.runs_code
    return load(saved, folder)(POINTS[:9].tolist() if rows is None else rows)


def test_xgboost(tmp_path: Path) -> None:
    import xgboost

    regressor = xgboost.XGBRegressor(n_estimators=4).fit(POINTS, NUMBERS)
    np.testing.assert_allclose(answers(regressor, tmp_path / "a"), regressor.predict(POINTS[:9]), rtol=1e-5)
    classifier = xgboost.XGBClassifier(n_estimators=4).fit(POINTS, CLASSES)
    assert answers(classifier, tmp_path / "b") == classifier.predict(POINTS[:9]).tolist()
    frame = pd.DataFrame(POINTS, columns=["a", "b", "c"])
    booster = xgboost.train({"max_depth": 2}, xgboost.DMatrix(frame, NUMBERS), 4)
    wanted = booster.predict(xgboost.DMatrix(frame[:9]))
    np.testing.assert_allclose(answers(booster, tmp_path / "c"), wanted, rtol=1e-5)
    rows = frame[:9].to_dict(orient="records")
    np.testing.assert_allclose(answers(booster, tmp_path / "d", rows), wanted, rtol=1e-5)
    np.testing.assert_allclose(
        answers(booster, tmp_path / "e", [[None, 0.0, 0.0]]),
        booster.predict(xgboost.DMatrix(pd.DataFrame([[np.nan, 0.0, 0.0]], columns=["a", "b", "c"]))),
    )


def test_lightgbm(tmp_path: Path) -> None:
    import lightgbm

    more: dict[str, Any] = {"n_estimators": 4, "verbose": -1, "min_child_samples": 2}
    regressor = lightgbm.LGBMRegressor(**more).fit(POINTS, NUMBERS)
    np.testing.assert_allclose(answers(regressor, tmp_path / "a"), regressor.predict(POINTS[:9]))
    classifier = lightgbm.LGBMClassifier(**more).fit(POINTS, CLASSES)
    assert answers(classifier, tmp_path / "b") == classifier.predict(POINTS[:9]).tolist()
    two = lightgbm.LGBMClassifier(**more).fit(POINTS, CLASSES > 0)
    np.testing.assert_allclose(answers(two.predict_proba, tmp_path / "c"), two.predict_proba(POINTS[:9]))
    np.testing.assert_allclose(answers(two.booster_, tmp_path / "d"), two.booster_.predict(POINTS[:9]))
    frame = pd.DataFrame(POINTS, columns=["a", "b", "c"])
    named = lightgbm.LGBMRegressor(**more).fit(frame, NUMBERS)
    rows = [{"c": row[2], "a": row[0], "b": row[1]} for row in POINTS[:9].tolist()]
    np.testing.assert_allclose(answers(named, tmp_path / "e", rows), named.predict(frame[:9]))
    with pytest.raises(InvalidInputError, match="cannot predict with 'fit'"):
        save(named.fit, tmp_path / "f")
