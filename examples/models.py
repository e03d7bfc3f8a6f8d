"""Search, register the best trial, and promote it if it is better than the champion.

Run it twice: the second time there is a champion to beat.
"""

from __future__ import annotations

from cargobike import experiment, models
from cargobike.errors import GateError


def train(slope: float) -> dict[str, float]:
    """Try a slope of a line whose true slope is 2."""
    return {"error": abs(slope - 2.0)}


def main() -> None:
    result = experiment.launch(
        train,
        {"slope": ("DOUBLE", [0.0, 4.0])},
        optimizer="random",
        num_trials=8,
        metric="error",
        direction="min",
        workers=2,
    )
    assert result.best is not None
    slope = result.best.params["slope"]

    def predict(rows: list[float]) -> list[float]:
        return [slope * row for row in rows]

    version = result.best.register("line", predict, example=[1.0, 2.0], description="A line through the origin.")
    print(f"registered {version.name}:{version.version}, error {version.metrics['error']:.3f}")
    try:
        promotion = version.promote("champion", when="error <= champion.error")
        print(f"champion is version {promotion.version}. {promotion.remark}")
    except GateError as error:
        print(error)
    champion = models.get("line@champion")
    print(f"made by {champion.training.experiment}, trial {champion.training.trial}: {champion.predict([10.0])}")


if __name__ == "__main__":
    main()
