"""Data that moves away from what a model was trained on, judged window by window.

python examples/drift.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from cargobike import monitoring

WINDOW = 500
random = np.random.default_rng(7)


def measure(rows: int, warmer: float = 0.0, bound: float = 0.0) -> dict[str, Any]:
    """Return what sensors of machines measured: sensors that age show more, pumps that leak bind two of them."""
    temperature = random.normal(60, 5, rows)
    pressure = bound * (temperature - 60) / 5 + np.sqrt(1 - bound**2) * random.normal(0, 1, rows)
    return {
        "temperature": temperature + warmer,
        "pressure": 3 + 0.2 * pressure,
        "hours": random.exponential(1000, rows),
        "site": random.choice(["Bergen", "Turin", "Ghent"], rows),
    }


def judge_windows() -> None:
    """Judge twelve windows: usual ones, ones from an ageing sensor, and ones in which only a correlation changed."""
    reference = monitoring.Reference(measure(20_000), window=WINDOW, false_alarms=0.01)
    windows = [measure(WINDOW) for _ in range(6)]
    windows += [measure(WINDOW, warmer=1.5) for _ in range(3)]
    windows += [measure(WINDOW, bound=0.6) for _ in range(3)]
    judgements = [reference.judge(window) for window in windows]
    for number, judgement in enumerate(judgements, 1):
        moved = ", ".join(shift.feature for shift in judgement.features)
        print(f"window {number}: {'ALARM' if judgement.alarm else 'as usual'} {moved}")
    policy = monitoring.Policy.parse("3 of 5")
    since = policy.since(judgement.alarm for judgement in judgements)
    if since is not None:
        print(f"alarm since window {since + 1}")
    print(judgements[6])


def find_change() -> None:
    """Bring labels that come late to their predictions, and look for a change in the errors."""
    predictions = pa.table({"request_id": range(1000), "prediction": [0] * 1000})
    truth = random.random(1000) < np.where(np.arange(1000) < 650, 0.1, 0.5)
    labels = pa.table({"request_id": range(1000), "label": truth.astype(int)})
    labelled = monitoring.join_labels(predictions, labels)
    errors = np.abs(labelled.rows["prediction"].to_numpy() - labelled.rows["label"].to_numpy())
    for point in monitoring.ChangePoints().update(errors.astype(float).tolist()):
        print(f"errors changed since request {point.since}: from {point.before:.2f} to {point.after:.2f}")


if __name__ == "__main__":
    judge_windows()
    find_change()
