"""Maggy's ablation studies: features, layers, groups, other models; each trial trains what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cargobike import experiment as own
from cargobike import features
from cargobike.compat.maggy import Trial, experiment
from cargobike.compat.maggy.ablation import AblationStudy
from cargobike.compat.maggy.ablation.ablator import LOCO, AbstractAblator
from cargobike.compat.maggy.config import AblationConfig
from cargobike.compat.maggy.running.components import model_without

HERE: dict[str, Any] = {"workers": 0, "quiet": True, "seed": 3}


def base_model() -> Any:
    import keras  # takes seconds, for which a process that runs other tests need not wait

    return keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(8, name="my_dense_one"),
            keras.layers.Dense(7, name="my_dense_two"),
            keras.layers.Dropout(0.1, name="drop"),
            keras.layers.Dense(1, name="out"),
        ]
    )


def other_model() -> Any:
    import keras

    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, name="only")])


def study() -> AblationStudy:
    made = AblationStudy("titanic_train_dataset", 1, label_name="survived", dataset_generator=lambda epochs, size: size)
    made.features.include("pclass", ["fare", "sex"])
    made.features.exclude("sex")
    made.model.layers.include("my_dense_two")
    made.model.layers.include_groups(["my_dense_one", "drop"], prefix="my_dense")
    made.model.set_base_model_generator(base_model)
    made.model.add_custom_model_generator(other_model, "small")
    return made


def names_of(model: Any) -> list[str]:
    return [layer.name for layer in model.layers]


def test_each_trial_trains_what_it_says() -> None:
    trained: dict[tuple[str, str], list[str]] = {}

    def train(
        dataset_function: Any, model_function: Any, ablated_feature: str, ablated_layer: str, reporter: Any
    ) -> Any:
        model = model_function()
        trained[ablated_feature, ablated_layer] = names_of(model)
        assert dataset_function(5, 10) == 10
        assert model(np.zeros((2, 4), "float32")).shape == (2, 1)
        reporter.broadcast(len(model.layers))
        return {"acc": len(model.layers)}

    made = study()
    result = experiment.lagom(train, AblationConfig(made, "loco", direction="max", name="titanic"), **HERE)
    whole = ["my_dense_one", "my_dense_two", "drop", "out"]
    assert trained == {
        ("None", "None"): whole,
        ("pclass", "None"): whole,
        ("fare", "None"): whole,
        ("None", "my_dense_two"): ["my_dense_one", "drop", "out"],
        ("None", "Layers prefixed my_dense"): ["drop", "out"],
        ("None", "['drop', 'my_dense_one']"): ["my_dense_two", "out"],
        ("None", "Custom model: small"): ["only"],
    }
    assert result["num_trials"] == LOCO(made).get_number_of_trials() == 7
    assert result["worst_config"] == {"ablated_feature": "None", "ablated_layer": "Custom model: small"}
    assert result["worst_id"] == Trial(result["worst_config"], "ablation").trial_id
    table = own.load(result["experiment_id"]).ablation()
    assert {row.component for row in table} >= {"feature fare", "layer my_dense_two", "Custom model: small"}


def test_a_study_of_0_3_is_given_by_keywords_and_may_be_repeated() -> None:
    made = AblationStudy("", 1, "y", dataset_generator=print)
    made.features.include("a")
    made.model.set_base_model_generator(other_model)

    def train(dataset_function: Any, model_function: Any) -> float:
        return float(len(names_of(model_function())))

    result = experiment.lagom(
        map_fun=train, experiment_type="ablation", ablation_study=made, ablator="loco", name="x", repeats=2, **HERE
    )
    assert (result["num_trials"], result["best_val"]) == (4, 1.0)


def test_the_first_and_the_last_layer_stay_and_a_wrong_name_is_told() -> None:
    import keras

    assert names_of(model_without(base_model, "my_dense_one")) == ["my_dense_two", "drop", "out"]
    with pytest.raises(ValueError, match="'out' is the first or the last layer"):
        model_without(base_model, "out")
    with pytest.raises(ValueError, match=r"no layer 'my_dense_tow'\. Did you mean 'my_dense_two'"):
        model_without(base_model, ("my_dense_tow", "drop"))
    with pytest.raises(ValueError, match="begins with 'conv'"):
        model_without(base_model, ("conv",))

    def without_input() -> Any:
        return keras.Sequential([keras.layers.Dense(2, name=name) for name in ("first", "second", "third")])

    assert names_of(model_without(without_input, "second")) == ["first", "third"]
    with pytest.raises(ValueError, match="'first' is the first or the last"):
        model_without(without_input, "first")

    def branching() -> Any:
        given = keras.Input((4,))
        return keras.Model(given, keras.layers.Dense(1)(given))

    with pytest.raises(ValueError, match="add_custom_model_generator"):
        model_without(branching, "dense")


def test_an_ablator_of_the_users_own() -> None:
    class Pairs(AbstractAblator):
        def get_number_of_trials(self) -> int:
            return 2

        def get_dataset_generator(self, ablated_feature: str | None = None, dataset_type: str = "tfrecord") -> Any:
            return lambda: ablated_feature

        def get_model_generator(self, ablated_layer: Any = None) -> Any:
            return lambda: ablated_layer

        def initialize(self) -> None:
            for left_out in ("a+b", "b+c"):
                params = {
                    "ablated_feature": left_out,
                    "dataset_function": self.get_dataset_generator(left_out),
                    "model_function": self.get_model_generator(),
                }
                self.trial_buffer.append(Trial(params, trial_type="ablation"))

        def get_trial(self, ablation_trial: Trial | None = None) -> Trial | None:
            return self.trial_buffer.pop() if self.trial_buffer else None

        def finalize_experiment(self, trials: list[Trial]) -> None:
            self.looked_back = len(trials)

    ablator = Pairs(AblationStudy("", 1, "y"), [])

    def train(dataset_function: Any, model_function: Any) -> float:
        assert model_function() is None
        return float(dataset_function() == "a+b")

    result = experiment.lagom(train, AblationConfig(ablator.ablation_study, ablator), **HERE)
    assert result["best_config"]["ablated_feature"] == "a+b"
    assert (result["num_trials"], ablator.looked_back, len(ablator.final_store)) == (2, 2, 2)


def test_a_training_dataset_of_the_feature_store_is_read_without_a_feature() -> None:
    numbers = list(range(12))
    passengers = pa.table({"id": numbers, "age": [1.0 * n for n in numbers], "fare": [2.0 * n for n in numbers]})
    features.create_group("titanic", key="id").insert(passengers)
    view = features.create_view("titanic", features=["age", "fare"], label="survived")
    labels = pa.table({"id": numbers, "survived": [n % 2 for n in numbers]})
    view.create_training_dataset("titanic_train", labels, format="tfrecord")
    made = AblationStudy("titanic_train", 1, label_name="survived")
    made.features.include("fare")
    made.model.set_base_model_generator(other_model)
    shapes: dict[str, Any] = {}

    def train(dataset_function: Any, model_function: Any, ablated_feature: str) -> float:
        data = dataset_function(2, 4)
        batches = list(data)
        shapes[ablated_feature] = (len(batches), tuple(batches[0][0].shape), tuple(batches[0][1].shape))
        return 1.0

    experiment.lagom(train, AblationConfig(made), **HERE)
    assert shapes == {"None": (6, (4, 2), (4, 1)), "fare": (6, (4, 1), (4, 1))}


def test_a_study_is_described_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    made = study()
    told = made.to_dict()
    assert told["included_features"] == ["pclass", "fare"]
    assert (told["included_layers"], told["custom_models"]) == (["my_dense_two"], ["small"])
    assert told["custom_dataset_generator"] is True
    made.features.list_all()
    made.model.layers.print_all()
    made.model.layers.print_all_groups()
    out = capsys.readouterr().out
    assert "pclass\nfare\nmy_dense_two\n" in out
    assert 'All layers prefixed "my_dense"' in out


def test_mistakes_in_a_study_are_told() -> None:
    made = study()
    with pytest.raises(ValueError, match="received 5"):
        made.features.include(5)
    with pytest.raises(ValueError, match=r"layers\.include\(\)"):
        made.model.layers.include_groups(["one"])
    with pytest.raises(ValueError, match="prefix must be a str"):
        made.model.layers.include_groups(prefix=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ablator: lco"):
        experiment.lagom(print, AblationConfig(made, "lco"), **HERE)
    with pytest.raises(ValueError, match="AblationStudy"):
        experiment.lagom(print, AblationConfig(None), **HERE)
    with pytest.raises(ValueError, match="training dataset"):
        experiment.lagom(print, AblationConfig(AblationStudy()), **HERE)
