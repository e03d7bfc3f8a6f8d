"""Send keys, get predictions: a deployment looks up the features of a view before the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

from cargobike import features, models, project, serving
from cargobike.core.signatures import Field, Signature
from cargobike.errors import InvalidInputError

LEAGUE = Signature((Field("budget", "FP64"), Field("visitors", "INT64")), (Field("value", "FP64"),))


def value(rows: list[dict[str, Any]]) -> list[float]:
    return [row["budget"] * 2 + row["visitors"] for row in rows]


def in_euros(answers: Sequence[float]) -> list[dict[str, float]]:
    return [{"euros": answer * 1e6} for answer in answers]


def test_keys_are_sent_and_features_come_from_the_online_store(tmp_path: Path) -> None:
    project.use(tmp_path)
    teams = features.create_group("teams", key="team_id", event_time="at", online=True)
    at = pd.Timestamp("2026-01-01", tz="UTC")
    teams.insert(pd.DataFrame({"team_id": [1, 2], "at": at, "budget": [10.0, 20.0], "visitors": [3, 4]}))
    view = features.create_view("team_value", features=["teams.budget", "teams.visitors"])
    models.register("value", value, signature=LEAGUE, example=[{"budget": 1.0, "visitors": 1}])
    deployment = serving.deploy("value", "value", view=view, after=in_euros)
    try:
        assert deployment.predict({"team_id": 2}) == {"euros": 44e6}
        assert deployment.predict([{"team_id": 1}, {"team_id": 2}]) == [{"euros": 23e6}, {"euros": 44e6}]
        with pytest.raises(InvalidInputError, match="field 'budget': null was given; a number"):
            deployment.predict({"team_id": 7})
        with pytest.raises(InvalidInputError, match="it needs 'team_id'"):
            deployment.predict({"team": 1})
        described = httpx.get(f"{deployment.url}/openapi.json").json()
        row = described["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]["schema"]["anyOf"][0]
        assert row == {"type": "object", "required": ["team_id"]}
        teams.insert(pd.DataFrame({"team_id": [2], "at": at + pd.Timedelta(days=1), "budget": [30.0], "visitors": [4]}))
        assert deployment.predict({"team_id": 2}) == {"euros": 64e6}
    finally:
        deployment.stop()
