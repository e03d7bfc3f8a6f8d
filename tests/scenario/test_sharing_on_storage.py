"""Publications on real storage servers: files go straight there, are given from there, and come from there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cargobike.sharing.getting import from_web
from cargobike.sharing.getting.front import get
from cargobike.store.files.storages import open_storage
from support.swarm import PIECE, fill, lab, project_at, publish, read_folder, seeding

STORAGES = ["moto", pytest.param("seaweed", marks=pytest.mark.slow), pytest.param("hdfs", marks=pytest.mark.slow)]
SIZES = {"a.bin": 3 * PIECE + 1, "sub/b.txt": 10}


@pytest.mark.parametrize("name", STORAGES)
def test_what_was_got_lies_on_the_storage_and_is_given_from_there(
    name: str, storage_url: Callable[[str], str], tmp_path: Path
) -> None:
    url = storage_url(name)
    contents = fill(tmp_path / "source", SIZES)
    with seeding(tmp_path / "first") as first:
        publish(first.membership, tmp_path / "source")
        with seeding(tmp_path / "second") as second:
            getter = second.membership.project
            get("higgs", network=lab(), peers=[first.address], to=url, project=getter, quiet=True, timeout_s=60.0)
            storage = open_storage(url)
            assert {path: storage.read(path) for path in contents} == contents
            first.giving.is_paused = True
            third = project_at(tmp_path / "third")
            get("higgs", network=lab(), peers=[second.address], to=tmp_path / "to", project=third, quiet=True)
    assert read_folder(tmp_path / "to") == contents


@pytest.mark.parametrize("name", STORAGES[:2])
def test_a_bucket_gives_what_no_member_has_any_more(
    name: str, storage_url: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(from_web, "_MEMBERS_FIRST_S", 0.0)
    url = storage_url(name)
    contents = fill(tmp_path / "source", SIZES)
    for path, data in contents.items():
        open_storage(url).write(path, data)
    with seeding(tmp_path / "seed") as seeder:
        publish(seeder.membership, tmp_path / "source", web_seeds=(url,))
        seeder.membership.holdings.forget(tmp_path / "source")
        options = {"peers": [seeder.address], "project": project_at(tmp_path / "getter"), "web_seeds": True}
        get("higgs", network=lab(), to=tmp_path / "to", quiet=True, timeout_s=60.0, **options)  # type: ignore[arg-type]
    assert read_folder(tmp_path / "to") == contents
