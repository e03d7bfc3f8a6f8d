"""libtorrent, which shares no code with us, reads our torrents and finds the same files, hashes and names."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cargobike.sharing.hashing import hash_file
from cargobike.sharing.torrents.hybrid import bencode, in_order, make_torrent

lt = pytest.importorskip("libtorrent")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # older releases lack what is newer
PIECE = 64 * 1024
SETS = {
    "one": {"only.bin": 3 * PIECE + 17},
    "one small": {"only.bin": 5},
    "one in a folder": {"deep/only.bin": PIECE},
    "several": {"b/2.bin": PIECE, "a.bin": 100, "b/10.bin": 2 * PIECE + 1, "b.bin": 7, "z/y/x.bin": 3 * PIECE},
    "empty ones": {"a": 0, "b": 10, "c": 0, "d": 5 * PIECE - 1, "e": 20},
    "not only letters": {"ä/ö.bin": 10, "z/ .bin": PIECE + 1, "日本.bin": 70_000},
}


def written(folder: Path, sizes: dict[str, int]) -> None:
    for path, size in sizes.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(random.Random(path).randbytes(size))


@pytest.mark.parametrize("case", SETS)
def test_an_ordinary_client_accepts_our_torrent_and_finds_all_pieces_right(case: str, tmp_path: Path) -> None:
    sizes = SETS[case]
    is_single = list(sizes) == ["only.bin"]
    content = tmp_path if is_single else tmp_path / "higgs"
    written(content, sizes)
    hashed = {path: hash_file(content / path, PIECE) for path in sizes}
    torrent = make_torrent("higgs", hashed, PIECE, comment="Collisions")
    info = lt.torrent_info(lt.bdecode(torrent.content))
    assert info.info_hashes().has_v1()
    assert info.info_hashes().has_v2()
    assert (str(info.info_hashes().v1), str(info.info_hashes().v2)) == (torrent.infohash_v1, torrent.infohash_v2)
    assert info.priv()
    files = info.files()
    listed = {
        files.file_path(index): files.file_size(index)
        for index in range(files.num_files())
        if not files.file_flags(index) & lt.file_storage.flag_pad_file
    }
    assert listed == {path if is_single else f"higgs/{path}": size for path, size in sizes.items()}
    assert checked_pieces(info, tmp_path) == [True] * info.num_pieces()


def checked_pieces(info: object, folder: Path) -> list[bool]:
    """Return which pieces a client finds right on the disk, without any connection."""
    settings = {
        "listen_interfaces": "127.0.0.1:0",
        "enable_dht": False,
        "enable_lsd": False,
        "enable_upnp": False,
        "enable_natpmp": False,
        "alert_mask": lt.alert.category_t.all_categories,
    }
    session = lt.session(settings)
    wanted = lt.add_torrent_params()
    wanted.ti = info
    wanted.save_path = str(folder)
    handle = session.add_torrent(wanted)
    for _ in range(400):
        session.wait_for_alert(250)
        if any(isinstance(one, lt.torrent_checked_alert) for one in session.pop_alerts()):
            break
    else:
        raise AssertionError("the client has not checked the files within 100 s")
    assert not handle.status().errc.value(), handle.status().errc.message()
    return list(handle.status().pieces)


def test_the_roots_are_those_that_libtorrent_computes(tmp_path: Path) -> None:
    sizes = SETS["several"]
    written(tmp_path / "higgs", sizes)
    storage = lt.file_storage()
    lt.add_files(storage, str(tmp_path / "higgs"))
    maker = lt.create_torrent(storage, PIECE)
    lt.set_piece_hashes(maker, str(tmp_path))
    theirs = maker.generate()[b"info"]
    hashed = {path: hash_file(tmp_path / "higgs" / path, PIECE) for path in sizes}
    ours = lt.bdecode(make_torrent("higgs", hashed, PIECE).content)[b"info"]
    assert ours[b"file tree"] == theirs[b"file tree"]
    # In v1 the order is the maker's choice; BEP 52 wants that of the tree, and libtorrent's is another one.
    assert sorted(in_pieces(ours[b"pieces"])) == sorted(in_pieces(theirs[b"pieces"]))


def in_pieces(hashes: bytes) -> list[bytes]:
    return [hashes[at : at + 20] for at in range(0, len(hashes), 20)]


def test_web_seeds_are_written_as_clients_expect_them() -> None:
    one = {"a.csv": hash_file_of(b"a")}
    two = {"a.csv": hash_file_of(b"a"), "b c.csv": hash_file_of(b"b")}

    def seeds(files: dict[str, object], *given: str) -> object:
        return lt.bdecode(make_torrent("higgs", files, PIECE, web_seeds=given).content).get(b"url-list")  # type: ignore[arg-type]

    assert seeds(one, "https://host/data") == [b"https://host/data/a.csv"]
    assert seeds(two, "https://host/data/higgs", "https://host/other", "s3://bucket/higgs") == [b"https://host/data/"]
    assert seeds(two, "https://host/other") is None


def hash_file_of(content: bytes) -> object:
    import io

    return hash_file(io.BytesIO(content), PIECE)


def test_names_are_sorted_as_bytes_level_by_level() -> None:
    assert in_order(["b.bin", "b/2", "b/10", "a"]) == ["a", "b/10", "b/2", "b.bin"]
    assert bencode({"b": [1, -2], "a": {b"x": "ä"}}) == b"d1:ad1:x2:\xc3\xa4e1:bli1ei-2eee"
