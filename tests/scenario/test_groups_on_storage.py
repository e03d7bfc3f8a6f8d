"""Feature groups of a project on real storage servers: written there, read in place, by several writers at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import deltalake

from cargobike import features
from cargobike.store.files.storages import open_storage

DAY = datetime(2026, 5, 1, tzinfo=UTC)


def test_a_group_lives_on_the_storage(project_url: str, tmp_path: Path) -> None:
    group = features.create_group("teams", key="team_id", event_time="at", expectations=[features.between("budget", 0)])
    group.insert({"team_id": [1, 2], "at": [DAY] * 2, "budget": [1.0, 2.0]})
    group.insert({"team_id": [2, 3], "at": [DAY] * 2, "budget": [2.5, -3.0]}, bad_rows="quarantine")
    group.insert({"team_id": [4], "at": [DAY + timedelta(days=1)], "budget": [4.0]})
    assert group.url == f"{project_url}/features/teams/v1"
    assert [one.name for one in features.list_groups()] == ["teams"]
    there = features.group("teams")
    assert sorted(there.read().column("budget").to_pylist()) == [1.0, 2.5, 4.0]
    assert sorted(there.read(as_of=0).column("budget").to_pylist()) == [1.0, 2.0]
    assert there.quarantined().column("budget").to_pylist() == [-3.0]
    assert there.statistics()["budget"].mean == 2.5
    there.compact()
    there.delete([1])
    assert there.vacuum(older_than=0) > 0
    assert sorted(features.group("teams").read().column("budget").to_pylist()) == [2.5, 4.0]
    assert len([one for one in open_storage(group.url).list() if one.path.endswith(".parquet")]) == 1
    assert not [*tmp_path.rglob("*.parquet")], "nothing stays on this host"
    if project_url.startswith("s3://"):
        assert len(deltalake.DeltaTable(group.url, storage_options={"AWS_ALLOW_HTTP": "true"}).to_pyarrow_table()) == 2


def test_writers_at_once_lose_nothing(project_url: str) -> None:
    features.create_group("raced", key="id")

    def write(number: int) -> int:
        group = features.group("raced")
        return sum(group.insert({"id": [10 * number + turn, -1], "x": [number, number]}).rows for turn in range(3))

    with ThreadPoolExecutor(4) as threads:
        counts = list(threads.map(write, range(4)))
    raced = features.group("raced")
    assert sorted(raced.read().column("id").to_pylist()) == [-1] + [
        10 * number + turn for number in range(4) for turn in range(3)
    ]
    assert raced.commit == 11
    assert sum(counts) >= 16
