"""Train a Keras 3 model on two processes with `model.fit` as it is, on the JAX backend.

Keras shards the batches itself (`keras.distribution.DataParallel`); every process is given the same data and seed.

    $ python examples/distributed_keras.py
"""

from __future__ import annotations

import argparse
import os

from cargobike import experiment, trial

os.environ["KERAS_BACKEND"] = "jax"  # before Keras is imported: workers import it before they call the function


def train(epochs: int) -> dict[str, float]:
    import jax

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(num_processes=trial.world_size, process_id=trial.rank)
    import keras
    import numpy as np

    assert keras.backend.backend() == "jax"
    assert len(jax.devices()) == trial.world_size
    keras.utils.set_random_seed(0)
    keras.distribution.set_distribution(keras.distribution.DataParallel(auto_shard_dataset=False))
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.SGD(0.3), loss="mse")
    x = np.random.default_rng(0).random((256, 4), dtype=np.float32)
    history = model.fit(x, x.sum(axis=1, keepdims=True), batch_size=64, epochs=epochs, verbose=0)
    loss = history.history["loss"][-1]
    trial.report(loss=loss, step=epochs)
    return {"loss": loss, "weights": float(sum(np.sum(w) for w in model.get_weights()))}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    run = experiment.allreduce(train, params={"epochs": options.epochs}, workers=2, metric="loss")
    print(f"loss {run.value:.4f}")
    print(f"weights {run.values[0]['weights']:.4f} and {run.values[1]['weights']:.4f}")
