"""The same search with hyperopt's SparkTrials; run by the interpreter of an environment that has nothing of ours."""

from __future__ import annotations

import json
import os
import sys
import time

from hyperopt import SparkTrials, fmin, hp, rand
from pyspark.sql import SparkSession


def main(trials: int, trial_s: float) -> None:
    builder = SparkSession.builder
    for name, value in json.loads(os.environ["SETTINGS"]).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.parallelize(range(2), 2).count()

    def train(x: float) -> float:
        seconds = trial_s * float(os.environ.get("SLOWNESS", "1"))
        time.sleep(seconds)
        return seconds

    begun = time.monotonic()
    spark_trials = SparkTrials(parallelism=2, spark_session=session)
    fmin(train, hp.uniform("x", 0, 1), algo=rand.suggest, max_evals=trials, trials=spark_trials, show_progressbar=False)
    wall_s = time.monotonic() - begun
    print(json.dumps([wall_s, sum(spark_trials.losses())]))
    session.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
