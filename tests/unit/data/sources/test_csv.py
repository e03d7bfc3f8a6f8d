from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike import data
from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError
from cargobike.data.sources.csv import open_csv
from cargobike.data.sources.opening import open_again, open_source
from cargobike.data.sources.source import Source


def rows_of(source: Source, columns: list[str] | None = None) -> list[dict[str, Any]]:
    tables = [source.read(group, columns) for group in range(len(source.groups))]
    assert [table.num_rows for table in tables] == [group.rows for group in source.groups]
    return [row for table in tables for row in table.to_pylist()]


def write(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.name.endswith(".gz") else text.encode())
    return path


@given(
    st.lists(
        st.tuples(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(max_size=8)),
        min_size=1,
        max_size=20,
    ),
    st.integers(1, 200),
)
def test_what_python_writes_is_read(
    tmp_path_factory: Any, rows: list[tuple[int, float, str]], group_bytes: int
) -> None:
    rows = [(number, value, f"x{text}".replace("\r", "_")) for number, value, text in rows]
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with path.open("w", encoding="utf-8", errors="surrogatepass", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["i", "x", "s"])
        writer.writerows(rows)
    schema = {"i": "int64", "x": "float64", "s": "string"}
    source = open_csv(path, schema=schema, group_bytes=group_bytes)
    assert [tuple(row.values()) for row in rows_of(source)] == rows


def test_types_are_inferred_from_all_files_and_held(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "i,x,s,d,n\n1,2,a,2026-01-02,\n")
    write(tmp_path / "b.csv", "i,x,s,d,n\n3,4.5,5,2026-01-03,\n")
    source = open_source(tmp_path / "*.csv")
    assert source.schema.types == [pa.int64(), pa.float64(), pa.string(), pa.date32(), pa.string()]
    assert [row["x"] for row in rows_of(source, ["x"])] == [2.0, 4.5]
    assert [list(row) for row in rows_of(source, ["s", "i"])] == [["s", "i"]] * 2


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_a_source_opens_again_elsewhere_without_a_scan(tmp_path: Path, name: str) -> None:
    text = "a,b\n" + "".join(f'{number},"{number}\n"\n' for number in range(1000))
    source = open_csv(write(tmp_path / name, text), group_bytes=1000)
    assert len(source.groups) > 10
    again = open_again(source.spec())
    assert again.groups == source.groups
    assert again.fingerprint == source.fingerprint
    assert rows_of(again) == rows_of(source) == [{"a": number, "b": f"{number}\n"} for number in range(1000)]
    assert again.read(7).equals(source.read(7))


def test_values_that_do_not_fit_are_named_with_file_and_line(tmp_path: Path) -> None:
    text = 'a,b\n1,"two\nlines"\n' + "".join(f"{number},x\n" for number in range(200_000)) + "oops,x\n5,y\n"
    source = open_csv(write(tmp_path / "a.csv", text), group_bytes=100_000)
    with pytest.raises(InvalidInputError, match=r"a\.csv, line 200004: .*'oops'(.|\n)*schema=(.|\n)*on_error"):
        source.read(len(source.groups) - 1)
    assert source.read(0).num_rows == source.groups[0].rows


def test_too_few_values_are_named_with_file_and_line(tmp_path: Path) -> None:
    source = open_csv(write(tmp_path / "a.csv", "a,b\n1,2\n3\n4,5\n"))
    with pytest.raises(InvalidInputError, match=r"a\.csv, line 3: .*Expected 2 columns, got 1"):
        source.read(0)


def test_wrong_records_are_left_out_and_counted_if_asked(tmp_path: Path) -> None:
    text = "a,b\n1,x\n2\nthree,x\n" + "4,x\n" * 100 + "5,x,y\n6,z"
    path = write(tmp_path / "a.csv", text)
    source = open_csv(path, schema={"a": "int64"}, on_error="skip", group_bytes=50)
    assert [row["a"] for row in rows_of(source)] == [1, *[4] * 100, 6]
    assert source.num_rows == 102
    assert source.skips.count == 3
    assert [skip.place for skip in source.skips.first] == [f"{path}, line {line}" for line in (3, 4, 105)]
    assert "'three'" in source.skips.first[1].reason
    again = open_again(source.spec())
    assert rows_of(again) == rows_of(source)
    assert again.skips is not None
    assert again.skips.count == 3


