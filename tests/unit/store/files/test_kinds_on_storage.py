"""Things of a kind that the store has never heard of, on shared storage beside experiments."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cargobike.core.facts import Fact, Facts
from cargobike.core.layout import ProjectFolder, ThingFolder
from cargobike.core.registering import products as registry
from cargobike.core.registering.kinds import Kind
from cargobike.core.registering.products import Product, kind_of, kinds, own_products
from cargobike.experiments.kind import EXPERIMENTS
from cargobike.store.files import shared
from cargobike.store.files.mirror import fetch, refresh, share_arrival, share_removal
from cargobike.store.files.remote import open_remote
from cargobike.store.files.things import files_of
from cargobike.store.journal.journal import JournalWriter, read_journal


class Planted(Fact, frozen=True, tag="planted"):
    version: int = 1
    cargobike: str = ""


PLANTS = Kind(
    name="plant",
    folder="plants",
    id=re.compile("[a-z]+"),
    facts=Facts(Planted, first=Planted, version=1),
    left_out=frozenset({"shadow", "unsent", "remote.json"}),
    on_demand=re.compile(r"roots/"),
    heads="plant-heads",
)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    garden = Product(name="garden", title="Garden", kind=f"{__name__}:PLANTS")
    kinds.cache_clear()
    monkeypatch.setattr(registry, "products", lambda: (*own_products(), garden))
    monkeypatch.setattr(shared, "is_copy", lambda root, url: True)  # two hosts, each with copies in its own place
    yield
    kinds.cache_clear()


def copy_of(tmp_path: Path, host: str) -> ProjectFolder:
    project = ProjectFolder(tmp_path / host)
    project.root.mkdir(exist_ok=True)
    project.remote_url.write_text(f"file://{tmp_path}/storage\n")
    (tmp_path / "storage").mkdir(exist_ok=True)
    return project


def plant(project: ProjectFolder, name: str) -> ThingFolder:
    folder = ThingFolder(project.root / "plants" / name)
    with JournalWriter(folder.journal) as writer:
        writer.append([Planted(at=1.0)])
    for path in ("leaf.txt", "roots/deep.bin", "shadow/x", ".hidden"):
        (folder.root / path).parent.mkdir(exist_ok=True)
        (folder.root / path).write_text(path)
    os.symlink("leaf.txt", folder.root / "link")
    return folder


def test_what_belongs_to_a_thing_is_spelled_once(tmp_path: Path) -> None:
    folder = plant(copy_of(tmp_path, "here"), "pear")
    assert kind_of(folder.root) == PLANTS
    names = [path for path, _ in files_of(PLANTS, folder.root)]
    assert names == [".hidden", "journal.jsonl", "leaf.txt", "roots/deep.bin"]
    assert ".hidden" not in dict(files_of(PLANTS, folder.root, with_hidden=False))


def test_a_thing_travels_to_another_host_and_its_removal_too(tmp_path: Path) -> None:
    here, there = copy_of(tmp_path, "here"), copy_of(tmp_path, "there")
    folder = plant(here, "pear")
    share_arrival(folder)
    remote = open_remote(f"file://{tmp_path}/storage")
    assert set(remote.heads(PLANTS)) == {"pear"}
    assert remote.heads(EXPERIMENTS) == {}
    refresh(there, at_once=True)
    copy = ThingFolder(there.root / "plants" / "pear")
    assert list(read_journal(copy.journal, PLANTS.facts)) == [Planted(at=1.0)]
    assert (copy.root / "leaf.txt").read_text() == "leaf.txt"
    assert not (copy.root / "roots").exists(), "large, and not asked for"
    assert not (copy.root / "shadow").exists(), "left out"
    fetch(copy, with_checkpoints=True)
    assert (copy.root / "roots" / "deep.bin").exists()
    share_removal(folder)
    refresh(there, at_once=True)
    assert not copy.root.exists()


def test_what_comes_from_the_storage_is_not_written_through_links_that_are_here(tmp_path: Path) -> None:
    here, there = copy_of(tmp_path, "here"), copy_of(tmp_path, "there")
    share_arrival(plant(here, "pear"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    copy = ThingFolder(there.root / "plants" / "pear")
    copy.root.mkdir(parents=True)
    os.symlink(elsewhere, copy.root / "roots")
    os.symlink(elsewhere / "leaf.txt", copy.root / "leaf.txt")
    refresh(there, at_once=True)
    fetch(copy, with_checkpoints=True)
    assert (copy.root / "leaf.txt").read_text() == "leaf.txt"
    assert list(elsewhere.iterdir()) == []


def test_things_that_stay_on_their_host_are_left_alone(tmp_path: Path) -> None:
    here = copy_of(tmp_path, "here")
    mine = here.root / "data" / "0123456789ab"
    mine.mkdir(parents=True)
    refresh(here, at_once=True)
    assert mine.exists()


def test_the_layout_of_experiments_on_storage_is_as_it_was() -> None:
    assert EXPERIMENTS.place("x", "journal", "s") == "experiments/x/journal/s"
    assert EXPERIMENTS.head("x") == "heads/x"
