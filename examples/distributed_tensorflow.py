"""Train with TensorFlow on several workers: mirrored variables, or TensorFlow's own parameter servers.

TF_CONFIG is set for every rank. Keras 3's `model.fit` does not run under these strategies; a loop of one's own does.

    $ python examples/distributed_tensorflow.py --strategy mirrored
    $ python examples/distributed_tensorflow.py --strategy ps
"""

from __future__ import annotations

import argparse

from cargobike import experiment, trial


def train_mirrored(lr: float, steps: int) -> dict[str, float]:
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weights = tf.Variable(tf.zeros([4, 1]))

    @tf.function
    def step(x, y):
        def on_replica(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x @ weights - y))
            gradient = tape.gradient(loss, weights)
            context = tf.distribute.get_replica_context()
            weights.assign_sub(lr * context.all_reduce(tf.distribute.ReduceOp.MEAN, gradient))
            return loss

        return strategy.reduce(tf.distribute.ReduceOp.MEAN, strategy.run(on_replica, args=(x, y)), axis=None)

    for number in range(steps):
        x = tf.random.stateless_uniform([32, 4], seed=[number, trial.rank])
        loss = step(x, tf.reduce_sum(x, axis=1, keepdims=True))
        trial.report(loss=float(loss), step=number)
    return {"loss": float(loss), "weights": float(tf.reduce_sum(weights))}


def train_with_servers(lr: float, steps: int) -> dict[str, float] | None:
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        tf.distribute.Server(
            resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
        ).join()  # for ever: the experiment ends it when the chief has returned
        return None
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weights = tf.Variable(tf.zeros([4, 1]))

    @tf.function
    def step(number):
        def on_worker(number):
            x = tf.random.stateless_uniform([32, 4], seed=tf.stack([number, 0]))
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x @ weights - tf.reduce_sum(x, axis=1, keepdims=True)))
            weights.assign_sub(lr * tape.gradient(loss, weights))
            return loss

        return strategy.run(on_worker, args=(number,))

    for number in range(steps):
        value = coordinator.schedule(step, args=(tf.constant(number),))
    coordinator.join()
    return {"loss": float(value.fetch()), "weights": float(tf.reduce_sum(weights))}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strategy", choices=["mirrored", "ps"], default="mirrored")
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    params = {"lr": 0.3, "steps": options.steps}
    if options.strategy == "mirrored":
        run = experiment.allreduce(train_mirrored, params=params, workers=2, metric="loss")
    else:
        roles = {"chief": 1, "worker": 2, "ps": 1}
        run = experiment.allreduce(train_with_servers, params=params, roles=roles, metric="loss")
    print(f"loss {run.value:.4f}")
    print(f"weights {run.values[0]['weights']:.3f}")