def test_a_loader_counts_what_its_source_has_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "a,b\n1,2\n3\n4,5\n")
    with pytest.raises(InvalidInputError, match=r"a\.csv, line 3"):
        list(data.Loader(path, batch_size=2))
    loader = data.Loader(path, batch_size=2, on_error="skip")
    assert [batch["a"].tolist() for batch in loader] == [[1, 4]]
    assert loader.stats.skipped_rows == 1
    assert loader.stats.skipped == [f"{path}, line 3: 1 rows: CSV parse error: Expected 2 columns, got 1: 3"]


def test_headers_that_differ_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "a,b\n1,2\n")
    write(tmp_path / "b.csv", "a,c\n1,2\n")
    with pytest.raises(InvalidInputError, match=r"b\.csv, line 1(.|\n)*missing: 'b'(.|\n)*only here: 'c'"):
        open_source([tmp_path / "a.csv", tmp_path / "b.csv"])


def test_files_without_header_get_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "1\tx\n2\ty\n")
    assert rows_of(open_csv(path, header=False))[1] == {"f0": 2, "f1": "y"}
    assert rows_of(open_csv(path, header=["n", "s"]))[0] == {"n": 1, "s": "x"}


def test_marks_returns_and_nulls(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbfa,b,c\r\n1,,nan\r\n,"",2\r\n')
    source = open_csv(path)
    rows = rows_of(source)
    assert source.schema.names == ["a", "b", "c"]
    assert (rows[0]["a"], rows[1]["a"], rows[1]["c"]) == (1, None, 2.0)
    assert rows[0]["c"] != rows[0]["c"]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a,a\n1,2\n", r"line 1: the header has the columns \['a'\] twice"),
        ("a,\n1,2\n", "a column without a name"),
        ("\n1,2\n", "its first line is empty"),
        ("", "its first line is empty"),
        ("a,b\r1,2\r3,4\n", "line 1: a return stands alone in it"),
    ],
)
def test_headers_that_cannot_be_are_refused(tmp_path: Path, text: str, match: str) -> None:
    with pytest.raises(InvalidInputError, match=match):
        open_csv(write(tmp_path / "a.csv", text))


def test_a_header_alone_is_no_rows(tmp_path: Path) -> None:
    source = open_csv(write(tmp_path / "a.csv", "a,b\n"))
    assert (source.num_rows, source.schema.names) == (0, ["a", "b"])


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "a\n1\n")
    source = open_csv(path)
    spec = source.spec()
    write(path, "a\n1\n2\n")
    with pytest.raises(StoreError, match="has changed since it was opened: it had 4 bytes and has 6"):
        source.read(0)
    with pytest.raises(InvalidInputError, match="has changed since it was opened first"):
        open_again(spec)
    path.unlink()
    with pytest.raises(StoreError, match=r"a\.csv"):
        source.read(0)


def test_what_is_given_wrongly_is_said(tmp_path: Path) -> None:
    path = write(tmp_path / "train.csv", "alpha,beta\n1,2\n")
    with pytest.raises(InvalidInputError, match=r"'alhpa' in schema is unknown. Did you mean 'alpha'\?"):
        open_csv(path, schema={"alhpa": "int64"})
    with pytest.raises(
        InvalidInputError, match=r"'alpha' is said to be 'int65', which is no type. Did you mean 'int64'"
    ):
        open_csv(path, schema={"alpha": "int65"})
    with pytest.raises(
        InvalidInputError, match=r"on_error='skpi' was given; allowed are 'raise', 'skip'. Did you mean"
    ):
        open_csv(path, on_error="skpi")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="delimiter='ab' was given; it is one character"):
        open_csv(path, delimiter="ab")
    with pytest.raises(InvalidInputError, match=r"'bta' is unknown. Did you mean 'beta'\?"):
        open_csv(path).read(0, ["bta"])
    with pytest.raises(NotFoundError, match=r"Did you mean 'train.csv'\?"):
        open_csv(tmp_path / "trian.csv")
    with pytest.raises(InvalidInputError, match="No paths were given"):
        open_csv([])


def test_damaged_gzip_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 100_000)
    path.write_bytes(packed[:-20])
    with pytest.raises(InvalidInputError, match=r"a\.csv\.gz: it is cut off"):
        open_csv(path)
    path.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(InvalidInputError, match=r"cannot be decompressed .*take \.gz off its name"):
        open_csv(path)


def test_gzip_of_several_members_and_many_pieces(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,22\n" * 2_000_000) + gzip.compress(b"3,4\n" * 10))
    source = open_csv(path, group_bytes=3 << 20)
    assert source.num_rows == 2_000_010
    last = len(source.groups) - 1
    assert source.read(last).num_rows == source.groups[last].rows
    assert source.read(last)["a"].to_pylist()[-10:] == [3] * 10
    assert source.read(0)["b"].to_pylist()[:2] == [22, 22]
