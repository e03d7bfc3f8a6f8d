"""Says what to use in place of workers of tf.data that serve ranks."""

from __future__ import annotations

from typing import NoReturn

from cargobike.core.errors import InvalidInputError


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise InvalidInputError(
        f"horovod.tensorflow.data.compute_service.{name} is not supported: ranks read their own share of the data.",
        [
            "experiment.allreduce(train, data=table, workers=4), and in train data.Loader(data).as_tf_dataset()",
            "or dataset.shard(hvd.size(), hvd.rank()) as in other programs for Horovod",
        ],
    )
