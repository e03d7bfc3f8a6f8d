"""Judge windows with a peer, in its own venv: python drift_peers.py PEER WINDOWS ROWS; answers with a line of JSON.

Alarms of peers that compare columns are corrected as their documents say (Bonferroni). Imports nothing of ours.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from drawn import COLUMNS, KINDS, errors, usual

REFERENCE_ROWS = 100_000
SAMPLE_ROWS = 1000
"""How many rows of the reference tests by permutation are given: their time grows with the square."""


def alibi_ks(reference: Any) -> Callable[[Any], bool]:
    """Return a judge by alibi-detect's Kolmogorov-Smirnov test of each column."""
    from alibi_detect.cd import KSDrift

    detector = KSDrift(reference, p_val=0.05)
    return lambda window: bool(detector.predict(window)["data"]["is_drift"])


def frouros_ks(reference: Any) -> Callable[[Any], bool]:
    """Return a judge by frouros' Kolmogorov-Smirnov test of each column."""
    from frouros.detectors.data_drift import KSTest

    detectors = [KSTest() for _ in range(COLUMNS)]
    for column, detector in enumerate(detectors):
        detector.fit(X=reference[:, column])

    def judge(window: Any) -> bool:
        tests = [detector.compare(X=window[:, column])[0] for column, detector in enumerate(detectors)]
        return bool(min(test.p_value for test in tests) <= 0.05 / COLUMNS)

    return judge


def frouros_mmd(reference: Any) -> Callable[[Any], bool]:
    """Return a judge by frouros' maximum mean discrepancy, with a test by permutation."""
    from functools import partial

    from frouros.callbacks import PermutationTestDistanceBased
    from frouros.detectors.data_drift import MMD
    from frouros.utils.kernels import rbf_kernel

    test = PermutationTestDistanceBased(num_permutations=100, random_state=1, num_jobs=1, method="exact", name="test")
    detector = MMD(kernel=partial(rbf_kernel, sigma=float(np.sqrt(2 * COLUMNS))), callbacks=[test])
    detector.fit(X=reference[:SAMPLE_ROWS])

    def judge(window: Any) -> bool:
        _, logs = detector.compare(X=window)
        return bool(logs["test"]["p_value"] <= 0.05)

    return judge


def evidently_ks(reference: Any) -> Callable[[Any], bool]:
    """Return a judge by evidently's report on drift, with its Kolmogorov-Smirnov test of each column."""
    import pandas as pd
    from evidently import Report
    from evidently.metrics import ValueDrift

    names = [f"f{column}" for column in range(COLUMNS)]
    usual_rows = pd.DataFrame(reference, columns=names)

    def judge(window: Any) -> bool:
        metrics = [ValueDrift(column=name, method="ks", threshold=0.05 / COLUMNS) for name in names]
        made = Report(metrics).run(pd.DataFrame(window, columns=names), usual_rows)
        values = [float(metric["value"]) for metric in made.dict()["metrics"]]
        return min(values) <= 0.05 / COLUMNS

    return judge


def river_adwin() -> dict[str, float]:
    """Find a change in streams of errors with river's ADWIN."""
    from river.drift import ADWIN

    random = np.random.default_rng(3)
    detector, values = ADWIN(), errors(200_000, random).tolist()
    began = time.process_time()
    for value in values:
        detector.update(value)
    taken_s = time.process_time() - began
    delays, false = [], 0
    for _ in range(50):
        detector = ADWIN()
        for place, value in enumerate(errors(4000, random).tolist()):
            detector.update(value)
            if detector.drift_detected:
                if place < 2000:
                    false += 1
                else:
                    delays.append(place - 2000)
                    break
    return {"values_per_s": 200_000 / taken_s, "delay": float(np.median(delays)), "found": len(delays), "false": false}


def processor_s() -> float:
    """Return the processor time of this process and of those that it started and that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


JUDGES = {"alibi-ks": alibi_ks, "frouros-ks": frouros_ks, "frouros-mmd": frouros_mmd, "evidently-ks": evidently_ks}


def main() -> None:
    peer, windows, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if peer == "river-adwin":
        print(json.dumps(river_adwin()))
        return
    random = np.random.default_rng(1)
    judge = JUDGES[peer](usual(REFERENCE_ROWS, random))
    judge(usual(rows, random))
    answer: dict[str, float] = {}
    cpu_s = 0.0
    for kind, draw in KINDS.items():
        alarms = 0
        for _ in range(windows):
            window = draw(rows, random)
            began = processor_s()
            alarms += judge(window)
            cpu_s += processor_s() - began
        answer[kind] = alarms / windows
    answer["cpu_ms"] = 1000 * cpu_s / (windows * len(KINDS))
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
