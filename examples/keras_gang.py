"""Train a Keras 3 model with a gang of two: `fit` as usual, gradients averaged over all ranks.

python examples/keras_gang.py                       # Keras on TensorFlow
python examples/keras_gang.py --backend torch
"""

from __future__ import annotations

import argparse

from cargobike import experiment, trial


def train(backend: str, epochs: int) -> float:
    import os

    os.environ["KERAS_BACKEND"] = backend
    import keras
    from sklearn.datasets import load_digits

    import cargobike.keras

    x, y = load_digits(return_X_y=True)
    x = x.astype("float32") / 16
    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(96, activation="relu"), keras.layers.Dense(10)])
    model.compile(
        optimizer=keras.optimizers.Adam(3e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    cargobike.keras.prepare(model)  # before fit: all ranks get rank 0's weights, and gradients are averaged
    mine, labels = cargobike.keras.shard(x[:1400], y[:1400])
    model.fit(mine, labels, batch_size=32, epochs=epochs, verbose=0)
    _, accuracy = model.evaluate(x[1400:], y[1400:], verbose=0)
    return float(trial.all_reduce(accuracy))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="tensorflow")
    parser.add_argument("--epochs", type=int, default=5)
    run = experiment.allreduce(train, params=vars(parser.parse_args()), workers=2)
    print(f"accuracy {run.value:.3f}, by rank {run.values}")
