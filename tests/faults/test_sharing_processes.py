"""Members in processes: killed, without room, twice at once; and no address is contacted that was not named."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cargobike.sharing.getting.front import get
from cargobike.sharing.network.beacons import GROUP, PORT
from cargobike.sharing.network.membership import Membership
from cargobike.sharing.pieces.arriving import STAGING
from cargobike.sharing.pieces.holdings import Holdings
from cargobike.store.files.storage import Storage
from cargobike.store.files.storages import open_storage
from support.swarm import PIECE, fill, lab, project_at, publish, read_folder, seeding
from support.swarm_processes import end, line_of, start, wait_until

PIECES = 40


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        end(process)


class _Half(Holdings):
    """Holdings that give half of all pieces, and the others when they are told to."""

    is_open = False

    def __init__(self, holdings: Holdings) -> None:
        self.__dict__ = holdings.__dict__

    def read(self, root: str, piece_size: int, number: int) -> bytes | bytearray | None:
        return super().read(root, piece_size, number) if _Half.is_open or number % 2 == 0 else None


def test_a_getter_that_was_killed_goes_on_where_it_was(
    tmp_path: Path, processes: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = fill(tmp_path / "source", {"a.bin": PIECES * PIECE})
    with seeding(tmp_path / "seed", wrap=_Half) as seeder:
        publish(seeder.membership, tmp_path / "source")
        getter = start("get", tmp_path / "getter", tmp_path / "to", seeder.address)
        processes.append(getter)
        wait_until(lambda: _noted(tmp_path / "to") == PIECES // 2, "half of it")
        getter.send_signal(signal.SIGKILL)
        getter.wait()
        wait_until(lambda: not seeder.reception._threads, "the end of its connections")
        given = seeder.pieces_given
        monkeypatch.setattr(_Half, "is_open", True)
        arrival = get(
            "higgs",
            network=lab(),
            to=tmp_path / "to",
            peers=[seeder.address],
            project=project_at(tmp_path / "getter"),
            quiet=True,
        )
        assert arrival.progress.size_found == PIECES // 2 * PIECE
        assert seeder.pieces_given - given == PIECES // 2, "nothing that was had is fetched again"
    assert read_folder(tmp_path / "to") == contents


@pytest.mark.parametrize("name", ["moto", pytest.param("hdfs", marks=pytest.mark.slow)])
def test_a_getter_to_a_storage_that_was_killed_goes_on_where_it_was(
    name: str,
    storage_url: Callable[[str], str],
    tmp_path: Path,
    processes: list[subprocess.Popen[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two files are on the storage already, and half of the third is on this disk."""
    url, sizes = storage_url(name), {"a.bin": PIECES * PIECE, "b.bin": PIECE, "sub/c.bin": 10}
    contents = fill(tmp_path / "source", sizes)
    with seeding(tmp_path / "seed", wrap=_Half) as seeder:
        publish(seeder.membership, tmp_path / "source")
        getter = start("get", tmp_path / "getter", url, seeder.address)
        processes.append(getter)
        storage = open_storage(url)
        noted = PIECES // 2 + 2
        wait_until(lambda: _noted_below(tmp_path / "getter") == noted and _num_files(storage) == 2, "most of it")
        getter.send_signal(signal.SIGKILL)
        getter.wait()
        wait_until(lambda: not seeder.reception._threads, "the end of its connections")
        given = seeder.pieces_given
        monkeypatch.setattr(_Half, "is_open", True)
        project = project_at(tmp_path / "getter")
        arrival = get("higgs", network=lab(), to=url, peers=[seeder.address], project=project, quiet=True)
        assert arrival.progress.size_found == PIECES // 2 * PIECE + PIECE + 10
        assert seeder.pieces_given - given == PIECES // 2, "nothing that was had is fetched again"
    assert {path: storage.read(path) for path in contents} == contents
    assert _noted_below(tmp_path / "getter") == 0, "nothing stays on this disk"


def _num_files(storage: Storage) -> int:
    return sum(1 for _ in storage.list(deep=True))


def _noted_below(project: Path) -> int:
    return sum(path.read_bytes().count(1) for path in project.rglob("noted"))


