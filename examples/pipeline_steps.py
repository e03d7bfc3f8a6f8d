"""A pipeline of steps and our own calls: it fails half-way, is resumed, and does nothing twice.

Run it, and look at it afterwards with `cargobike pipelines show` and `cargobike pipelines graph`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cargobike import models, pipelines
from cargobike.errors import StepFailedError


@pipelines.step
def prepare(rows: int) -> list[float]:
    """Make data; in earnest this would read it."""
    print(f"preparing {rows} rows")
    return [row / rows for row in range(rows)]


@pipelines.step(retries=1, timeout="1m", cache=True)
def train(data: list[float], slope: float) -> dict[str, float]:
    """Try one slope of a line whose true slope is 2."""
    error = sum((slope * x - 2.0 * x) ** 2 for x in data)
    return {"slope": slope, "error": error}


@pipelines.step
def check(best: dict[str, float], approved: str) -> dict[str, float]:
    """Wait for a person: fail until there is a file."""
    if not Path(approved).exists():
        raise RuntimeError("not approved yet")
    return best


def retrain(approved: str, rows: int = 100) -> Any:
    """Train several models beside each other, and register the best one once it is approved."""
    data = prepare(rows)
    tried = [train(data, slope) for slope in (1.0, 1.9, 2.5)]
    best = min((one.result() for one in tried), key=lambda one: one["error"])
    slope = check(best, approved)["slope"]

    def predict(rows: list[float]) -> list[float]:
        return [slope * row for row in rows]

    return models.register("line", predict, metrics={"error": best["error"]})


def main() -> None:
    approved = Path("approved").absolute()
    try:
        pipelines.run(retrain, approved=str(approved))
    except StepFailedError as error:
        print(f"step {error.step} ({error.name}) failed: {error.traceback.splitlines()[-1]}")
    approved.touch()
    run = pipelines.resume("last")
    print(run.state, run.result.reference)
    for step in run.steps:
        print(step.number, step.name, step.state, f"attempt {step.attempt}")


if __name__ == "__main__":
    main()
