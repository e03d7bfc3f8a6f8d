"""Folders go from members to another one, over the sealed wire, in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cargobike.core.errors import AuthenticationError, NotFoundError, WaitError
from cargobike.sharing.daemon.limiting import write_limits
from cargobike.sharing.daemon.messages import SetLimits
from cargobike.sharing.getting.front import get
from cargobike.sharing.getting.handle import Arrival
from cargobike.sharing.getting.holders import holders
from cargobike.sharing.identity.keys import load_identity
from cargobike.sharing.network.network import make_network
from cargobike.sharing.pieces.arriving import STAGING
from cargobike.sharing.pieces.holdings import Holdings
from cargobike.sharing.places import network_folder
from support.swarm import PIECE, SECRET, Seeder, fill, lab, project_at, publish, read_folder, seeding
from support.watching import wait_for

SIZES = {"a.bin": 10 * PIECE + 17, "sub/b.bin": 3 * PIECE, "sub/deep/c.txt": 100, "empty": 0}
TOTAL = sum(SIZES.values())


@pytest.fixture
def fetch(tmp_path: Path) -> Callable[..., Arrival]:
    def begin(*seeders: Seeder, reference: str = "higgs", **options: Any) -> Arrival:
        given: dict[str, Any] = {
            "network": lab(),
            "to": tmp_path / "to",
            "peers": [seeder.address for seeder in seeders],
            "project": project_at(tmp_path / "getter"),
            "quiet": True,
            "timeout_s": 20.0,
        }
        return get(reference, **{**given, **options})

    return begin


def test_a_folder_arrives_as_it_was(tmp_path: Path, fetch: Callable[..., Arrival]) -> None:
    contents = fill(tmp_path / "source", {**SIZES, "twin.bin": 0})
    (tmp_path / "source/twin.bin").write_bytes(contents["a.bin"])
    with seeding(tmp_path / "seed") as seeder:
        publish(seeder.membership, tmp_path / "source")
        arrival = fetch(seeder)
    assert read_folder(tmp_path / "to") == {**contents, "twin.bin": contents["a.bin"]}
    assert arrival.progress.size_fetched == TOTAL, "equal files are fetched once"
    assert not list((tmp_path / "to").glob(f"{STAGING}*"))


def test_several_members_deliver_at_once_and_a_getter_can_give_what_it_got(
    tmp_path: Path, fetch: Callable[..., Arrival]
) -> None:
    contents = fill(tmp_path / "source", {"a.bin": 200 * PIECE})
    with seeding(tmp_path / "seed") as first, seeding(tmp_path / "second") as second:
        manifest = publish(first.membership, tmp_path / "source")
        copied = fetch(first, to=tmp_path / "copy", project=second.membership.project)
        assert read_folder(copied.folder) == contents
        assert [one.name for one in second.membership.holdings.publications()] == ["higgs"]
        fetch(first, second, reference=manifest.reference)
        assert read_folder(tmp_path / "to") == contents
        assert first.pieces_given > 200
        assert second.pieces_given > 0


def test_members_say_who_has_how_much(tmp_path: Path, fetch: Callable[..., Arrival]) -> None:
    fill(tmp_path / "source", {"a.bin": 10 * PIECE})
    with seeding(tmp_path / "seed") as seeder, seeding(tmp_path / "empty") as empty:
        publish(seeder.membership, tmp_path / "source")
        fetch(seeder, empty)
        found = holders("higgs", network=lab(), peers=["127.0.0.1:1"], project=project_at(tmp_path / "getter"))
    assert [(one.address, one.share) for one in found if not one.problem] == [(seeder.address, 1.0), (empty.address, 0)]
    assert found[0].rate > 0
    assert [one.address for one in found if one.problem] == ["127.0.0.1:1"]


def test_limits_of_what_comes_in_are_kept_and_end_with_the_fetch(tmp_path: Path, fetch: Callable[..., Arrival]) -> None:
    fill(tmp_path / "source", {"a.bin": 10 * PIECE})
    with seeding(tmp_path / "seed") as seeder:
        publish(seeder.membership, tmp_path / "source")
        folder = network_folder(project_at(tmp_path / "getter"), "lab")
        write_limits(folder, SetLimits(receive="0"))
        with pytest.raises(WaitError, match="Nothing of higgs"):
            fetch(seeder, timeout_s=1.0)
        write_limits(folder, SetLimits(receive="50MB/s"))
        assert fetch(seeder).progress.size_had == 10 * PIECE


def test_unchanged_parts_of_a_new_version_are_taken_from_the_disk(
    tmp_path: Path, fetch: Callable[..., Arrival]
) -> None:
    fill(tmp_path / "source", {"a.bin": 50 * PIECE, "same.bin": 7 * PIECE})
    with seeding(tmp_path / "seed") as seeder:
        publish(seeder.membership, tmp_path / "source")
        fetch(seeder)
        data = bytearray((tmp_path / "source/a.bin").read_bytes())
        data[3 * PIECE + 5] ^= 1
        (tmp_path / "source/a.bin").write_bytes(data)
        publish(seeder.membership, tmp_path / "source", version=2)
        arrival = fetch(seeder)
    assert (tmp_path / "to/a.bin").read_bytes() == data
    assert arrival.manifest.version == 2
    assert arrival.progress.size_fetched == PIECE
    assert arrival.progress.size_found == 56 * PIECE


class _Liar(Holdings):
    """Holdings of a member that gives something else than what it has."""

    def __init__(self, honest: Holdings) -> None:
        self.__dict__ = honest.__dict__

    def read(self, root: str, piece_size: int, number: int) -> bytes | bytearray | None:
        data = super().read(root, piece_size, number)
        if data is not None and number % 5 == 4:
            data = bytearray(data)
            data[-1] ^= 1
        return data


def test_a_member_that_sends_wrong_pieces_is_dropped_and_named(
    tmp_path: Path, fetch: Callable[..., Arrival], caplog: pytest.LogCaptureFixture
) -> None:
    contents = fill(tmp_path / "source", {"a.bin": 100 * PIECE})
    with seeding(tmp_path / "liar", wrap=_Liar) as liar, seeding(tmp_path / "honest") as honest:
        publish(liar.membership, tmp_path / "source")
        fetch(liar, to=tmp_path / "copy", project=honest.membership.project, wait=False).stop()
        fetch(honest, to=tmp_path / "unused", wait=False, reference="higgs").stop()
        manifest = liar.membership.catalogue.manifest(liar.membership.catalogue.entry("higgs"))
        layers = {file.root: _layer(liar, file.root) for file in manifest.files}
        honest.membership.holdings.add(manifest, tmp_path / "source", layers)
        arrival = fetch(liar, honest)
        progress = arrival.progress
    assert read_folder(tmp_path / "to") == contents
    assert any(liar.address in words and "of a.bin was wrong" in words for words in progress.dropped)
    assert f"{liar.address} is dropped" in caplog.text


def _layer(seeder: Seeder, root: str) -> list[bytes]:
    hashes = seeder.membership.holdings.layer(root, PIECE)
    assert hashes is not None
    return [hashes[start : start + 32] for start in range(0, len(hashes), 32)]


def test_a_liar_alone_delivers_nothing_wrong_and_the_error_names_it(
    tmp_path: Path, fetch: Callable[..., Arrival]
) -> None:
    fill(tmp_path / "source", {"a.bin": 20 * PIECE})
    with seeding(tmp_path / "liar", wrap=_Liar) as liar:
        publish(liar.membership, tmp_path / "source")
        with pytest.raises(WaitError, match=r"dropped: piece \d+ of a.bin was wrong"):
            fetch(liar, timeout_s=1.0)
    assert not (tmp_path / "to/a.bin").exists()


def test_what_an_attempt_before_had_is_not_fetched_again(tmp_path: Path, fetch: Callable[..., Arrival]) -> None:
    contents = fill(tmp_path / "source", {"a.bin": 30 * PIECE, "b.bin": 5 * PIECE})
    with seeding(tmp_path / "seed") as seeder:
        publish(seeder.membership, tmp_path / "source")
        arrival = fetch(seeder, wait=False, in_order=True)
        assert arrival.read("a.bin", 0, PIECE) == contents["a.bin"][:PIECE]
        arrival.stop()
        with pytest.raises(WaitError, match="was ended before everything had come"):
            arrival.wait()
        had = arrival.progress.size_had
        assert had >= PIECE
        before = seeder.pieces_given
        again = fetch(seeder)
        assert again.progress.size_found == had
        assert (seeder.pieces_given - before) * PIECE == 35 * PIECE - had
    assert read_folder(tmp_path / "to") == contents


def test_pieces_that_were_noted_and_have_changed_since_are_fetched_again(
    tmp_path: Path, fetch: Callable[..., Arrival]
) -> None:
    contents = fill(tmp_path / "source", {"a.bin": 30 * PIECE})
    with seeding(tmp_path / "seed") as seeder:
        publish(seeder.membership, tmp_path / "source")
        arrival = fetch(seeder, wait=False, in_order=True)
        arrival.read("a.bin", 0, PIECE)
        arrival.stop()
        if not (tmp_path / "to/a.bin").exists():
            (staged,) = (tmp_path / "to").glob(f"{STAGING}*/000000")
            with staged.open("r+b") as file:
                file.write(b"torn by a loss of power")
        fetch(seeder)
    assert read_folder(tmp_path / "to") == contents


def test_a_secret_that_does_not_fit_is_said_without_a_word_of_it(
    tmp_path: Path, fetch: Callable[..., Arrival], caplog: pytest.LogCaptureFixture
) -> None:
    wrong = "wrong secret, as long as the other"
    with seeding(tmp_path / "seed") as seeder:
        with pytest.raises(AuthenticationError, match="'lab' has another secret there") as raised:
            fetch(seeder, network=lab(wrong))
        with pytest.raises(AuthenticationError, match="no secret was given here"):
            fetch(seeder, network=make_network("lab", members=[seeder.membership.identity.publisher]))
    for text in (str(raised.value), caplog.text):
        assert wrong not in text
        assert SECRET not in text


def test_only_keys_on_the_list_are_let_in(tmp_path: Path, fetch: Callable[..., Arrival]) -> None:
    getter = load_identity(project_at(tmp_path / "getter")).publisher
    seed = load_identity(project_at(tmp_path / "seed")).publisher
    fill(tmp_path / "source", SIZES)
    with seeding(tmp_path / "seed", make_network("lab", members=[seed])) as seeder:
        publish(seeder.membership, tmp_path / "source")
        with pytest.raises(AuthenticationError, match="not on its list of keys"):
            fetch(seeder, network=make_network("lab", members=[seed, getter]))
    with seeding(tmp_path / "seed", make_network("lab", members=[seed, getter])) as seeder:
        with pytest.raises(AuthenticationError, match="is not on the list of 'lab'"):
            fetch(seeder, network=make_network("lab", members=[getter]))
        fetch(seeder, network=make_network("lab", members=[seed, getter]))
    assert (tmp_path / "to/a.bin").exists()


def test_when_all_members_are_gone_it_waits_says_so_and_gives_up_by_name(
    tmp_path: Path, fetch: Callable[..., Arrival]
) -> None:
    fill(tmp_path / "source", {"a.bin": 10 * PIECE})
    with seeding(tmp_path / "seed") as seeder:
        manifest = publish(seeder.membership, tmp_path / "source")
        with pytest.raises(NotFoundError, match="Nothing called 'other'"):
            fetch(seeder, reference="other")
        seeder.giving.is_paused = True
        arrival = fetch(seeder, wait=False, timeout_s=1.0)
        seeder.close()
        words = f"Nothing of {manifest.reference} came for 1 s; 0 of 655,360 bytes are here and stay"
        with pytest.raises(WaitError, match=words) as raised:
            arrival.wait()
    assert any(name.startswith(seeder.address) for name in raised.value.missing)


def test_a_member_that_vanishes_and_returns_is_asked_again(tmp_path: Path, fetch: Callable[..., Arrival]) -> None:
    contents = fill(tmp_path / "source", {"a.bin": 60 * PIECE})
    with seeding(tmp_path / "seed") as seeder:
        publish(seeder.membership, tmp_path / "source")
        seeder.giving.is_paused = True
        arrival = fetch(seeder, wait=False)
        seeder.close()
        again = Seeder(seeder.membership, port=seeder.reception.port)
        try:
            arrival.wait(30)
        finally:
            again.close()
    assert read_folder(tmp_path / "to") == contents


def test_files_are_given_in_order_while_they_arrive(tmp_path: Path, fetch: Callable[..., Arrival]) -> None:
    contents = fill(tmp_path / "source", {f"part-{number}.bin": 4 * PIECE for number in range(6)})
    threads = threading.active_count()
    with seeding(tmp_path / "seed") as seeder:
        publish(seeder.membership, tmp_path / "source")
        with fetch(seeder, wait=False, in_order=True) as arrival:
            seen = [(path.name, path.read_bytes()) for path in arrival.files()]
            arrival.wait(20)
    assert seen == sorted(contents.items())
    wait_for(lambda: threading.active_count() <= threads, "the threads of the transfer to end")
