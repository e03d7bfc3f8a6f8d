"""Pipelines of the tests."""

from __future__ import annotations

from pathlib import Path

from cargobike import pipelines


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
