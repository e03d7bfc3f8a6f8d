"""Functions, classes and objects: what travels with them, what they may return, how they stream."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cargobike.core.errors import InvalidInputError, PredictionError
from cargobike.models.flavours.registry import load, save
from support.scripts import run_script


class Counting:
    """Is made where it is loaded."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls = 0

    def __call__(self, rows: list[Any]) -> list[int]:
        with self.lock:
            self.calls += 1
            return [self.calls] * len(rows)


class Talking:
    def predict(self, rows: list[str]) -> list[str]:
        return [row.upper() for row in rows]

    def stream(self, row: str) -> Iterator[str]:
        yield from row.upper()


def test_a_class_is_made_when_it_is_loaded(tmp_path: Path) -> None:
    predictor = load(save(Counting, tmp_path / "model"), tmp_path / "model")
    assert predictor([1, 2]) == [1, 1]
    assert predictor([1]) == [2]
    with pytest.raises(InvalidInputError, match=r"Counting cannot be saved: .*lock.* give a class"):
        save(Counting(), tmp_path / "object")
    with pytest.raises(InvalidInputError, match="neither a method predict nor __call__"):
        save(threading.Event, tmp_path / "event")


def test_a_model_that_streams_yields_plain_pieces(tmp_path: Path) -> None:
    predictor: Any = load(save(Talking(), tmp_path / "model"), tmp_path / "model")
    assert predictor(["ab"]) == ["AB"]
    assert list(predictor.stream("ab")) == ["A", "B"]
    plain = load(save(lambda rows: rows, tmp_path / "plain"), tmp_path / "plain")
    assert not hasattr(plain, "stream")


def test_a_wrong_number_of_answers_is_told(tmp_path: Path) -> None:
    predictor = load(save(lambda rows: rows[:1], tmp_path / "model"), tmp_path / "model")
    with pytest.raises(PredictionError, match="given 3 rows and returned 1 answer"):
        predictor([1, 2, 3])


def test_modules_of_the_user_travel_along(tmp_path: Path) -> None:
    (tmp_path / "here" / "parts").mkdir(parents=True)
    (tmp_path / "here" / "parts" / "__init__.py").write_text("")
    (tmp_path / "here" / "parts" / "rates.py").write_text("RATE = 3\ndef rate(row):\n    return RATE * row\n")
    (tmp_path / "here" / "pricing.py").write_text(
        "from functools import cache\nfrom parts.rates import rate\n"
        "@cache\ndef price(row):\n    return rate(row) + 1\n"
        "class Pricing:\n    def predict(self, rows):\n        return [price(row) for row in rows]\n"
    )
    libraries = run_script(
        tmp_path / "here",
        """
        import json
        from pathlib import Path
        import numpy as np
        from pricing import Pricing
        from cargobike.models.flavours.registry import save
        saved = save(Pricing(), Path("../model"))
        def mean(rows):
            return [float(np.mean(row)) for row in rows]
        print(json.dumps(save(mean, Path("../mean")).libraries))
        """,
    )
    assert "numpy" in libraries
    answers = run_script(
        tmp_path / "elsewhere",
        """
        import json
        from pathlib import Path
        from cargobike.models.flavours.flavour import Saved
        from cargobike.models.flavours.registry import load
        saved = Saved(flavour="python", runs_code=True)
        print(json.dumps([load(saved, Path("../model"))([1, 2]), load(saved, Path("../mean"))([[1, 2]])]))
        """,
    )
    assert answers == [[4, 7], [1.5]]
