"""Values are kept exactly, in an open form where there is one, and what cannot be kept is named."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.core.layout import ProjectFolder
from cargobike.errors import InvalidInputError, StoreError
from cargobike.pipelines.values.keeping import keep, restore

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=10,
)


@dataclass
class Point:
    x: int
    y: Any


def again(value: Any, folder: Path) -> Any:
    return restore(keep(value, folder, "steps/1/result"), folder, ProjectFolder(folder))


@settings(max_examples=40)
@given(value=PLAIN)
def test_plain_data_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    restored = again(value, tmp_path_factory.getbasetemp())

    assert restored == value
    assert type(restored) is type(value)


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (list(range(5000)), "json"),
        (math.inf, "plain"),
        (2**70, "pickle"),
        ("\ud800", "pickle"),
        (np.float64(0.5), "pickle"),
        (np.zeros((2, 3), "float32"), "numpy"),
        (np.array(["a", None], dtype=object), "pickle"),
        (pa.table({"x": [1, None]}), "arrow"),
        (pd.DataFrame({"x": [1, 2], "when": pd.to_datetime(["2026-01-01", "2026-01-02"])}), "frame"),
        (pd.DataFrame({"x": [object(), 1]}), "pickle"),
        (Point(1, {2}), "pickle"),
    ],
)
def test_each_value_has_its_form(tmp_path: Path, value: Any, form: str) -> None:
    kept = keep(value, tmp_path, "steps/1/result")
    restored = restore(kept, tmp_path, ProjectFolder(tmp_path))

    assert kept.form == form
    assert type(restored) is type(value)
    assert kept.digest
    if form not in ("pickle", "frame"):
        assert (restored == value) if isinstance(value, (list, float)) else restored.shape == value.shape
    elif form == "frame":
        pd.testing.assert_frame_equal(restored, value)


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ({"a": [1, threading.Lock()]}, r"What it returned\['a'\]\[1\] is a _thread.lock, which cannot be kept"),
        (Point(1, (n for n in "ab")), r"What it returned\.y is a builtins.generator"),
        (open, None),
    ],
)
def test_what_cannot_be_kept_is_named(tmp_path: Path, value: Any, match: str | None) -> None:
    if match is None:
        assert again(value, tmp_path) is open
        return
    with pytest.raises(InvalidInputError, match=match + r"(.|\n)*Return what is needed to make it again"):
        keep(value, tmp_path, "result")
    assert not list(tmp_path.rglob("*.pickle"))


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    kept = keep(np.arange(3), tmp_path, "result")
    path = tmp_path / kept.path
    path.write_bytes(path.read_bytes()[:-1] + b"!")

    with pytest.raises(StoreError, match="was changed after it was kept"):
        restore(kept, tmp_path, ProjectFolder(tmp_path))
    path.unlink()
    with pytest.raises(StoreError, match="cannot be read"):
        restore(kept, tmp_path, ProjectFolder(tmp_path))
