"""Estimators of scikit-learn: which are data, which are code, and files that pretend."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from cargobike.core.errors import InvalidInputError, PredictionError, UntrustedError
from cargobike.models.flavours.flavour import Saved
from cargobike.models.flavours.registry import load, save

POINTS = np.random.default_rng(7).normal(size=(40, 3))
LABELS = POINTS[:, 0] > 0


@pytest.mark.parametrize(
    "model",
    [
        GradientBoostingRegressor(n_estimators=3),
        HistGradientBoostingClassifier(max_iter=3),
        KNeighborsClassifier(),
        SVC(),
        DecisionTreeClassifier(),
        PCA(2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_estimators_of_the_library_are_data(model: Any, tmp_path: Path) -> None:
    model.fit(POINTS, LABELS)
    saved = save(model, tmp_path / "model")
    assert not saved.runs_code
    wanted = model.predict(POINTS) if hasattr(model, "predict") else model.transform(POINTS)
    np.testing.assert_allclose(load(saved, tmp_path / "model")(POINTS.tolist()), wanted)


def test_texts_are_rows_too(tmp_path: Path) -> None:
    texts = ["good day", "bad day", "good night", "bad night"]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, ["+", "-", "+", "-"])
    assert load(save(model, tmp_path / "model"), tmp_path / "model")(texts) == ["+", "-", "+", "-"]


def test_a_file_with_other_classes_needs_trust(tmp_path: Path) -> None:
    model = make_pipeline(FunctionTransformer(os.path.basename), Ridge())
    (tmp_path / "model").mkdir()
    skops.io.dump(model, tmp_path / "model" / "model.skops")
    saved = Saved(flavour="sklearn", details={"kept_as": "skops", "method": "predict"})
    with pytest.raises(UntrustedError, match=r"posixpath.basename"):
        load(saved, tmp_path / "model")
    trusted = Saved(flavour="sklearn", details=saved.details, runs_code=True)
    load(trusted, tmp_path / "model")


def test_without_skops_estimators_are_pickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skops.io", None)
    saved = save(Ridge().fit(POINTS, LABELS), tmp_path / "model")
    assert saved.runs_code
    assert saved.details["kept_as"] == "pickle"
    load(saved, tmp_path / "model")


def test_names_of_columns_are_kept(tmp_path: Path) -> None:
    frame = pd.DataFrame(POINTS, columns=["a", "b", "c"])
    model = Ridge().fit(frame, POINTS[:, 0])
    predictor = load(save(model, tmp_path / "model"), tmp_path / "model")
    wanted = model.predict(frame[:2]).tolist()
    assert predictor(POINTS[:2].tolist()) == wanted
    assert predictor([{"c": row[2], "b": row[1], "a": row[0], "more": 1.0} for row in POINTS[:2].tolist()]) == wanted
    with pytest.raises(PredictionError, match="rows lack: b"):
        predictor([{"a": 1.0, "c": 2.0}])
    with pytest.raises(PredictionError, match="Rows have 2 values, and the model takes 3: a, b, c"):
        predictor([[1.0, 2.0]])


def test_what_cannot_predict_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="it has none that predicts"):
        save(BaseEstimator(), tmp_path / "a")
    with pytest.raises(InvalidInputError, match=r"Ridge cannot predict with 'fit'; .* predict"):
        save(Ridge().fit, tmp_path / "b")
    saved = save(Ridge().fit(POINTS, LABELS), tmp_path / "c")
    with pytest.raises(InvalidInputError, match="'__init__' is no method that predicts"):
        load(Saved(flavour="sklearn", details={**saved.details, "method": "__init__"}), tmp_path / "c")
