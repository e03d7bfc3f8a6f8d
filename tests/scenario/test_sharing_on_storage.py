"""Publications on real storage servers: files go straight there, are given from there, and come from there."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cargobike import data
from cargobike.sharing.getting import from_web
from cargobike.sharing.getting.front import get
from cargobike.sharing.pieces.holdings import Holdings
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
    for path, content in contents.items():
        open_storage(url).write(path, content)
    with seeding(tmp_path / "seed") as seeder:
        publish(seeder.membership, tmp_path / "source", web_seeds=(url,))
        seeder.membership.holdings.forget(tmp_path / "source")
        options = {"peers": [seeder.address], "project": project_at(tmp_path / "getter"), "web_seeds": True}
        get("higgs", network=lab(), to=tmp_path / "to", quiet=True, timeout_s=60.0, **options)  # type: ignore[arg-type]
    assert read_folder(tmp_path / "to") == contents


class _Gate(Holdings):
    """Holdings that give the first two files, and the third when they are told to."""

    is_open = False

    def __init__(self, holdings: Holdings) -> None:
        self.__dict__ = holdings.__dict__

    def read(self, root: str, piece_size: int, number: int) -> bytes | bytearray | None:
        layer = self.layer(root, piece_size)
        is_last = layer is not None and len(layer) // 32 > 4 and number > 1
        return None if is_last and not _Gate.is_open else super().read(root, piece_size, number)


@pytest.mark.parametrize("name", STORAGES[::2])
def test_rows_are_read_and_files_lie_on_the_storage_while_others_arrive(
    name: str, storage_url: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, ends = storage_url(name), (0, 20_000, 40_000, 90_000)
    (tmp_path / "source").mkdir()
    for number, (begin, end) in enumerate(itertools.pairwise(ends)):
        table = pa.table({"x": list(range(begin, end))})
        pq.write_table(table, tmp_path / f"source/part-{number}.parquet", row_group_size=5_000, compression="none")
    getter = project_at(tmp_path / "getter")
    with seeding(tmp_path / "seed", wrap=_Gate) as seeder:
        publish(seeder.membership, tmp_path / "source", kind="table")
        options = {"peers": [seeder.address], "project": getter, "in_order": True, "wait": False}
        with get("higgs", network=lab(), to=url, quiet=True, timeout_s=60.0, **options) as arrival:  # type: ignore[arg-type]
            addresses = arrival.addresses()
            assert {next(addresses), next(addresses)} == {f"{url}/part-{number}.parquet" for number in range(2)}
            assert open_storage(url).read("part-0.parquet") == (tmp_path / "source/part-0.parquet").read_bytes()
            assert arrival.progress.size_had < arrival.progress.size
            monkeypatch.setattr(_Gate, "is_open", True)
            loader = data.Loader(arrival, batch_size=1000, shuffle=False)
            assert [value for batch in loader for value in batch["x"].tolist()] == list(range(ends[-1]))
            arrival.wait(60)
    assert {entry.path for entry in open_storage(url).list()} == {f"part-{number}.parquet" for number in range(3)}
