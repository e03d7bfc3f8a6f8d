"""Notebooks as plain JSON: the Python that runs Airflow has no library for them."""

from __future__ import annotations

import json
from pathlib import Path


def write_notebook(path: Path, parameters: str, *cells: str) -> Path:
    """Write a notebook whose first cell is tagged `parameters`."""
    made = [_cell(parameters, ["parameters"]), *(_cell(text, []) for text in cells)]
    path.write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))
    return path


def printed(path: Path) -> str:
    """Return what the cells of a notebook have printed."""
    cells = json.loads(path.read_text())["cells"]
    return "".join("".join(output.get("text", [])) for cell in cells for output in cell.get("outputs", []))


def _cell(text: str, tags: list[str]) -> dict[str, object]:
    return {"cell_type": "code", "source": text, "metadata": {"tags": tags}, "outputs": [], "execution_count": None}
