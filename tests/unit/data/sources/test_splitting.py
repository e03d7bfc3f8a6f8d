from __future__ import annotations

import csv
import io
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.data.sources import splitting
from cargobike.data.sources.splitting import RecordEnds, split

FIELD = st.text(st.sampled_from('ab ,"\n'), max_size=6)


def pieces_of(text: bytes, sizes: list[int]) -> list[bytes]:
    cuts: list[bytes] = []
    place = 0
    for size in itertools.cycle(sizes):
        if place >= len(text):
            return cuts
        cuts.append(text[place : place + size])
        place += size
    raise AssertionError


@given(
    st.lists(st.lists(FIELD, min_size=2, max_size=3), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
    st.lists(st.integers(1, 7), min_size=1, max_size=4),
    st.integers(1, 40),
)
def test_any_table_is_split_into_its_records_however_it_arrives(
    rows: list[list[str]], newline: str, sizes: list[int], target: int
) -> None:
    stream = io.StringIO(newline="")
    csv.writer(stream, lineterminator=newline).writerows(rows)
    text = stream.getvalue().encode()
    found = list(split(pieces_of(text, sizes), "a.csv", start=0, line=1, delimiter=",", target=target))
    assert sum(stretch.rows for stretch in found) == len(rows)
    assert b"".join(text[stretch.start : stretch.end] for stretch in found) == text
    read: list[list[str]] = []
    for stretch in found:
        part = text[stretch.start : stretch.end].decode()
        records = list(csv.reader(io.StringIO(part, newline="")))
        assert len(records) == stretch.rows
        assert stretch.first_line == 1 + text[: stretch.start].count(b"\n")
        read += records
    assert read == rows


@given(st.binary(max_size=60).map(lambda data: bytes(b'",\na'[byte % 4] for byte in data)), st.integers(1, 5))
def test_pieces_are_judged_as_the_whole_is(text: bytes, size: int) -> None:
    whole = RecordEnds(",").find(np.frombuffer(text, np.uint8)).tolist()
    finder, found = RecordEnds(","), []
    for place in range(0, len(text), size):
        found += (finder.find(np.frombuffer(text[place : place + size], np.uint8)) + place).tolist()
    assert found == whole == one_by_one(text)


def one_by_one(text: bytes) -> list[int]:
    """The rule, told byte by byte."""
    ends, inside, begins, closed = [], False, True, False
    for place, byte in enumerate(text):
        if byte == ord('"'):
            if inside:
                inside, closed = False, True
                begins = False
                continue
            if begins or closed:
                inside = True
        elif byte == ord("\n") and not inside:
            ends.append(place + 1)
        begins, closed = byte in b",\n", False
    return ends


def test_empty_lines_are_no_records() -> None:
    text = b"\n\na,b\r\n\r\n\nc,d"
    (stretch,) = split([text], "a.csv", start=0, line=5, delimiter=",", target=1000)
    assert stretch == (0, len(text), 2, 5)


def test_a_quote_that_never_closes_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"a\.csv, line 3: a quoted value never ends"):
        list(split([b'a,b\nc,d\ne,"f\n', b"g,h\n"], "a.csv", start=0, line=1, delimiter=",", target=1000))


def test_a_line_that_is_too_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "LONGEST_RECORD", 10)
    with pytest.raises(InvalidInputError, match=r"a\.csv, line 2: the line is longer than"):
        list(split([b"a,b\nccccccccccccccc"], "a.csv", start=0, line=1, delimiter=None, target=1000))
