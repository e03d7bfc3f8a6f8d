"""Train with JAX on two processes that see each other's devices.

The coordinator's address is in the environment; JAX wants to be told the number of processes and which one this is.

    $ python examples/distributed_jax.py
"""

from __future__ import annotations

import argparse

from cargobike import experiment, trial


def train(lr: float, steps: int) -> dict[str, float]:
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(num_processes=trial.world_size, process_id=trial.rank)
    mesh = Mesh(jax.devices(), ("data",))
    split, same = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
    weights = jax.device_put(jnp.zeros(4), same)

    @jax.jit
    def step(weights, x):
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - x.sum(axis=1)) ** 2))(weights)
        return weights - lr * gradient, loss

    for number in range(steps):
        own = jax.random.uniform(jax.random.key(number * trial.world_size + trial.rank), (32, 4))
        x = jax.make_array_from_process_local_data(split, own)  # each process brings its share of the batch
        weights, loss = step(weights, x)
        trial.report(loss=float(loss), step=number)
    return {"loss": float(loss), "weights": float(weights.sum()), "devices": len(jax.devices())}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    run = experiment.allreduce(train, params={"lr": 0.3, "steps": options.steps}, workers=2, metric="loss")
    print(f"loss {run.value:.4f}")
    print(f"weights {run.values[1]['weights']:.3f}, devices {run.values[0]['devices']:.0f}")
