"""A served model that is watched: an alarm, labels that come late, and whether retraining was worth it.

python examples/watching.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cargobike import data, models, monitoring, serving

WINDOW = 200
random = np.random.default_rng(7)


def visits(rows: int, younger: float = 0.0) -> list[dict[str, Any]]:
    """Return visits to a shop."""
    ages, minutes = random.normal(45 - younger, 10, rows), random.exponential(5, rows)
    return [{"age": float(age), "minutes": float(time)} for age, time in zip(ages, minutes, strict=True)]


class Buys:
    """Predicts who buys: those above an age who stay."""

    def __init__(self, age: float) -> None:
        self.age = age

    def __call__(self, rows: list[dict[str, Any]]) -> list[int]:
        """Return 1 for each visit that ends with a purchase."""
        return [int(row["age"] > self.age and row["minutes"] > 2) for row in rows]


def truth(row: dict[str, Any]) -> int:
    """Return what turns out later: younger people have begun to buy."""
    return int(row["age"] > 30 and row["minutes"] > 2)


def main() -> None:
    """Serve, watch, be alarmed, retrain, compare."""
    table = data.write({"age": random.normal(45, 10, 3000), "minutes": random.exponential(5, 3000)}, "visits")
    models.register("buys", Buys(40), example=visits(3))
    with serving.deploy("shop", "buys:1", log={"flush_s": 0.1}) as deployment:
        with monitoring.watch("shop", table, window=WINDOW, alarm="2 of 3") as monitor:
            for younger in (0, 0, 15, 15):
                deployment.predict(visits(WINDOW, younger))
            record = monitor.wait(120, windows=4, alarms=1)
            alarm = record.alarms[0].raised
            print(f"{alarm.id}: {', '.join(sorted(moved.feature for moved in alarm.moved))} moved")
            monitor.acknowledge(alarm.id, note="the campaign for students")

        log = serving.read_log("shop")
        rows = [dict(zip(("age", "minutes"), both, strict=True)) for both in _inputs(log)]
        labels = {"request_id": log["request_id"], "row": log["row"], "label": [truth(row) for row in rows]}
        monitoring.labels("shop", labels)

        models.register("buys", Buys(30), example=visits(3))  # what retraining has found
        result = monitoring.compare("shop", champion="buys:1", challenger="buys:2")
        print(f"error {result.challenger_error:.3f} instead of {result.champion_error:.3f} on {result.rows} rows")
        if result.better:
            deployment.roll("buys:2")
            print("buys:2 serves")


def _inputs(log: Any) -> list[tuple[float, float]]:
    return list(zip(log["input.age"].to_pylist(), log["input.minutes"].to_pylist(), strict=True))


if __name__ == "__main__":
    main()
