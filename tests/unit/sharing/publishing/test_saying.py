"""Withdrawals and replaced keys, as a project says them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cargobike import project, sharing
from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.sharing.front import open_catalogue
from cargobike.sharing.identity.keys import load_identity
from cargobike.sharing.publishing import saying
from cargobike.store.files.project import prepare
from support.publications import identity_of, signed_manifest


@pytest.fixture(autouse=True)
def here(tmp_path: Path) -> Iterator[Path]:
    project.use(tmp_path / "project")
    (tmp_path / "a.txt").write_text("a")
    sharing.publish("mine", tmp_path / "a.txt", network="lab", yes=True)
    with open_catalogue("lab") as catalogue:
        catalogue.add(signed_manifest(identity_of("alice")))
    yield tmp_path
    project.use(None)


def test_a_withdrawn_version_is_not_found_any_more(here: Path) -> None:
    assert sharing.withdraw("mine").version == 1
    assert [one.name for one in sharing.search()] == ["higgs"]
    (here / "a.txt").write_text("b")
    assert sharing.publish("mine", here / "a.txt", network="lab", yes=True).version == 2
    with pytest.raises(NotFoundError, match="'higgs'"):
        sharing.withdraw("higgs")


def test_an_opinion_is_signed_and_replaces_the_one_before() -> None:
    sharing.rate("higgs", 2)
    sharing.rate("higgs", 4, "Better than I thought.")
    assert [(one.rating, one.text) for one in sharing.opinions("higgs")] == [(4, "Better than I thought.")]
    sharing.rate("higgs", comment="Still useful.")
    assert [(one.rating, one.text) for one in sharing.opinions("higgs")] == [(4, "Still useful.")], "the rating stays"
    sharing.rate("higgs", 5)
    assert [(one.rating, one.text) for one in sharing.opinions("higgs")] == [(5, "Still useful.")]
    with pytest.raises(InvalidInputError, match="this project's own"):
        sharing.rate("mine", 5)
    for rating in (0, 6, -1):
        with pytest.raises(InvalidInputError, match="1 to 5, words, or both"):
            sharing.rate("higgs", rating)


def test_a_replaced_key_keeps_its_publications_and_numbers_them_on(here: Path) -> None:
    old, new, _ = saying.replace_key(prepare())
    assert load_identity(prepare()).publisher == new
    (here / "a.txt").write_text("b")
    entry = sharing.publish("mine", here / "a.txt", network="lab", yes=True)
    assert (entry.version, entry.publisher) == (2, new)
    with open_catalogue("lab") as catalogue:
        assert catalogue.head(old) == new
        assert catalogue.entry("mine", version=1).head == new
    assert saying.replace_key(prepare())[0] == new


def test_an_interrupted_replacement_goes_on_with_the_same_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> Path:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(saying, "replace_identity", interrupted)
        with pytest.raises(KeyboardInterrupt):
            saying.replace_key(prepare())
    with open_catalogue("lab") as catalogue:
        promised = catalogue.head(load_identity(prepare()).publisher)
    assert saying.replace_key(prepare())[1] == promised


def test_what_is_thought_of_publishers_is_kept() -> None:
    alice = identity_of("alice").publisher
    assert sharing.trust(alice[:20], "alice") == alice
    assert sharing.search()[0].reference == "higgs@alice:1"
    sharing.mute("alice")
    assert [one.name for one in sharing.search()] == ["mine"]
    sharing.block("alice")
    assert [one.name for one in sharing.search(hidden=True)] == ["mine"]
