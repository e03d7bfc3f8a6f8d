"""The contrast: what is kept between suggestions and what is left out change nothing."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cargobike.search.models.contrast import Contrast
from cargobike.search.models.standing import LAST, Standing
from cargobike.search.spaces.encoding import Encoding, Floats
from cargobike.search.spaces.space import Searchspace

ENCODING = Encoding(
    Searchspace(
        m=["a", "b"],
        x=("DOUBLE", [0.0, 1.0]),
        n=("INTEGER", [1, 9]),
        y=("DOUBLE", [0.0, 1.0], {"when": {"m": "a"}}),
    )
)


def trials(count: int) -> list[tuple[Floats, Standing]]:
    rng = random.Random(count)
    rows = [ENCODING.row(ENCODING.space.sample(rng)) for _ in range(count)]
    return [(row, (0.0, round(rng.random(), 2)) if rng.random() < 0.9 else LAST) for row in rows]


def contrast_of(known: list[tuple[Floats, Standing]]) -> Contrast:
    contrast = Contrast(ENCODING)
    for row, stands in known:
        contrast.learn(row, stands)
    return contrast


@pytest.mark.parametrize("good", [None, 3])
def test_a_contrast_that_was_asked_before_answers_like_a_new_one(good: int | None) -> None:
    known = trials(60)
    asked = contrast_of(known[:10])
    for count in range(10, len(known)):
        new = contrast_of(known[:count])
        probe = ENCODING.settle(np.random.default_rng(count).random((5, ENCODING.width)))
        assert np.array_equal(asked.gains(probe), new.gains(probe))
        answers = [contrast.candidates(7, None, np.random.default_rng(1), good=good) for contrast in (asked, new, new)]
        assert all(np.array_equal(answers[0], answer, equal_nan=True) for answer in answers)
        asked.learn(*known[count])


def test_as_many_good_ones_among_fewer_trials_are_not_mistaken_for_the_same() -> None:
    contrast = contrast_of([(row, (0.0, float(place))) for place, (row, _) in enumerate(trials(4))])
    rows = ENCODING.settle(np.random.default_rng(1).random((50, ENCODING.width)))
    few = contrast._densities(None, 3)[0].log_density(rows)
    assert not np.allclose(few, contrast._densities(None, 4)[0].log_density(rows))


@pytest.mark.parametrize("running", [0, 1, 40, 900])
@pytest.mark.parametrize("count", [30, 495, 700, 3000])
def test_bad_trials_are_thinned_out_evenly(count: int, running: int) -> None:
    known = trials(count)
    contrast = contrast_of(known)
    good = sorted(random.Random(running).sample(range(count), 9))
    others = np.array([row for row, _ in trials(running)]) if running else None
    bad = [row for index, (row, _) in enumerate(known) if index not in good] + [row for row, _ in trials(running)]
    wanted = np.array(bad)
    if len(bad) > 500:
        wanted = wanted[np.linspace(0, len(bad) - 1, 500).astype(np.intp)]
    assert np.array_equal(contrast._bad(good, others), wanted, equal_nan=True)
