"""What a catalogue keeps, finds, and gives to other members."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError
from cargobike.sharing.catalogue.entry import Question, read_reference
from cargobike.sharing.catalogue.store import Catalogue
from cargobike.sharing.identity.keys import Identity
from cargobike.sharing.records import Column, Note, RecordError, Signed, replacement_message, sign
from support.publications import NETWORK, identity_of, manifest, new_catalogue, opinion, signed_manifest

ALICE, BOB, EVE = identity_of("alice"), identity_of("bob"), identity_of("eve")


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    with new_catalogue(tmp_path) as made:
        yield made


def names(catalogue: Catalogue, **asked: object) -> list[str]:
    return [f"{one.name}:{one.version}" for one in catalogue.find(Question(**asked))]  # type: ignore[arg-type]


def replacement(old: Identity, new: Identity, sequence: int) -> Signed:
    note = Note(
        format=1,
        network=NETWORK,
        publisher=old.publisher,
        sequence=sequence,
        created="",
        what="replaced",
        successor=new.publisher,
        proof=new.sign(replacement_message(old.publisher, NETWORK)),
    )
    return sign(note, old)


def test_a_record_is_kept_once_and_a_forged_one_never(catalogue: Catalogue) -> None:
    signed = signed_manifest(ALICE)
    assert catalogue.add(signed)
    assert not catalogue.add(signed)
    with pytest.raises(RecordError, match="signature"):
        catalogue.add(msgspec.structs.replace(signed, publisher=BOB.publisher))
    assert names(catalogue) == ["higgs:1"]
    assert catalogue.newest() == {ALICE.publisher: 1}
    assert catalogue.manifest(catalogue.entry("higgs")) == manifest(ALICE)


def test_two_catalogues_that_ask_each_other_become_equal_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with new_catalogue(tmp_path / "a") as first, new_catalogue(tmp_path / "b") as second:
        records = [signed_manifest(one, n, version=n) for one in (ALICE, BOB) for n in range(1, 8)]
        random.Random(5).shuffle(records)
        for record in records[:9]:
            first.add(record)
        for record in records[6:]:
            second.add(record)
        for asking, asked in ((first, second), (second, first)):
            mine = asking.newest()
            for publisher in asked.newest():
                for record in asked.since(publisher, mine.get(publisher, 0)):
                    asking.add(record)
        assert first.newest() == second.newest() == {ALICE.publisher: 7, BOB.publisher: 7}
        assert names(first, all_versions=True, publisher=ALICE.publisher) != []


def test_what_lies_behind_a_gap_is_shown_and_the_gap_is_still_asked_for(catalogue: Catalogue) -> None:
    for number in (1, 2, 4):
        catalogue.add(signed_manifest(ALICE, number, version=number))
    assert catalogue.newest() == {ALICE.publisher: 2}
    assert names(catalogue) == ["higgs:4"]
    catalogue.add(signed_manifest(ALICE, 3, version=3))
    assert catalogue.newest() == {ALICE.publisher: 4}


def test_records_are_given_in_order_and_in_portions(catalogue: Catalogue) -> None:
    for number in (3, 1, 2):
        catalogue.add(signed_manifest(ALICE, number, version=number))
    given = [msgspec.json.decode(one.body)["sequence"] for one in catalogue.since(ALICE.publisher, 1)]
    assert given == [2, 3]
    assert len(catalogue.since(ALICE.publisher, 0, limit=2)) == 2
    assert len(catalogue.since(ALICE.publisher, 0, most_bytes=1)) == 1


def test_order_comes_from_sequence_numbers_and_not_from_a_clock(catalogue: Catalogue) -> None:
    catalogue.add(sign(opinion(BOB, ALICE, 1, rating=1, created="2099-01-01T00:00:00Z"), BOB))
    catalogue.add(sign(opinion(BOB, ALICE, 2, rating=5, created="1970-01-01T00:00:00Z"), BOB))
    catalogue.add(signed_manifest(ALICE, 1, version=1, created="2099-01-01T00:00:00Z"))
    catalogue.add(signed_manifest(ALICE, 2, version=2, created="yesterday, I think"))
    assert catalogue.entry("higgs").version == 2
    assert catalogue.entry("higgs").rating == 5.0


def test_words_tags_columns_size_publisher_and_kind_find(catalogue: Catalogue) -> None:
    card = Column(name="card_id", type="string")
    catalogue.add(signed_manifest(ALICE, 1))
    catalogue.add(
        signed_manifest(
            BOB,
            1,
            name="payments",
            description="Fraudulent transactions",
            tags=("Finance",),
            columns=(card,),
            kind="folder",
        )
    )
    assert names(catalogue, words=("fraud", "TRANSACT")) == ["payments:1"]
    assert names(catalogue, words=("fraud transact",)) == ["payments:1"]
    assert names(catalogue, words=("fraud", "boson")) == []
    assert names(catalogue, words=('" OR 1=1 --',)) == []
    assert names(catalogue, words=("***",)) == []
    assert names(catalogue, tags=("finance",)) == ["payments:1"]
    assert names(catalogue, columns=("Card_ID",)) == ["payments:1"]
    assert names(catalogue, publisher=ALICE.publisher[8:16]) == ["higgs:1"]
    assert names(catalogue, kind="folder") == ["payments:1"]
    assert names(catalogue, least_bytes=3001) == []
    assert names(catalogue, most_bytes=3000, limit=1) == ["payments:1"]


def test_a_word_in_the_name_counts_more_than_one_in_the_description(catalogue: Catalogue) -> None:
    catalogue.add(signed_manifest(ALICE, 1, name="boson", description="Other things"))
    catalogue.add(signed_manifest(ALICE, 2, name="other", description="boson " * 3))
    assert names(catalogue, words=("boson",)) == ["boson:1", "other:1"]


def test_a_version_never_changes(catalogue: Catalogue) -> None:
    catalogue.add(signed_manifest(ALICE, 2, description="changed later"))
    catalogue.add(signed_manifest(ALICE, 1, description="as it was"))
    catalogue.add(signed_manifest(ALICE, 3, description="changed again"))
    assert [one.description for one in catalogue.find(Question())] == ["as it was"]
    assert names(catalogue, words=("changed",)) == []


def test_a_withdrawn_version_is_hidden_whatever_comes_first(tmp_path: Path) -> None:
    gone = opinion(ALICE, ALICE, 3, what="withdrawn", rating=0, version=2)
    records = [signed_manifest(ALICE, 1), signed_manifest(ALICE, 2, version=2), sign(gone, ALICE)]
    for number, order in enumerate(itertools.permutations(records)):
        (tmp_path / str(number)).mkdir()
        with new_catalogue(tmp_path / str(number)) as catalogue:
            for record in order:
                catalogue.add(record)
            assert names(catalogue) == ["higgs:1"]
            assert names(catalogue, hidden=True) == ["higgs:2"]
            assert catalogue.entry("higgs").version == 1
            assert catalogue.entry("higgs", version=2).is_withdrawn


def test_ratings_count_once_for_each_member_and_not_those_of_muted_ones(catalogue: Catalogue) -> None:
    catalogue.add(signed_manifest(ALICE))
    catalogue.add(sign(opinion(BOB, ALICE, 1, rating=2), BOB))
    catalogue.add(sign(opinion(BOB, ALICE, 2, rating=4, text="Better now."), BOB))
    catalogue.add(sign(opinion(EVE, ALICE, 1, rating=1, text="Spam"), EVE))
    assert (catalogue.entry("higgs").rating, catalogue.entry("higgs").num_opinions) == (2.5, 2)
    catalogue.mute(EVE.publisher)
    entry = catalogue.entry("higgs")
    assert (entry.rating, entry.num_opinions) == (4.0, 1)
    assert [one.text for one in catalogue.opinions(entry)] == ["Better now."]


def test_a_trusted_publisher_comes_first_a_muted_one_not_at_all(catalogue: Catalogue) -> None:
    catalogue.add(signed_manifest(ALICE))
    catalogue.add(signed_manifest(BOB))
    with pytest.raises(InvalidInputError, match="2 publishers have a 'higgs'"):
        catalogue.entry("higgs")
    catalogue.trust(ALICE.publisher, "alice")
    assert [one.alias for one in catalogue.find(Question())] == ["alice", ""]
    assert catalogue.entry("higgs").reference == "higgs@alice:1"
    assert catalogue.entry(*read_reference("higgs@alice:1")).publisher == ALICE.publisher
    catalogue.mute("alice")
    assert [one.publisher for one in catalogue.find(Question())] == [BOB.publisher]
    assert catalogue.newest()[ALICE.publisher] == 1
    with pytest.raises(InvalidInputError, match="'alice' is what"):
        catalogue.trust(BOB.publisher, "alice")


def test_a_blocked_publisher_leaves_nothing_and_can_come_back(catalogue: Catalogue) -> None:
    catalogue.add(signed_manifest(ALICE))
    catalogue.block(ALICE.publisher)
    assert (names(catalogue, hidden=True), catalogue.newest()) == ([], {})
    assert not catalogue.add(signed_manifest(ALICE))
    catalogue.forget(ALICE.publisher)
    assert catalogue.add(signed_manifest(ALICE))


def test_a_replaced_key_goes_on_under_its_new_one(catalogue: Catalogue) -> None:
    new = identity_of("alice, again")
    catalogue.trust(ALICE.publisher, "alice")
    catalogue.add(signed_manifest(ALICE, 1))
    catalogue.add(replacement(ALICE, new, 2))
    catalogue.add(signed_manifest(new, 1, version=2))
    assert names(catalogue) == ["higgs:2"]
    entry = catalogue.entry(*read_reference("higgs@alice"))
    assert (entry.publisher, entry.version, entry.standing) == (new.publisher, 2, "trusted")
    assert catalogue.entry(*read_reference("higgs@alice:1")).head == new.publisher


def test_a_stolen_old_key_signs_nothing_any_more(tmp_path: Path) -> None:
    new = identity_of("alice, again")
    records = [signed_manifest(ALICE, 1), replacement(ALICE, new, 2), signed_manifest(ALICE, 3, version=9)]
    for number, order in enumerate(itertools.permutations(records)):
        (tmp_path / str(number)).mkdir()
        with new_catalogue(tmp_path / str(number)) as catalogue:
            for record in order:
                catalogue.add(record)
            assert names(catalogue, all_versions=True) == ["higgs:1"]
            assert catalogue.newest() == {ALICE.publisher: 2}


def test_a_blocked_publisher_does_not_come_back_with_another_key(catalogue: Catalogue) -> None:
    new = identity_of("eve, again")
    catalogue.add(signed_manifest(EVE, 1))
    catalogue.add(replacement(EVE, new, 2))
    catalogue.add(signed_manifest(new, 1, version=2))
    catalogue.block(EVE.publisher)
    assert names(catalogue, hidden=True) == []
    assert not catalogue.add(signed_manifest(new, 2, version=3))


def test_only_members_publish_where_members_are_listed(tmp_path: Path) -> None:
    with Catalogue(tmp_path / "x.sqlite", NETWORK, members=frozenset({ALICE.publisher})) as catalogue:
        assert catalogue.add(signed_manifest(ALICE))
        with pytest.raises(RecordError, match="not on the list"):
            catalogue.add(signed_manifest(BOB))


def test_numbers_are_given_one_after_the_other_by_all_processes(tmp_path: Path) -> None:
    with new_catalogue(tmp_path) as first, new_catalogue(tmp_path) as second:
        for turn in range(6):
            which = first if turn % 2 else second
            which.append(ALICE, lambda number: manifest(ALICE, number, version=number))
        assert first.newest() == second.newest() == {ALICE.publisher: 6}
        first.append(ALICE, lambda number: manifest(ALICE, number, version=number), least=20)
        assert first.since(ALICE.publisher, 6)[0].body.count(b'"sequence":20,') == 1


def test_a_publisher_cannot_fill_the_disk(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cargobike.sharing.catalogue.keeping.MOST_RECORDS", 3)
    monkeypatch.setattr("cargobike.sharing.catalogue.keeping.MOST_PUBLISHERS", 1)
    for number in (1, 2, 3):
        catalogue.add(signed_manifest(ALICE, number, version=number))
    with pytest.raises(RecordError, match="which is enough"):
        catalogue.add(signed_manifest(ALICE, 4, version=4))
    with pytest.raises(RecordError, match="trust"):
        catalogue.add(signed_manifest(BOB))
    catalogue.trust(BOB.publisher)
    assert catalogue.add(signed_manifest(BOB))


def test_what_is_not_there_is_named_with_what_is_near(catalogue: Catalogue) -> None:
    catalogue.add(signed_manifest(ALICE))
    with pytest.raises(NotFoundError, match="Did you mean 'higgs'"):
        catalogue.entry("higs")
    with pytest.raises(NotFoundError, match="No version 7 of 'higgs'"):
        catalogue.entry("higgs", version=7)
    with pytest.raises(NotFoundError, match="No publisher 'zoe' is known here"):
        catalogue.entry("higgs", "zoe")


def test_a_file_that_is_no_catalogue_or_one_of_another_network_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.sqlite").write_bytes(b"not a database, but long enough to be one" * 100)
    with pytest.raises(StoreError, match="cannot be read"):
        Catalogue(tmp_path / "broken.sqlite", NETWORK)
    new_catalogue(tmp_path).close()
    with pytest.raises(StoreError, match="of the network 'lab', not of 'office'"):
        Catalogue(tmp_path / "catalogue.sqlite", "office")


def test_a_reference_is_read_in_all_its_forms() -> None:
    assert [tuple(read_reference(text)) for text in ("a", "a:3", "a@b", "a@b:3")] == [
        ("a", "", None),
        ("a", "", 3),
        ("a", "b", None),
        ("a", "b", 3),
    ]
    key = ALICE.publisher
    assert read_reference(f"a@{key}:3") == ("a", key, 3)
    assert read_reference(f"a@{key}") == ("a", key, None)
    for text in ("", "@b", "a@", "a@b:x:"):
        if text == "a@b:x:":
            continue
        with pytest.raises(InvalidInputError, match="NAME@PUBLISHER:VERSION"):
            read_reference(text)
