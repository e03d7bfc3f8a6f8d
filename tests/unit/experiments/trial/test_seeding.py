from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import cargobike
from cargobike.experiments.trial.seeding import seed_everything


def draw_python() -> float:
    return random.random()


def draw_numpy() -> float:
    import numpy as np

    return float(np.random.random())


def draw_torch() -> float:
    import torch

    return float(torch.rand(()).item())


@pytest.mark.parametrize("draw", [draw_python, draw_numpy, draw_torch])
def test_the_same_seed_gives_the_same_numbers(draw: Callable[[], float]) -> None:
    draw()  # loads the library
    seed_everything(11)
    first = draw()
    seed_everything(11)
    assert draw() == first
    seed_everything(12)
    assert draw() != first


@pytest.mark.parametrize("seed", [0, -1, 2**32, 2**64 + 5, -(2**70)])
def test_any_integer_is_a_seed(seed: int) -> None:
    draw_numpy()
    draw_torch()
    assert {"random", "numpy", "torch"} <= set(seed_everything(seed))


def test_what_is_skipped_is_left_alone() -> None:
    draw_numpy()
    seed_everything(3)
    first = draw_numpy()
    seed_everything(3)
    later = seed_everything(99, skip={"numpy"})
    assert "numpy" not in later
    assert draw_numpy() == first


def test_nothing_is_imported_for_its_seed() -> None:
    program = (
        "import sys; from cargobike.experiments.trial.seeding import seed_everything; print(*seed_everything(1));"
        "assert not {'numpy', 'torch', 'tensorflow', 'jax'} & set(sys.modules)"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(cargobike.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["random"]
