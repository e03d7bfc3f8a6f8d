"""A registry on real storage servers: several writers, aliases, files that are brought here and checked."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cargobike import models, project
from cargobike.core.errors import StoreError
from cargobike.store.files.storages import open_storage


def triple(rows: list[Any]) -> list[Any]:
    return [3 * row for row in rows]


def test_a_registry_lives_on_the_storage(project_there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(number: int) -> list[int]:
        versions = [models.register("digits", triple, metrics={"accuracy": number + turn / 10}) for turn in range(2)]
        return [version.version for version in versions]

    with ThreadPoolExecutor(2) as threads:
        numbers = [number for mine in threads.map(write, range(2)) for number in mine]
    assert sorted(numbers) == [1, 2, 3, 4], "no number twice, and none left out"
    best = models.best("digits", "accuracy")
    best.promote("champion", when="accuracy >= champion.accuracy")

    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "another-host"))
    champion = models.get("digits@champion")
    assert champion.version == best.version
    assert champion.predict([2.0]) == [6.0]
    assert champion.folder().is_relative_to(tmp_path / "another-host"), "its files were brought here"
    assert champion.verify() == []
    assert [version.version for version in models.list("digits")] == [4, 3, 2, 1]
    assert models.retain(keep=1) == [f"digits:{number}" for number in range(1, 4) if number != best.version]
    storage = open_storage(project_there)
    tokens = {entry.path.split("/")[3] for entry in storage.list("models/digits/files", deep=True)}
    assert tokens == {champion.manifest.token, models.get("digits:4").manifest.token}
    assert not list(storage.list("models/digits/writing"))

    newest = models.register("digits", triple)
    path = f"models/digits/files/{newest.manifest.token}/model/model.pkl"
    data = storage.read(path) or b""
    storage.write(path, data[:-1] + b"x")
    with pytest.raises(StoreError, match="is damaged: its SHA-256 is not the one in its manifest"):
        newest.predictor()
    assert not list(project.current().root.glob("models/digits/files/.part-*")), "half a copy is not left here"
