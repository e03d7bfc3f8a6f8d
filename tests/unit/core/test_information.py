"""What is kept of values that are no numbers."""

from __future__ import annotations

from collections import OrderedDict
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from cargobike.core.values.information import MOST_BYTES, to_information


class Colour(StrEnum):
    RED = "red"


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class HostileDict(dict[str, int]):
    def items(self) -> Any:
        raise KeyError("gone")


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("m.pt", "m.pt"),
        (None, None),
        (True, True),
        (3, 3),
        (2.5, 2.5),
        (float("nan"), "nan"),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (Path("a/b"), "a/b"),
        (Colour.RED, "red"),
        ((1, "a", None), [1, "a", None]),
        (OrderedDict(a={1: "x"}), {"a": {"1": "x"}}),
        ("bad \udcff name", "bad \\udcff name"),
    ],
)
def test_plain_data_is_kept_as_it_is(value: object, kept: object) -> None:
    assert to_information(value) == kept


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (object(), "object (<object object at"),
        (np.zeros(5), "numpy.ndarray (array([0., 0., 0., 0., 0.]))"),
        (b"raw", "bytes (b'raw')"),
        (2**70, "int (1180591620717411303424)"),
        (Hostile(), "Hostile"),
        (HostileDict(a=1), "HostileDict ({'a': 1})"),
        ([["x" * 1500] * 50] * 2, "list ("),
    ],
    ids=lambda value: type(value).__qualname__,
)
def test_of_everything_else_a_description_is_kept(value: object, shown: str) -> None:
    kept = to_information(value)
    assert shown in kept
    assert kept.endswith(": only this description was kept")


def test_whatever_is_kept_is_small() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for value in ("x" * 10**6, list(range(10**5)), {str(number): number for number in range(10**5)}, endless):
        assert len(msgspec.msgpack.encode(to_information(value))) <= MOST_BYTES
    assert to_information(range(103))[-1] == "… 3 more"
    assert to_information(dict.fromkeys(range(103), 0))["…"] == "3 more"
