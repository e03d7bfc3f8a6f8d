"""Pipelines of the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cargobike import models, pipelines


def grow(folder: str) -> str:
    with Path(folder, "grown").open("a") as note:
        note.write("once ")
    return "flour"


def mill(grain: str, folder: str) -> str:
    if not Path(folder, "mill").exists():
        raise FileNotFoundError("the mill is not there")
    return f"{grain} bread"


def bake(folder: str) -> str:
    grain = pipelines.step(grow)(folder)
    return pipelines.step(mill)(grain, folder).result()


@pipelines.step
def load(rows: int) -> list[int]:
    return list(range(rows))


@pipelines.step
def score(data: list[int], rate: float) -> dict[str, float]:
    return {"score": rate * len(data)}


@pipelines.step
def keep(scores: list[dict[str, float]]) -> Any:
    best = max(one["score"] for one in scores)
    return models.register("scored", lambda rows: rows, metrics={"score": best})


@pipelines.step
def describe(model: Any, title: str) -> str:
    return f"{title} {model.reference} {model.metrics['score']:g}"


def search(rows: int) -> str:
    data = load(rows)
    model = keep(score.map([data, data], [0.1, 0.5]))
    return describe(model, "best").result()


def with_objects(rows: int) -> int:
    return pipelines.step(lambda rows: rows + 1, name="inner")(rows).result()
