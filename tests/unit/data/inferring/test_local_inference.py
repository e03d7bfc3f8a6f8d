"""Inference without Spark: every row gets its prediction, in order, and what fails says where."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cargobike import data, experiment
from cargobike.core.errors import InvalidInputError, NotFoundError, PredictionError, StoreError
from cargobike.data.inferring import front
from cargobike.data.inferring.keeping import Results, digest_of
from cargobike.data.inferring.types import announced

ROWS = 1000


@pytest.fixture
def parquet(tmp_path: Path) -> str:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": np.arange(ROWS), "x": np.arange(ROWS) / 4}), path, row_group_size=90)
    return str(path)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "PIECE_ROWS", 100)


def left_in(project: Path) -> list[str]:
    return [path.name for path in project.rglob(".predicting-*")]


def twice(rows: pd.DataFrame) -> Any:
    return rows["x"] * 2


class Offset:
    """A model that takes long to load, and says where it was."""

    def __init__(self) -> None:
        self.pid = os.getpid()

    def __call__(self, rows: pd.DataFrame) -> dict[str, Any]:
        return {"moved": rows["id"] + 1, "by": [self.pid] * len(rows)}


def test_rows_keep_their_order_and_get_what_processes_predict(parquet: str, tmp_path: Path) -> None:
    table = experiment.inference(Offset, parquet, output_to="moved", workers=2, batch_size=64, quiet=True)
    frame = table.to_pandas()
    assert frame["id"].tolist() == list(range(ROWS))
    assert frame["moved"].tolist() == list(range(1, ROWS + 1))
    assert 1 <= len(set(frame["by"])) <= 2, "a model is loaded once in each process"
    assert os.getpid() not in set(frame["by"])
    assert (table.name, table.version, data.open("moved").num_rows) == ("moved", 1, ROWS)
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("kind", ["pandas", "arrow", "arrays", "path", "glob", "table", "name", "loader"])
def test_any_source_will_do(parquet: str, kind: str) -> None:
    arrow = pq.read_table(parquet)
    given: Any = {
        "pandas": arrow.to_pandas(),
        "arrow": arrow,
        "arrays": {name: arrow[name].to_numpy() for name in arrow.schema.names},
        "path": Path(parquet),
        "glob": parquet.replace("rows", "*"),
        "loader": data.Loader(parquet, batch_size=7) if hasattr(data, "Loader") else parquet,
    }
    source = given[kind] if kind in given else data.write(arrow, "rows")
    table = experiment.inference(twice, "rows" if kind == "name" else source, workers=0, quiet=True)
    assert table.name == "twice-predictions"
    assert table.read(["prediction"])["prediction"].to_pylist() == [n / 2 for n in range(ROWS)]


def test_batches_come_as_arrow_too_and_tensors_as_arrays(tmp_path: Path) -> None:
    images = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)

    def sums(rows: pd.DataFrame) -> list[int]:
        return [int(image.sum()) for image in rows["image"] if image.shape == (2, 3)]

    table = experiment.inference(sums, {"image": images}, workers=0, quiet=True)
    assert table.read()["prediction"].to_pylist() == [int(image.sum()) for image in images]

    def lengths(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict({"size": [len(value) for value in batch.column("image").to_pylist()]})

    table = experiment.inference(lengths, table, form="arrow", workers=0, quiet=True)
    assert table.read()["size"].to_pylist() == [6] * 4


def test_types_fit_all_rows_though_pieces_differ(parquet: str) -> None:
    def odd(rows: pd.DataFrame) -> list[Any]:
        return [None if n < 500 else n + 0.5 if n > 800 else n for n in rows["id"]]

    table = experiment.inference(odd, parquet, workers=0, quiet=True)
    values = table.read()["prediction"].to_pylist()
    assert values[:500] == [None] * 500
    assert values[799:802] == [799.0, 800.0, 801.5]
    told = experiment.inference(lambda rows: rows["id"] * 1.0, parquet, output="n bigint", workers=0, quiet=True)
    assert told.schema.field("n").type == pa.int64()


@pytest.mark.parametrize("workers", [0, 1])
def test_the_users_traceback_and_the_row_are_shown(parquet: str, tmp_path: Path, workers: int) -> None:
    def strict(rows: pd.DataFrame) -> Any:
        if (rows["id"] == 777).any():
            raise ValueError("seven is too much")
        return rows["x"]

    with pytest.raises(
        PredictionError, match=r"(?s)failed at row 777, which is \{'id': 777.*in strict\n.*too much$"
    ) as no:
        experiment.inference(strict, parquet, workers=workers, quiet=True)
    assert "inferring/program.py" not in str(no.value)
    assert len(left_in(tmp_path)) == 1, "what was finished is kept"
    experiment.inference(lambda rows: rows["x"], parquet, output_to="strict-predictions", workers=0, quiet=True)
    assert left_in(tmp_path) == [], "until the same is asked for with another function"


@pytest.mark.parametrize(
    ("predict", "options", "words"),
    [
        (
            lambda rows: [1.0],
            {},
            "given 90 rows and returned 1 values of 'prediction': return one for each",
        ),
        (lambda rows: {"id": rows["id"]}, {}, "columns that the data has already: id"),
        (lambda rows: rows["x"], {"output": "a int, b int"}, "predict returned prediction, but a, b was announced"),
        (lambda rows: ["a"] * len(rows), {"output": "int"}, r"'prediction' = 'a' for row 0, which does not fit int32"),
    ],
)
def test_what_is_no_prediction_is_refused(parquet: str, predict: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(PredictionError, match=words):
        experiment.inference(predict, parquet, workers=0, quiet=True, **options)


def test_bad_input_is_refused_before_anything_is_computed(parquet: str, tmp_path: Path) -> None:
    def call(predict: Any = twice, source: Any = parquet, **options: Any) -> None:
        experiment.inference(predict, source, quiet=True, **options)

    with pytest.raises(
        InvalidInputError, match=r"(?s)predict=3 was given.*form='json' was given.*batch_size=0.*workers=-1"
    ):
        call(3, form="json", batch_size=0, workers=-1)
    with pytest.raises(NotFoundError, match="There is no file"):
        call(source="nowhere.parquet")
    with pytest.raises(InvalidInputError, match="has no rows"):
        call(source={"x": []})
    with pytest.raises(InvalidInputError, match=r"'duoble' is no type. Did you mean 'double'\?"):
        call(output="y duoble")
    with pytest.raises(InvalidInputError, match=r"output='x int' names columns that the data has already: x"):
        call(output="x int")
    with pytest.raises(InvalidInputError, match=r"returned only None for prediction.*output=\"prediction double\""):
        call(lambda rows: [None] * len(rows), workers=0)
    lock = threading.Lock()
    with pytest.raises(InvalidInputError, match="predict cannot be sent to workers"):
        call(lambda rows: lock)
    with pytest.raises(InvalidInputError, match="timeout_s"):
        call(timeout_s=-1)


def test_two_calls_for_the_same_do_not_meet(tmp_path: Path) -> None:
    with Results(tmp_path, "target", "key") as mine:
        with (
            pytest.raises(StoreError, match="Another process predicts the same just now"),
            Results(tmp_path, "target", "key"),
        ):
            pass
        with Results(tmp_path, "target", "other"):
            assert mine.folder.exists(), "what another process works on is not swept away"
    assert left_in(tmp_path) == []


def test_the_key_is_the_same_for_the_same_class_and_another_for_another(tmp_path: Path) -> None:
    assert digest_of(b"a" + b"0123456789abcdef" * 2) == digest_of(b"a" + b"f" * 32)
    assert digest_of("a", "bc") != digest_of("ab", "c")


def test_announced_types() -> None:
    schema = announced("label int, scores array<array<float>>, price decimal(9, 2), at timestamp")
    assert [str(field.type) for field in schema] == [
        "int32",
        "list<item: list<item: float>>",
        "decimal128(9, 2)",
        "timestamp[us, tz=UTC]",
    ]
    assert announced("string").names == ["prediction"]
    with pytest.raises(InvalidInputError, match="it says names and types"):
        announced(" ")


def test_errors_that_are_no_text_and_processes_that_leave_are_told(parquet: str) -> None:
    def half_a_character(rows: pd.DataFrame) -> Any:
        raise ValueError("\ud800")

    with pytest.raises(PredictionError, match=r"failed at row 0"):
        experiment.inference(half_a_character, parquet, workers=1, quiet=True)

    def leave(rows: pd.DataFrame) -> Any:
        raise SystemExit(3)

    with pytest.raises(PredictionError, match=r"(?s)failed at row 0.*in leave.*SystemExit: 3"):
        experiment.inference(leave, parquet, workers=1, quiet=True)


def test_progress_is_shown_and_what_predict_prints(parquet: str, capfd: pytest.CaptureFixture[str]) -> None:
    def loud(rows: pd.DataFrame) -> Any:
        print("predicting", len(rows))
        return rows["x"]

    experiment.inference(loud, parquet, workers=1)
    printed = capfd.readouterr()
    assert printed.out.count("predicting 90") == 11
    assert "inference: 1,000 of 1,000 rows" in printed.err
