from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from cargobike import experiment
from cargobike.core.errors import FunctionError, InvalidInputError, SignatureError, TrialFailedError
from cargobike.sklearn import Estimator
from support.price_functions import predict, predict_classes, train, train_classes, train_nothing

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 3))
Y = X @ [1.0, -2.0, 3.0] + 4 + RNG.normal(scale=0.01, size=60)
NAMES = np.array(["cat", "dog"])[(X[:, 0] > 0).astype(int)]

EXPECTED_TO_FAIL = {
    "check_do_not_raise_errors_in_init_or_set_params": "a parameter that the train function lacks is said at once",
}


def regressor(**params: Any) -> Estimator:
    return Estimator(train, predict, workers=0, **params)


def classifier() -> Estimator:
    return Estimator(train_classes, predict_classes, kind="classifier", workers=0)


def test_it_fits_predicts_and_scores() -> None:
    estimator = regressor(alpha=0.0001).fit(X, Y)
    assert np.allclose(estimator.predict(X), Y, atol=0.1)
    assert estimator.score(X, Y) > 0.999
    assert is_regressor(estimator)
    assert not is_classifier(estimator)
    kept = experiment.load(estimator.experiment_)
    assert kept.trials[0].params == {"alpha": 0.0001}
    assert kept.value == estimator.value_
    assert pickle.loads(pickle.dumps(estimator)).predict(X[:2]).tolist() == estimator.predict(X[:2]).tolist()


def test_it_trains_in_a_process_of_its_own_by_default() -> None:
    estimator = Estimator(train, predict).fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
    assert estimator.score(pd.DataFrame(X, columns=["a", "b", "c"]), Y) > 0.999
    assert estimator.feature_names_in_.tolist() == ["a", "b", "c"]


def test_cross_validation_search_and_pipelines() -> None:
    assert cross_val_score(regressor(), X, Y, cv=2).min() > 0.99
    search = GridSearchCV(regressor(), {"alpha": [0.0001, 1e6]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"alpha": 0.0001}
    assert make_pipeline(StandardScaler(), regressor()).fit(X, Y).score(X, Y) > 0.999


def test_a_classifier_answers_with_classes_and_probabilities() -> None:
    estimator = classifier().fit(X, NAMES)
    assert estimator.classes_.tolist() == ["cat", "dog"]
    assert estimator.score(X, NAMES) > 0.8
    chances = estimator.predict_proba(X[:5])
    assert np.allclose(chances.sum(axis=1), 1)
    assert estimator.predict(X[:5]).tolist() == estimator.classes_[chances.argmax(axis=1)].tolist()
    assert is_classifier(estimator)
    assert not hasattr(regressor(), "predict_proba")


def test_parameters_of_the_function_are_parameters_of_the_estimator() -> None:
    estimator = regressor()
    assert estimator.get_params()["alpha"] == 0.001
    assert clone(estimator.set_params(alpha=2.0, label="target")).get_params() == estimator.get_params()
    assert "alpha=2.0" in repr(estimator)
    with pytest.raises(InvalidInputError, match=r"Invalid parameter 'alpah'\. Did you mean 'alpha'\?"):
        estimator.set_params(alpah=1.0)
    with pytest.raises(SignatureError, match=r"'alhpa' is unknown\. Did you mean 'alpha'\?"):
        regressor(alhpa=1.0)
    with pytest.raises(SignatureError, match=r"takes rows; .* gets its rows as `data`"):
        Estimator(lambda rows: 0.0, predict)
    with pytest.raises(SignatureError, match="'workers' is a setting of the estimator"):
        Estimator(lambda data, workers: 0.0, predict)
    with pytest.raises(FunctionError, match="train='x' was given; give a function"):
        Estimator("x", predict)  # type: ignore[arg-type]


def test_what_cannot_be_fitted_is_said() -> None:
    with pytest.raises(FunctionError, match=r"train_nothing returned 60\.0 and saved no model\. Save it before it"):
        Estimator(train_nothing, predict, workers=0).fit(X, Y)
    with pytest.raises(InvalidInputError, match=r"X has a column 'y' already"):
        regressor().fit(pd.DataFrame({"y": [1.0, 2.0]}), [1.0, 2.0])
    with pytest.raises(InvalidInputError, match="kind='regresor' was given; allowed are"):
        regressor(kind="regresor").fit(X, Y)
    with pytest.raises(InvalidInputError, match=r"returned an array of shape \(3,\); return one of shape \(2,\)"):
        Estimator(train, lambda model, batch: [1, 2, 3], workers=0).fit(X, Y).predict(X[:2])

    def fails(data: Any) -> float:
        raise ValueError("no such thing")

    with pytest.raises(TrialFailedError, match="no such thing"):
        Estimator(fails, predict, workers=0).fit(X, Y)


@pytest.mark.parametrize("make", [regressor, classifier])
@pytest.mark.filterwarnings("ignore")  # the checks warn of what they skip
def test_scikit_learns_own_checks_pass(make: Any) -> None:
    found = check_estimator(make(), expected_failed_checks=EXPECTED_TO_FAIL, on_fail=None)
    wrong = {
        one["check_name"]: one["exception"] for one in found if one["status"] not in ("passed", "skipped", "xfail")
    }
    assert wrong == {}
    assert {one["check_name"] for one in found if one["status"] == "xfail"} == set(EXPECTED_TO_FAIL)
    assert sum(one["status"] == "passed" for one in found) > 45
