"""What needs no Spark: parameters, and what a saved state is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cargobike.core.errors import InvalidInputError, SignatureError, StoreError
from cargobike.estimators.saved_state import SavedState, batch_function, check_trusted, trusting
from cargobike.spark import Estimator
from cargobike.store.files.storages import open_storage
from support.price_functions import predict, train


def test_parameters_of_the_function_are_params() -> None:
    estimator = Estimator(train, predict, alpha=0.5)
    assert [param.name for param in estimator.params] == ["alpha", "predictionCol"]
    assert estimator.getOrDefault("alpha") == 0.5
    other = estimator.copy({estimator.alpha: 2.0})
    assert (other.getOrDefault(other.alpha), estimator.getOrDefault("alpha")) == (2.0, 0.5)
    with pytest.raises(SignatureError, match=r"'alhpa' is unknown\. Did you mean 'alpha'\?"):
        Estimator(train, predict, alhpa=1)

    def fits(data: Any, fit: int = 1) -> float:
        return 0.0

    with pytest.raises(SignatureError, match="'fit' is a setting of the estimator"):
        Estimator(fits, predict)


def test_what_runs_code_needs_a_yes() -> None:
    with pytest.raises(InvalidInputError, match=r"hdfs://x holds Python functions or pickles(.|\n)*do something else"):
        check_trusted("hdfs://x", False, "do something else")
    check_trusted("hdfs://x", True, "")
    with trusting():
        check_trusted("hdfs://x", False, "")
    with pytest.raises(InvalidInputError, match="Python functions"):
        check_trusted("hdfs://x", False, "")


def test_a_state_of_files_is_kept_and_travels(tmp_path: Path) -> None:
    state = SavedState("folder", "model", {"model/a.txt": b"1.5", "model/deep/b.txt": b"2.5"})
    storage = open_storage(tmp_path / "saved")
    state.write(storage)
    again = SavedState.read(storage, state.described())
    assert again == state
    assert not again.runs_code

    def read(model: Path, batch: list[int]) -> list[float]:
        return [float((model / "deep" / "b.txt").read_text())] * len(batch)

    assert batch_function(read, again, again.load())([1, 2]) == [2.5, 2.5]
    storage.delete("state/model/a.txt")
    with pytest.raises(StoreError, match=r"lacks its file state/model/a\.txt"):
        SavedState.read(storage, state.described())
    with pytest.raises(StoreError, match=r"names a file outside of it: '\.\./x'"):
        SavedState.read(storage, {"kind": "file", "entry": "x", "files": ["../x"]})


def test_bytes_are_what_they_are() -> None:
    state = SavedState("bytes", "state.bin", {"state.bin": b"abc"})
    assert state.load() == b"abc"
    assert batch_function(lambda model, batch: [model] * len(batch), state, state.load())([0]) == [b"abc"]
