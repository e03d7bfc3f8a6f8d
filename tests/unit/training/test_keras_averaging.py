"""Keras' `fit` in a gang, on the torch backend; TensorFlow's is run by the tests of the examples."""

from __future__ import annotations

import os
from typing import Any

import pytest

from support.rank_host import RankHost


def fit_in_both_ways() -> list[dict[str, Any]]:
    os.environ["KERAS_BACKEND"] = "torch"
    return [fit("model"), fit("optimizer")]


def fit(way: str) -> dict[str, Any]:
    import keras
    import numpy as np

    import cargobike.keras
    from cargobike.core.errors import InvalidInputError

    keras.utils.set_random_seed(int(os.environ["RANK"]))  # ranks begin with different weights
    data = np.random.default_rng(0)
    x = data.normal(size=(401, 8)).astype("float32")
    y = (x.sum(axis=1) > 0).astype("int32")
    begin = [keras.Input((8,))] if way == "model" else []
    model = keras.Sequential([*begin, keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2)])
    optimizer: Any = keras.optimizers.Adam(0.01)
    if way == "optimizer":
        with pytest.raises(InvalidInputError, match="timeout_s"):
            cargobike.keras.prepare(optimizer, timeout_s="soon")
        optimizer = cargobike.keras.prepare(optimizer, timeout_s="5m")
    with pytest.raises(InvalidInputError, match="a model without compile"):
        cargobike.keras.prepare(model)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    if way == "model":
        assert cargobike.keras.prepare(model) is model
    mine, labels = cargobike.keras.shard(x, y)
    history = model.fit(mine, labels, batch_size=25, epochs=3, verbose=0).history
    with pytest.raises(InvalidInputError, match="already been built"):
        cargobike.keras.prepare(model)
    weights = float(sum((w * np.arange(1, w.size + 1).reshape(w.shape)).sum() for w in model.get_weights()))
    return {"weights": weights, "accuracy": history["accuracy"][-1], "share": len(mine), "name": model.optimizer.name}


@pytest.mark.timeout(300)  # Keras takes long to import where others compute too
def test_ranks_that_begin_differently_end_alike(host: RankHost) -> None:
    ranks = host.ranks(fit_in_both_ways, deadline_s=250)
    for one, two in zip(*ranks, strict=True):
        assert one["weights"] == two["weights"]
        assert min(one["accuracy"], two["accuracy"]) > 0.8
        assert (one["share"], two["share"], one["name"].rstrip("_1")) == (200, 200, "adam")
