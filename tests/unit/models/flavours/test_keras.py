"""Models of Keras that hold code."""

from __future__ import annotations

from pathlib import Path

import pytest

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.models.flavours.flavour import Saved
from cargobike.models.flavours.registry import load, save

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),  # TensorFlow's own
]


def test_a_lambda_in_a_model_is_code(tmp_path: Path) -> None:
    import keras

    model = keras.Sequential([keras.Input((2,)), keras.layers.Lambda(lambda points: points * 2)])
    saved = save(model, tmp_path / "model")
    assert saved.runs_code
    assert load(saved, tmp_path / "model")([[1.0, 2.0]]) == [[2.0, 4.0]]
    with pytest.raises(StoreError, match=r"model.keras .* cannot be read: .*[Ll]ambda"):
        load(Saved(flavour="keras", details=saved.details), tmp_path / "model")


def test_fields_are_inputs_by_name_and_a_file_can_be_given(tmp_path: Path) -> None:
    import keras

    points, scale = keras.Input((2,), name="points"), keras.Input((), name="scale", dtype="int32")
    outputs = {"first": keras.layers.Dense(1, kernel_initializer="ones")(points), "scale": scale}
    keras.Model([points, scale], outputs).save(tmp_path / "given.keras")
    saved = save(tmp_path / "given.keras", tmp_path / "model")
    assert not saved.runs_code
    answers = load(saved, tmp_path / "model")([{"points": [1.0, 2.0], "scale": 3}, {"points": [1, 1], "scale": 4}])
    assert answers == [{"first": [3.0], "scale": 3}, {"first": [2.0], "scale": 4}]
    with pytest.raises(InvalidInputError, match="There is no file"):
        save(tmp_path / "absent.keras", tmp_path / "other")
