"""The callbacks with the real frameworks: what is reported, how a stop ends the training, how a checkpoint goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cargobike.core.errors import InvalidInputError, TrialStopped
from cargobike.experiments.trial import context
from support.watched_trial import WatchedTrial, inside

pytestmark = pytest.mark.filterwarnings("default")

RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(64, 4))
TARGETS = (INPUTS[:, 0] > 0).astype(int)


def approved(steps: list[int], stop_at: int | None, expected: range) -> None:
    """Check that every step was reported up to the one at which the trial ended."""
    assert steps == [step for step in expected if stop_at is None or step <= stop_at]


class Lightning:
    """A small module with a validation, and a trainer for it."""

    def __init__(self, folder: Path, *callbacks: Any, epochs: int = 4, validates: bool = True) -> None:
        import lightning as L
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        class Module(L.LightningModule):
            def __init__(self) -> None:
                super().__init__()
                self.layer = torch.nn.Linear(4, 1)

            def training_step(self, batch: Any, index: int) -> Any:
                loss = torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
                self.log("loss", loss, on_epoch=True)
                return loss

            def validation_step(self, batch: Any, index: int) -> None:
                self.log("val_loss", torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1]))

            def configure_optimizers(self) -> Any:
                return torch.optim.SGD(self.parameters(), lr=0.1)

        rows = torch.tensor(INPUTS, dtype=torch.float32), torch.tensor(TARGETS[:, None], dtype=torch.float32)
        self.loader = DataLoader(TensorDataset(*rows), batch_size=16)
        self.validation = self.loader if validates else None
        self.module = Module()
        self.ended: list[str] = []
        ended = self.ended

        class Last(L.Callback):
            def on_train_end(self, trainer: Any, pl_module: Any) -> None:
                ended.append("train")

        self.trainer = L.Trainer(
            max_epochs=epochs,
            accelerator="cpu",
            callbacks=[Last(), *callbacks],
            default_root_dir=folder,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )

    def fit(self, **arguments: Any) -> None:
        self.trainer.fit(self.module, self.loader, self.validation, **arguments)


@pytest.mark.parametrize("validates", [True, False])
def test_lightning_reports_epochs(tmp_path: Path, validates: bool) -> None:
    from cargobike.callbacks import LightningReport

    with inside(WatchedTrial(tmp_path)) as trial:
        Lightning(tmp_path, LightningReport(["loss"]), validates=validates).fit()
    assert trial.steps == [0, 1, 2, 3]
    assert trial.reports[0][1]["loss"] > trial.reports[-1][1]["loss"]


def test_lightning_stops_and_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    from cargobike.callbacks import LightningReport

    with inside(WatchedTrial(tmp_path, stop_at=2)) as trial:
        first = Lightning(tmp_path, LightningReport({"loss": "val_loss"}, checkpoint=True))
        with pytest.raises(TrialStopped):
            first.fit()
        assert first.ended == ["train"]  # by Lightning's own end, not by an exception in the middle
        assert trial.steps == [0, 1, 2]
        assert trial.checkpoint.step == 1
    with inside(WatchedTrial(tmp_path)) as again:
        second = Lightning(tmp_path, LightningReport({"loss": "val_loss"}, checkpoint=True))
        second.fit(ckpt_path=again.checkpoint.load())
    assert again.steps == [2, 3]
    assert again.reports[0] == trial.reports[2]


def test_lightning_reports_each_validation(tmp_path: Path) -> None:
    from cargobike.callbacks import LightningReport

    with inside(WatchedTrial(tmp_path)) as trial:
        Lightning(tmp_path, LightningReport("val_loss", on="validation"), epochs=2).fit()
    assert trial.steps == [4, 8]


def test_lightning_says_which_metrics_there_are(tmp_path: Path) -> None:
    from cargobike.callbacks import LightningReport

    with pytest.raises(InvalidInputError, match=r"'val_los'; measured here: .*'val_loss'\?"):
        Lightning(tmp_path, LightningReport("val_los")).fit()
    with pytest.raises(InvalidInputError, match="epoch"):
        LightningReport(on="batch")  # type: ignore[arg-type]


def transformers_trainer(folder: Path, callback: Any, **arguments: Any) -> Any:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

    set_seed(0)
    config = BertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, num_labels=2
    )
    rows = [{"input_ids": torch.tensor([i % 20, 1, 2]), "labels": torch.tensor(i % 2)} for i in range(16)]
    chosen = TrainingArguments(
        output_dir=str(folder / "out"),
        num_train_epochs=4,
        per_device_train_batch_size=8,
        eval_strategy="epoch",
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        **{"save_strategy": "no", **arguments},
    )
    model = BertForSequenceClassification(config)
    return Trainer(model=model, args=chosen, train_dataset=rows, eval_dataset=rows, callbacks=[callback])


@pytest.mark.parametrize("stop_at", [None, 2])
def test_transformers_reports_evaluations(tmp_path: Path, stop_at: int | None) -> None:
    from cargobike.callbacks import TransformersReport

    with inside(WatchedTrial(tmp_path, stop_at=stop_at)) as trial:
        trainer = transformers_trainer(tmp_path, TransformersReport("eval_loss"))
        if stop_at is None:
            trainer.train()
            trainer.evaluate()  # after the training: no report
        else:
            with pytest.raises(TrialStopped):
                trainer.train()
            assert trainer.state.global_step == 4
    approved(trial.steps, stop_at, range(1, 5))


def test_transformers_goes_on_from_what_its_trainer_saved(tmp_path: Path) -> None:
    from cargobike.callbacks import TransformersReport

    with inside(WatchedTrial(tmp_path / "trial", stop_at=3)) as trial:
        report = TransformersReport(checkpoint=True)
        with pytest.raises(TrialStopped):
            transformers_trainer(tmp_path / "a", report, save_strategy="epoch").train()
        assert trial.checkpoint.step == 2
        assert set(trial.reports[0][1]) == {"eval_loss"}
    with inside(WatchedTrial(tmp_path / "trial")) as again:
        trainer = transformers_trainer(tmp_path / "b", TransformersReport(checkpoint=True), save_strategy="epoch")
        trainer.train(resume_from_checkpoint=again.checkpoint.load())
    assert again.steps == [3, 4]
    assert again.reports[0][1]["eval_loss"] == pytest.approx(trial.reports[2][1]["eval_loss"], rel=1e-5)


def keras_model() -> Any:
    import keras

    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile(optimizer=keras.optimizers.Adam(0.05), loss="binary_crossentropy", metrics=["accuracy"])
    return model


def keras_fit(model: Any, *callbacks: Any) -> Any:
    return model.fit(INPUTS, TARGETS, epochs=5, verbose=0, shuffle=False, batch_size=64, callbacks=list(callbacks))


def test_keras_reports_stops_and_goes_on(tmp_path: Path) -> None:
    import keras

    from cargobike.callbacks import KerasReport

    whole = [float(loss) for loss in keras_fit(keras_model()).history["loss"]]
    ended = []
    watcher = keras.callbacks.LambdaCallback(on_train_end=lambda logs: ended.append("train"))
    with inside(WatchedTrial(tmp_path, stop_at=2)) as trial:
        with pytest.raises(TrialStopped):
            keras_fit(keras_model(), watcher, KerasReport("loss", checkpoint=True))
        assert ended == ["train"]
        assert trial.checkpoint.step == 1
    with inside(WatchedTrial(tmp_path)) as again:
        keras_fit(keras_model(), KerasReport(checkpoint=True))
    assert (trial.steps, again.steps) == ([0, 1, 2], [2, 3, 4])
    assert set(again.reports[0][1]) == {"loss", "accuracy"}
    losses = [metrics["loss"] for _, metrics in [*trial.reports[:2], *again.reports]]
    assert losses == pytest.approx(whole, rel=1e-4)  # the optimizer's state went on as well


PARAMS = {"objective": "binary:logistic", "eval_metric": "logloss", "max_depth": 2, "nthread": 1}


def test_xgboost_reports_stops_and_goes_on(tmp_path: Path) -> None:
    import xgboost

    from cargobike.callbacks import XGBoostReport

    data = xgboost.DMatrix(INPUTS, TARGETS)

    def train(report: Any, **arguments: Any) -> Any:
        evals = [(data, "valid")]
        return xgboost.train(PARAMS, data, evals=evals, verbose_eval=False, callbacks=[report], **arguments)

    whole: dict[str, Any] = {}
    xgboost.train(PARAMS, data, 10, evals=[(data, "valid")], evals_result=whole, verbose_eval=False)
    with inside(WatchedTrial(tmp_path, stop_at=5)) as trial, pytest.raises(TrialStopped):
        train(XGBoostReport({"loss": "valid-logloss"}, checkpoint_every=2), num_boost_round=10)
    assert trial.steps == [0, 1, 2, 3, 4, 5]
    with inside(WatchedTrial(tmp_path)) as again:
        report = XGBoostReport(checkpoint_every=2)
        model = train(report, num_boost_round=report.rounds_left(10), xgb_model=again.checkpoint.load())
    assert again.steps == [4, 5, 6, 7, 8, 9]
    assert model.num_boosted_rounds() == 10
    assert again.reports[-1][1] == {"valid-logloss": pytest.approx(whole["valid"]["logloss"][-1], rel=1e-4)}


def test_xgboost_reports_models_and_cross_validations(tmp_path: Path) -> None:
    import xgboost

    from cargobike.callbacks import XGBoostReport

    with inside(WatchedTrial(tmp_path)) as trial:
        model = xgboost.XGBClassifier(n_estimators=3, n_jobs=1, callbacks=[XGBoostReport("validation_0-logloss")])
        model.fit(INPUTS, TARGETS, eval_set=[(INPUTS, TARGETS)], verbose=False)
        report = XGBoostReport("test-logloss", checkpoint_every=1)
        table = xgboost.cv(PARAMS, xgboost.DMatrix(INPUTS, TARGETS), 3, nfold=2, callbacks=[report], as_pandas=False)
    assert trial.steps == [0, 1, 2, 0, 1, 2]
    assert [metrics["test-logloss"] for _, metrics in trial.reports[3:]] == pytest.approx(table["test-logloss-mean"])


LIGHT = {"objective": "binary", "verbose": -1, "num_threads": 1, "min_data_in_leaf": 2, "deterministic": True}


def test_lightgbm_reports_stops_and_goes_on(tmp_path: Path) -> None:
    import lightgbm

    from cargobike.callbacks import LightGBMReport

    def train(report: Any, **arguments: Any) -> Any:
        data = lightgbm.Dataset(INPUTS, TARGETS, free_raw_data=False)
        return lightgbm.train(LIGHT, data, valid_sets=[data], valid_names=["valid"], callbacks=[report], **arguments)

    with inside(WatchedTrial(tmp_path, stop_at=5)) as trial, pytest.raises(TrialStopped):
        train(LightGBMReport({"loss": "valid-binary_logloss"}, checkpoint_every=2), num_boost_round=10)
    assert trial.steps == [0, 1, 2, 3, 4, 5]
    with inside(WatchedTrial(tmp_path)) as again:
        report = LightGBMReport({"loss": "valid-binary_logloss"}, checkpoint_every=2)
        model = train(report, num_boost_round=report.rounds_left(10), init_model=again.checkpoint.load())
    assert again.steps == [4, 5, 6, 7, 8, 9]
    assert model.num_trees() == 10
    assert again.reports[0][1]["loss"] == pytest.approx(trial.reports[4][1]["loss"], rel=1e-4)


def test_lightgbm_reports_models_and_cross_validations(tmp_path: Path) -> None:
    import lightgbm

    from cargobike.callbacks import LightGBMReport

    with inside(WatchedTrial(tmp_path)) as trial:
        model = lightgbm.LGBMClassifier(n_estimators=3, n_jobs=1, verbose=-1)
        model.fit(INPUTS, TARGETS, eval_set=[(INPUTS, TARGETS)], callbacks=[LightGBMReport()])
        lightgbm.cv(LIGHT, lightgbm.Dataset(INPUTS, TARGETS), 3, nfold=2, callbacks=[LightGBMReport()])
    assert trial.steps == [0, 1, 2, 0, 1, 2]
    assert all(len(metrics) == 1 for _, metrics in trial.reports)


def sklearn_estimators() -> dict[str, Any]:
    from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import SGDClassifier
    from sklearn.neural_network import MLPClassifier

    return {
        "sgd": SGDClassifier(random_state=0),
        "mlp": MLPClassifier((4,), random_state=0),
        "forest": RandomForestClassifier(10, random_state=0),
        "boosting": GradientBoostingClassifier(n_estimators=10, random_state=0),
        "histogram": HistGradientBoostingClassifier(max_iter=10, random_state=0),
    }


@pytest.mark.parametrize("name", ["sgd", "mlp", "forest", "boosting", "histogram"])
def test_sklearn_estimators_learn_in_steps_stop_and_go_on(tmp_path: Path, name: str) -> None:
    from cargobike.callbacks import SklearnReport

    with inside(WatchedTrial(tmp_path / "whole")) as whole:
        SklearnReport(INPUTS, TARGETS, "accuracy").fit(sklearn_estimators()[name], INPUTS, TARGETS, steps=5)
    first = SklearnReport(INPUTS, TARGETS, "accuracy", checkpoint=True)
    with inside(WatchedTrial(tmp_path, stop_at=2)) as trial, pytest.raises(TrialStopped):
        first.fit(sklearn_estimators()[name], INPUTS, TARGETS, steps=5)
    with inside(WatchedTrial(tmp_path)) as again:
        report = SklearnReport(INPUTS, TARGETS, "accuracy", checkpoint=True)
        estimator = report.fit(sklearn_estimators()[name], INPUTS, TARGETS, steps=5)
    assert (trial.steps, again.steps) == ([0, 1, 2], [2, 3, 4])
    assert [*trial.reports[:2], *again.reports] == whole.reports
    assert estimator.score(INPUTS, TARGETS) == again.reports[-1][1]["accuracy"]


def test_sklearn_estimators_that_cannot_learn_in_steps_are_refused() -> None:
    from sklearn.svm import SVC

    from cargobike.callbacks import SklearnReport

    report = SklearnReport(INPUTS, TARGETS)
    with pytest.raises(InvalidInputError, match=r"SVC cannot be trained in steps.*FoldsReport"):
        report.fit(SVC(), INPUTS, TARGETS, steps=3)
    with pytest.raises(InvalidInputError, match=r"steps=20 must be a number from 1 to n_estimators=10"):
        report.fit(sklearn_estimators()["forest"], INPUTS, TARGETS, steps=20)


def test_folds_report_the_mean_so_far_and_stop(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score

    from cargobike.callbacks import FoldsReport

    with inside(WatchedTrial(tmp_path)) as trial:
        scores = cross_val_score(LogisticRegression(), INPUTS, TARGETS, cv=4, scoring=FoldsReport("roc_auc"))
    means = [float(np.mean(scores[: fold + 1])) for fold in range(4)]
    assert [metrics["roc_auc"] for _, metrics in trial.reports] == pytest.approx(means)
    with inside(WatchedTrial(tmp_path, stop_at=1)) as trial, pytest.raises(TrialStopped):
        cross_val_score(LogisticRegression(), INPUTS, TARGETS, cv=4, scoring=FoldsReport(name="accuracy"))
    assert trial.steps == [0, 1]


def test_outside_a_trial_nothing_is_saved(tmp_path: Path) -> None:
    from cargobike.callbacks import SklearnReport

    for _ in range(2):  # the second call must not go on with what the first one left
        report = SklearnReport(INPUTS, TARGETS, checkpoint=True)
        assert report.fit(sklearn_estimators()["sgd"], INPUTS, TARGETS, steps=2).t_ == 129
    assert not context.current().checkpoint.exists


def test_callbacks_do_nothing_special_outside_a_trial() -> None:
    import xgboost

    from cargobike.callbacks import KerasReport, XGBoostReport

    assert len(keras_fit(keras_model(), KerasReport()).history["loss"]) == 5
    data = xgboost.DMatrix(INPUTS, TARGETS)
    model = xgboost.train(PARAMS, data, 3, evals=[(data, "v")], verbose_eval=False, callbacks=[XGBoostReport()])
    assert model.num_boosted_rounds() == 3
