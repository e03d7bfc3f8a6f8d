"""Features joined by Spark: row by row what DuckDB gives, ties, nulls and late rows included."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cargobike import features, project
from cargobike.features.queries.asking import ask
from support.histories import moments
from support.memory_groups import MemoryGroup, memory_group

if TYPE_CHECKING:
    from support.spark_applications import SparkApplications

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def session(spark_applications: SparkApplications) -> SparkSession:
    return SparkSession(spark_applications.context(), options={"spark.sql.shuffle.partitions": "2"})


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: row["number"])


def random_groups(draw: random.Random) -> list[MemoryGroup]:
    """Two groups with times, one of them with a time to live and rows that were written late, and one without."""
    groups = []
    for name, ttl in (("first", None), ("second", 4.0)):
        places = draw.sample([(key, at) for key in range(4) for at in range(-5, 12)], 30)
        columns: dict[str, list[Any]] = {
            "key": [key for key, _ in places],
            f"{name}_x": [draw.choice([None, draw.random()]) for _ in places],
            f"{name}_word": [draw.choice([None, "red", ""]) for _ in places],
        }
        group = memory_group(name, "key", columns, at=[at for _, at in places], ttl_s=ttl)
        written = moments([draw.choice([None, at - 1, at, at + draw.randint(0, 9)]) for _, at in places])
        group.commits[0] = group.commits[0].set_column(4, "_written_at", written)
        groups.append(group)
    return [*groups, memory_group("third", "key", {"key": [0, 1, 2], "third_x": [1, None, 3]})]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("known_at", ["", "commit"])
def test_spark_and_duckdb_give_the_same_rows(session: SparkSession, seed: int, known_at: str) -> None:
    draw = random.Random(seed)
    groups = random_groups(draw)
    labels = pa.table(
        {
            "number": list(range(40)),
            "key": pa.array([draw.choice([None, 0, 1, 2, 3, 9]) for _ in range(40)], pa.int32()),
            "at": moments([draw.choice([None, *range(-6, 14)]) for _ in range(40)]),
        }
    )
    names = ["first.*", "second.*", "third_x"]
    query = ask(names, groups, labels, known_at=known_at)
    expected = rows_of(query.to_arrow())

    assert sum(row["first_x"] is not None for row in expected) > 0
    assert rows_of(query.to_spark(session).toArrow()) == expected
    frame = session.createDataFrame(labels)
    assert rows_of(ask(names, groups, frame, known_at=known_at).to_spark().toArrow()) == expected


def test_groups_of_a_project_are_read_and_joined_by_spark(session: SparkSession, tmp_path: Path) -> None:
    project.use(tmp_path / "project")
    try:
        teams = features.create_group("teams", key="team_id", event_time="at")
        teams.insert({"team_id": [1, 2], "at": ["2026-01-01", "2026-01-01"], "budget": [1.0, 2.0]})
        more = {"team_id": [1], "at": ["2026-02-01"], "budget": [3.0], "city": ["Rome"]}
        teams.insert(more, new_columns="add")
        games = features.create_group("games", key="game_id", event_time="at")
        games.insert({"game_id": [7, 8], "team_id": [1, 2], "at": ["2026-01-15", "2026-03-01"], "goals": [3, 0]})
        query = features.get_features(["game_id", "goals", "budget", "city"])

        expected = [
            {"game_id": 7, "goals": 3, "budget": 1.0, "city": None},
            {"game_id": 8, "goals": 0, "budget": 2.0, "city": None},
        ]
        assert query.to_arrow().to_pylist() == expected
        assert sorted(query.to_spark(session).toArrow().to_pylist(), key=lambda row: row["game_id"]) == expected
        assert query.filter("goals > 1", game_id=7).head(5).to_spark(session).toArrow().to_pylist() == expected[:1]
        view = features.create_view("v", features=["budget"], label="value")
        labels = session.createDataFrame([(1, "2026-02-15 00:00:00", 0.5)], "team_id int, when string, value double")
        assert view.training_data(labels, time="when").to_spark().collect()[0].budget == 3.0
    finally:
        project.use(None)


@pytest.mark.parametrize("storage", ["hdfs", "moto", "moto, without credentials in the executors"])
def test_groups_on_a_storage_are_joined_by_spark_as_by_duckdb(
    storage: str,
    spark_applications: SparkApplications,
    storage_url: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    name, _, lacking = storage.partition(", ")
    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "here"))
    monkeypatch.setenv("CARGOBIKE_PROJECT", storage_url(name))
    needed = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"}
    given = {} if lacking else {f"spark__executorEnv__{each}": os.environ[each] for each in needed & {*os.environ}}
    session = SparkSession(spark_applications.context(**given), options={"spark.sql.shuffle.partitions": "2"})
    draw = random.Random(7)
    teams = features.create_group("teams", key="team_id", event_time="at", ttl="40d")
    for batch in range(3):
        days = draw.sample(range(1, 28), 8)
        columns: dict[str, Any] = {
            "team_id": [draw.randrange(3) for _ in days],
            "at": [f"2026-0{batch + 1}-{day:02d}" for day in days],
            "budget": [draw.choice([None, draw.random()]) for _ in days],
        }
        columns |= {"city": [draw.choice([None, "Rome", ""]) for _ in days]} if batch else {}
        teams.insert(columns, new_columns="add")
    games = features.create_group("games", key="game_id", event_time="at")
    places = {"team_id": [draw.randrange(4) for _ in range(20)], "goals": list(range(20))}
    games.insert({"game_id": list(range(20)), "at": [f"2026-03-{day + 1:02d}" for day in range(20)], **places})
    query = features.get_features(["game_id", "goals", "budget", "city"])

    expected = query.to_arrow().to_pylist()
    assert len([row for row in expected if row["budget"] is not None]) > 3
    with caplog.at_level(logging.WARNING, "cargobike.features.joining.spark_reading"):
        frame = query.to_spark(session)
        assert sorted(frame.toArrow().to_pylist(), key=lambda row: row["game_id"]) == expected
    assert ("The rows pass through the driver" in caplog.text) == bool(lacking)
    view = features.create_view("v", features=["budget", "city"], label="value")
    labels = pa.table({"number": [0, 1], "team_id": [0, 1], "at": moments([1_772_000_000] * 2), "value": [0.0, 1.0]})
    assert rows_of(view.training_data(labels).to_spark(session).toArrow()) == rows_of(
        view.training_data(labels).to_arrow()
    )
