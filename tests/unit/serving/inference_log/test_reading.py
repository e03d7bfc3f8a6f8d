from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.core.layout import ProjectFolder
from cargobike.core.signatures import Field, Signature
from cargobike.serving.inference_log.reading import read_log, read_moment
from support.logged_requests import NOON, logging_to

START = datetime.fromtimestamp(NOON, UTC)


def ids(project: Path, *window: Any, **chosen: Any) -> list[str]:
    names: list[str] = read_log("digits", *window, project=ProjectFolder(project), **chosen)["request_id"].to_pylist()
    return names


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return three days with a request in every hour, in files of six, each day answered by another version."""
    folder = tmp_path_factory.mktemp("project")
    for number in range(0, 72, 6):
        with logging_to(folder, dict.fromkeys((1, 2, 3))) as log:
            for hour in range(number, number + 6):
                log.take(f"r{hour:02}", NOON + 3600 * hour, 0.001, 1 + hour // 24, 200, [[hour]], [hour])
    return folder


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (None, None, range(72)),
        (START, None, range(72)),
        (START + timedelta(hours=5), START + timedelta(hours=7), range(5, 7)),
        (START + timedelta(hours=5, microseconds=1), START + timedelta(hours=7, microseconds=1), range(6, 8)),
        ("2026-05-02", "2026-05-03", range(12, 36)),
        ("2026-05-01T14:00:00+02:00", "2026-05-01 13:00", range(1)),
        (None, "2026-05-01 13:00", range(1)),
        ("2026-05-10", None, range(0)),
        ("2020-01-01", "2026-05-01 14:00", range(2)),
    ],
)
def test_a_window_has_its_begin_and_not_its_end(project: Path, since: Any, until: Any, expected: range) -> None:
    assert ids(project, since, until) == [f"r{hour:02}" for hour in expected]


def test_versions_and_columns_are_chosen(project: Path) -> None:
    rows = read_log("digits", version=2, columns=["output", "version"], project=ProjectFolder(project))
    assert rows.column_names == ["output", "version"]
    assert rows["output"].to_pylist() == [str(hour) for hour in range(24, 48)]
    assert set(rows["version"].to_pylist()) == {2}


def test_a_column_that_is_not_there_is_said(project: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no column 'outpt'; it has request_id, at, .*") as caught:
        read_log("digits", columns=["outpt"], project=ProjectFolder(project))
    assert caught.value.nearest[0] == "output"


def test_a_deployment_that_is_not_there_is_said(project: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no deployment 'digit' in .*Did you mean digits\?"):
        read_log("digit", project=ProjectFolder(project))


def test_a_deployment_without_requests_has_an_empty_log(tmp_path: Path) -> None:
    (tmp_path / "deployments" / "digits").mkdir(parents=True)
    (tmp_path / "deployments" / "digits" / "journal.jsonl").write_text("")
    rows = read_log("digits", project=ProjectFolder(tmp_path))
    assert rows.num_rows == 0
    assert rows.column_names[:2] == ["request_id", "at"]


def test_versions_whose_fields_have_other_types_are_read_one_by_one(tmp_path: Path) -> None:
    numbers, texts = (Signature((Field("x", datatype),)) for datatype in ("FP32", "BYTES"))
    with logging_to(tmp_path, {1: numbers, 2: texts}) as log:
        log.take("number", NOON, 0.0, 1, 200, [1.5], [0])
        log.take("text", NOON, 0.0, 2, 200, ["word"], [0])
    with pytest.raises(InvalidInputError, match=r"Versions 1, 2 have fields of the same name .* version=\d"):
        ids(tmp_path)
    assert ids(tmp_path, version=2) == ["text"]
    assert ids(tmp_path, version=1) == ["number"]


def test_vectors_of_other_lengths_are_read_together(tmp_path: Path) -> None:
    with logging_to(tmp_path, {size: Signature((Field("x", "FP32", (size,)),)) for size in (2, 3)}) as log:
        for size in (2, 3):
            log.take(f"r{size}", NOON, 0.0, size, 200, [[1.0] * size], [0])
    rows = read_log("digits", project=ProjectFolder(tmp_path))
    assert rows["input.x"].to_pylist() == [[1.0, 1.0], [1.0, 1.0, 1.0]]


def test_ages_count_from_now() -> None:
    now = datetime.now(UTC)
    for given, seconds in (("90s", 90), ("30min", 1800), ("1.5h", 5400), ("2d", 172_800), (timedelta(hours=1), 3600)):
        moment = read_moment("since", given)
        assert moment is not None
        assert abs((now - moment).total_seconds() - seconds) < 60


@pytest.mark.parametrize("wrong", ["yesterday", "5 apples", "", 17])
def test_what_is_no_time_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"since must be a .*was given"):
        read_moment("since", wrong)


def test_foreign_files_in_the_folder_are_left_alone(project: Path) -> None:
    day = project / "deployments" / "digits" / "log" / "2026-05-01"
    (day / "notes.txt").write_text("not ours")
    (day / "120000000000-130000000000-v1-nothex.parquet").write_text("not ours")
    (day.parent / "README").write_text("not ours")
    assert len(ids(project)) == 72