def test_a_daemon_that_was_killed_is_started_again_and_a_second_one_is_refused(
    tmp_path: Path, processes: list[subprocess.Popen[str]]
) -> None:
    contents = fill(tmp_path / "source", {"a.bin": PIECES * PIECE})
    with Membership(project_at(tmp_path / "seed"), lab()) as membership:
        publish(membership, tmp_path / "source")
    daemon = start("serve", tmp_path / "seed", 0)
    processes.append(daemon)
    address = line_of(daemon)["address"]
    second = start("serve", tmp_path / "seed", 0)
    processes.append(second)
    assert f"is served for this project by process {daemon.pid} on host" in line_of(second)["error"]
    daemon.send_signal(signal.SIGKILL)
    daemon.wait()
    getter = start("get", tmp_path / "getter", tmp_path / "to", address)
    processes.append(getter)
    assert "Nothing called 'higgs'" in line_of(getter)["error"], "all members are gone, and nothing is known of it"
    again = start("serve", tmp_path / "seed", address.rpartition(":")[2])
    processes.append(again)
    assert line_of(again)["address"] == address
    getter = start("get", tmp_path / "getter", tmp_path / "to", address)
    processes.append(getter)
    assert line_of(getter)["fetched"] == PIECES * PIECE
    assert read_folder(tmp_path / "to") == contents


def test_only_addresses_that_were_named_are_contacted(tmp_path: Path, processes: list[subprocess.Popen[str]]) -> None:
    """Two daemons, one of which knows the other and both of which look for members on the link, and a getter."""
    fill(tmp_path / "source", {"a.bin": 4 * PIECE})
    with Membership(project_at(tmp_path / "seed"), lab()) as membership:
        publish(membership, tmp_path / "source", web_seeds=("http://192.0.2.1/files/",))
    first = start("serve", tmp_path / "seed", 0, "announce")
    processes.append(first)
    addresses = [line_of(first)["address"]]
    other = start("serve", tmp_path / "other", 0, addresses[0], "announce")
    processes.append(other)
    addresses.append(line_of(other)["address"])
    getter = start("get", tmp_path / "getter", tmp_path / "to", addresses[1])
    processes.append(getter)
    said = line_of(getter)
    assert said["fetched"] == 4 * PIECE
    contacted = {*said["contacted"]}
    for daemon in (first, other):
        daemon.send_signal(signal.SIGTERM)
        contacted |= {*line_of(daemon)["contacted"]}
        assert daemon.wait(60) == 0
    allowed = {*addresses, *(f"name {address.rpartition(':')[0]}" for address in addresses), f"{GROUP}:{PORT}"}
    assert addresses[0] in contacted
    assert contacted <= allowed


def test_a_disk_that_is_full_in_the_middle_loses_nothing(
    tmp_path: Path, processes: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "source", {"a.bin": PIECES * PIECE})
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f'mount -t tmpfs -o size={2 * PIECES * PIECE} tmpfs "$0" || exit 77; exec "$@"'
    under = ["unshare", "--mount", "sh", "-c", mount, str(disk)]
    if subprocess.run([*under, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not let us mount")
    with seeding(tmp_path / "seed", wrap=_Half) as seeder:
        publish(seeder.membership, tmp_path / "source")
        getter = start("get", tmp_path / "getter", disk / "to", seeder.address, under=under)
        processes.append(getter)
        inside = Path(f"/proc/{getter.pid}/root{disk}")
        wait_until(lambda: _noted(inside / "to") == PIECES // 2, "half of it")
        with contextlib.suppress(OSError), (inside / "filler").open("wb", buffering=0) as filler:
            while filler.write(bytes(PIECE)):
                pass
        monkeypatch.setattr(_Half, "is_open", True)
        error = line_of(getter)["error"]
    assert f"The disk of {disk / 'to'} is full. What has arrived is kept: make room, and get it again to go on" in error


def _noted(folder: Path) -> int:
    """Return how many pieces are noted in what arrives in a folder."""
    return sum(path.read_bytes().count(1) for path in folder.glob(f"{STAGING}*/noted"))


def test_ctrl_c_ends_a_getter_at_once_and_what_it_had_stays(
    tmp_path: Path, processes: list[subprocess.Popen[str]]
) -> None:
    fill(tmp_path / "source", {"a.bin": PIECES * PIECE})
    with seeding(tmp_path / "seed", wrap=_Half) as seeder:
        publish(seeder.membership, tmp_path / "source")
        getter = start("get", tmp_path / "getter", tmp_path / "to", seeder.address)
        processes.append(getter)
        wait_until(lambda: _noted(tmp_path / "to") == PIECES // 2, "half of it")
        getter.send_signal(signal.SIGINT)
        assert getter.wait(60) != 0
        wait_until(lambda: not seeder.reception._threads, "the end of its connections")
    assert _noted(tmp_path / "to") == PIECES // 2
    assert not (tmp_path / "to/a.bin").exists()
