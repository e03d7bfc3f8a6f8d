"""A deployment of a project that lies on shared storage: its log lies there too, and a lost supervisor comes back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cargobike import models, serving
from cargobike.cli.app import app
from cargobike.core.errors import InvalidInputError
from cargobike.store.files.storages import open_storage
from support.deployments import Times, kill, lives, register, served, wait_until


def test_a_deployment_serves_rolls_and_comes_back(
    project_there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = serving.Logging(flush_s=0.2)
    with served(detach=True, log=kept) as deployment:
        assert deployment.predict(7) == [1, 7]
        register("times", Times(2))
        deployment.roll("times:2")
        assert deployment.predict(7) == [2, 7]
        with pytest.raises(InvalidInputError, match="times:1 is used by the deployment times"):
            models.remove("times:1")  # it may be rolled back to

        lost = deployment.status().pid
        kill(lost)
        wait_until(lambda: not lives(lost))
        assert deployment.predict(8) == [2, 8], "it is answered without a supervisor"
        again = serving.start("times", detach=True)
        assert again.predict(9) == [2, 9]
        listed = json.loads(CliRunner().invoke(app, ["deployments", "ls", "--json"]).stdout)
        assert [(one["name"], one["version"]) for one in listed] == [("times", 2)]

    storage = open_storage(project_there)
    assert any(entry.path.endswith(".parquet") for entry in storage.list("deployments/times/log", deep=True))
    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "another-host"))
    rows = serving.read_log("times").to_pylist()
    assert [(row["version"], row["output"]) for row in rows] == [
        (1, "[1,7]"),
        (2, "[2,7]"),
        (2, "[2,8]"),
        (2, "[2,9]"),
    ]
    assert not [entry.path for entry in storage.list("deployments", deep=True) if "secrets" in entry.path]
