"""`cargobike data write, pack, head, verify, ls, show, rm` on named tables."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from cargobike import data, experiment
from cargobike.cli.app import app
from cargobike.store.files.project import current


def call(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["data", *words])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def numbers() -> data.Table:
    return data.write({"n": np.arange(1_000_000), "image": np.zeros((1_000_000, 2, 2), np.uint8)}, "numbers")


def test_files_are_written_listed_shown_and_removed(tmp_path: Path) -> None:
    for number in range(2):
        pq.write_table(pa.table({"x": [number, 2, 3], "evil": ["\x1b[31m"] * 3}), tmp_path / f"{number}.parquet")

    assert "Wrote points:1: 6 rows" in call("write", f"{tmp_path}/*.parquet", "points").stdout
    made = json.loads(call("write", f"{tmp_path}/0.parquet", f"{tmp_path}/1.parquet", "points", "--json").stdout)
    assert (made["id"], made["rows"], made["version"]) == ("points:2", 6, 2)
    listed = json.loads(call("ls", "--json").stdout)
    assert [one["id"] for one in listed] == ["points:2", "points:1"]
    assert listed[0]["fingerprint"] == listed[1]["fingerprint"] == data.open("points").fingerprint
    assert "points:1" in call("ls").stdout
    assert "int64" in call("show", "points").stdout
    assert json.loads(call("show", "points:1", "--json").stdout)["version"] == 1
    assert "\x1b" not in call("head", "points").stdout
    assert [row["x"] for row in json.loads(call("head", "points", "-n", "4", "--json").stdout)] == [0, 2, 3, 1]

    assert json.loads(call("rm", "points:1", "--yes", "--json").stdout) == {"removed": ["points:1"]}
    assert [one["id"] for one in json.loads(call("ls", "--json").stdout)] == ["points:2"]
    assert [one["id"] for one in json.loads(call("ls", "--all", "--json").stdout)] == ["points:2", "points:1"]
    assert data.open("points").read().num_rows == 6
    assert "was removed" in call("head", "points:1", code=1).stderr
    call("rm", "points", "--yes")
    assert data.write({"x": [1]}, "points").version == 3, "numbers are not given twice"


def test_a_table_elsewhere_is_shown_by_its_path(tmp_path: Path) -> None:
    data.write({"x": [1.5]}, tmp_path / "there")

    assert json.loads(call("show", str(tmp_path / "there"), "--json").stdout)["id"] == "there:1"
    assert json.loads(call("head", f"{tmp_path}/there:1", "--json").stdout) == [{"x": 1.5}]


def test_pack(tmp_path: Path) -> None:
    (tmp_path / "pets" / "cats").mkdir(parents=True)
    (tmp_path / "pets" / "cats" / "tom").write_bytes(b"fur")

    assert "Wrote packed:1: 1 rows" in call("pack", str(tmp_path / "pets"), "packed").stdout
    assert "3 bytes" in call("head", "packed").stdout
    assert json.loads(call("pack", str(tmp_path / "pets"), "packed", "--no-label", "--json").stdout)["version"] == 2
    assert "There is no folder" in call("pack", str(tmp_path / "none"), "packed", code=1).stderr


def test_verify_names_the_file_and_row_group_that_differ(numbers: data.Table) -> None:
    assert "numbers:1 is as it was written: 1,000,000 rows" in call("verify", "numbers").stdout
    (file,) = numbers.files
    path = Path(numbers.url) / file.path
    whole = pq.ParquetFile(path)
    tables = [whole.read_row_group(group) for group in range(whole.num_row_groups)]
    size = path.stat().st_size
    content = path.read_bytes()

    middle = content.find(np.arange(600_000, 600_050).tobytes())
    if middle < 0:  # compressed: change a byte in the middle of the file instead
        middle = size // 2
    path.write_bytes(content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :])
    verdict = json.loads(call("verify", "numbers", "--json", code=1).stdout)
    assert not verdict["is_whole"]
    (problem,) = verdict["problems"]
    assert file.path in problem
    assert "row group" in problem
    assert verdict["rows"] == 1_000_000 - tables[0].num_rows
    path.unlink()
    assert f"{file.path} is gone" in call("verify", "numbers", code=1).stdout


def test_verify_finds_values_that_were_exchanged(tmp_path: Path) -> None:
    table = data.write(pa.table({"n": [1, 2, 3]}), "small")
    other = data.write(pa.table({"n": [1, 2, 4]}), "other")
    path = Path(table.url) / table.files[0].path
    path.write_bytes((Path(other.url) / other.files[0].path).read_bytes())

    assert "row group 0 holds other values than were written" in call("verify", "small", code=1).stdout


def test_files_that_another_version_lists_are_kept() -> None:
    first = data.write({"n": [1, 2]}, "shared")
    manifest = Path(first.url) / "1" / "manifest.json"
    copy = json.loads(manifest.read_text()) | {"version": 2}
    (Path(first.url) / "2").mkdir()
    (Path(first.url) / "2" / "manifest.json").write_text(json.dumps(copy))

    call("rm", "shared:1", "--yes")
    assert data.open("shared").read().column("n").to_pylist() == [1, 2]
    call("rm", "shared:2", "--yes")
    assert not [*Path(first.url).rglob("*.parquet")]


def test_rm_says_which_experiments_were_given_a_table() -> None:
    def count(data: object, x: int) -> float:
        return float(len(data))  # type: ignore[arg-type]

    result = experiment.launch(count, {"x": [1]}, data=pd.DataFrame({"a": [1, 2]}), workers=0, quiet=True)
    (table,) = json.loads(call("ls", "--json").stdout)

    assert f"{table['id']}, given to {result.id}" in call("rm", table["id"], "--yes").stderr
    assert json.loads(call("ls", "--json").stdout) == []
    assert current().root.exists()
