"""Views, training datasets and look-ups of a project on real storage servers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from cargobike import data, features
from cargobike.core.errors import StoreError
from support.redis_server import RedisServer

DAY = datetime(2026, 5, 1, tzinfo=UTC)


def test_features_are_joined_kept_and_looked_up_from_the_storage(
    project_there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    teams = features.create_group("teams", key="team_id", event_time="at", online=True)
    teams.insert({"team_id": [1, 2], "at": [DAY] * 2, "budget": [1.0, 2.0]})
    teams.insert({"team_id": [1, 3], "at": [DAY + timedelta(days=2)] * 2, "budget": [10.0, None]})
    cities = features.create_group("cities", key="team_id", online="lmdb")
    cities.insert({"team_id": [1, 2], "city": ["Rome", "Oslo"]})

    joined = (
        features.get_features(["team_id", "at", "budget", "city"])
        .to_arrow()
        .sort_by([("team_id", "ascending"), ("at", "ascending")])
    )
    assert joined.column("city").to_pylist() == ["Rome", "Rome", "Oslo", None]
    labels = pa.table(
        {
            "team_id": [1, 1, 3, 9],
            "when": [DAY + timedelta(days=each) for each in (1, 3, 4, 5)],
            "value": [0.0, 1.0, 2.0, 3.0],
        }
    )
    view = features.create_view(
        "team_value", features=["budget", "city"], label="value", transformations={"city": "ordinal"}
    )
    trained = view.training_data(labels)
    assert trained.to_arrow().column("budget").to_pylist() == [1.0, 10.0, None, None]
    assert trained.explain().lateness["teams"].matched == 3

    dataset = view.create_training_dataset("team_value", labels, split={"train": 0.5, "test": 0.5}, by="time")
    assert (dataset["train"].num_rows, dataset["test"].num_rows) == (2, 2)
    again = features.training_dataset("team_value:1")
    assert again.fingerprint == dataset.fingerprint
    assert [batch["budget"].tolist() for batch in data.Loader(again, batch_size=2, columns=["budget"])] == [[1.0, 10.0]]
    same = view.create_training_dataset("team_value", labels, split={"train": 0.5, "test": 0.5}, by="time")
    assert (same.version, same.fingerprint) == (2, dataset.fingerprint)

    assert view.vector(team_id=1) == {"budget": 10.0, "city": 0}
    assert [vector.states["budget"] for vector in view.vectors([2, 3, 9])] == ["present", "null", "missing"]
    view.close()
    assert teams.verify().is_equal
    assert cities.verify().is_equal

    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "another host"))
    elsewhere = features.view("team_value")
    with pytest.raises(StoreError, match=r"never materialized. Call group.materialize\(\) first"):
        elsewhere.vector(team_id=1)
    for name in ("teams", "cities"):
        assert features.group(name).materialize().whole
    assert elsewhere.vector(team_id=1) == {"budget": 10.0, "city": 0}
    teams.delete(1)  # materializes on this host
    assert elsewhere.vector(team_id=1).states["budget"] == "missing"
    elsewhere.close()
    kept = [path for path in tmp_path.rglob("*.parquet") if path.is_file()]
    assert not kept, "rows lie on the storage alone"


def test_hosts_share_look_ups_through_a_server(
    project_there: str, redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    teams = features.create_group("teams", key="team_id", online=redis_server.url)
    teams.insert({"team_id": [1, 2], "budget": [1.0, 2.0]})
    view = features.create_view("team_value", features=["budget"])

    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "another host"))
    elsewhere = features.view("team_value")
    assert elsewhere.vector(team_id=2) == {"budget": 2.0}
    features.group("teams").insert({"team_id": [2], "budget": [20.0]})
    assert view.vector(team_id=2) == elsewhere.vector(team_id=2) == {"budget": 20.0}
    for one in (view, elsewhere):
        one.close()
