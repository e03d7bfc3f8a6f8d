"""A network: its secret and its keys; nothing of a secret is ever said."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.sharing.identity.keys import Identity
from cargobike.sharing.network.beacons import GROUP, Beacons, make_beacon, read_beacon
from cargobike.sharing.network.network import make_network, open_network
from cargobike.sharing.network.peers import PeerBook
from support.swarm import SECRET, lab, project_at


def test_the_same_secret_makes_the_same_key_and_another_name_another_one() -> None:
    assert lab().key == lab().key
    assert lab().key != make_network("other", secret=SECRET).key
    assert SECRET not in repr(lab())


def test_a_network_needs_a_secret_that_cannot_be_found_by_trying_or_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInputError, match="neither a secret nor a list of keys"):
        make_network("lab")
    with pytest.raises(InvalidInputError, match="has 5 characters; it needs at least 16") as raised:
        make_network("lab", secret="short")
    assert "short" not in str(raised.value)
    with pytest.raises(InvalidInputError, match="is no key of a publisher"):
        make_network("lab", members=["nonsense"])


def test_a_secret_comes_from_the_environment_or_a_private_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = project_at(tmp_path)
    monkeypatch.setenv("CARGOBIKE_SHARE_SECRET", SECRET)
    assert open_network(project, "lab").key == lab().key
    monkeypatch.delenv("CARGOBIKE_SHARE_SECRET")
    file = tmp_path / "secret"
    file.write_text(SECRET + "\n")
    file.chmod(0o644)
    with pytest.raises(StoreError, match="can be read by others: chmod 600"):
        open_network(project, "lab", secret_file=file)
    file.chmod(0o600)
    assert open_network(project, "lab", secret_file=file).key == lab().key


def test_a_list_of_keys_says_who_belongs(tmp_path: Path) -> None:
    mine, other = Identity.new(), Identity.new()
    file = tmp_path / "members"
    file.write_text(f"# the lab\n{mine.publisher} mine\n\n")
    network = open_network(project_at(tmp_path), "lab", members_file=file)
    assert network.admits(mine.publisher)
    assert not network.admits(other.publisher)
    file.write_text("ed25519:short\n")
    with pytest.raises(InvalidInputError, match="Key 1 in"):
        open_network(project_at(tmp_path), "lab", members_file=file)


def test_a_beacon_is_understood_by_members_alone_and_only_from_where_it_comes() -> None:
    network, identity = lab(), Identity.new()
    beacon = make_beacon(network, identity, "10.0.0.5", 7777)
    assert read_beacon(network, beacon, "10.0.0.5") == ("10.0.0.5", 7777, identity.publisher)
    assert read_beacon(network, beacon, "10.0.0.6") is None, "sent again from elsewhere"
    assert read_beacon(lab("another secret, as long"), beacon, "10.0.0.5") is None
    assert read_beacon(make_network("lab", members=[Identity.new().publisher]), beacon, "10.0.0.5") is None
    assert b"lab" not in beacon
    for position in range(0, len(beacon), 7):
        changed = bytearray(beacon)
        changed[position] ^= 1
        assert read_beacon(network, bytes(changed), "10.0.0.5") is None
    assert read_beacon(network, beacon[:-1], "10.0.0.5") is None
    assert read_beacon(network, os.urandom(len(beacon)), "10.0.0.5") is None


def test_members_on_one_link_hear_each_other_and_strangers_do_not() -> None:
    """Only on loopback; the port of the group is one that no other test has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        group = (GROUP, probe.getsockname()[1])
    heard: dict[str, list[str]] = {"first": [], "second": [], "stranger": []}
    told = threading.Event()

    def hear(name: str) -> Callable[[str], None]:
        def take(address: str) -> None:
            heard[name].append(address)
            if heard["first"] and heard["second"]:
                told.set()

        return take

    networks = {"first": lab(), "second": lab(), "stranger": lab("another secret, as long")}
    with contextlib.ExitStack() as stack:
        for port, (name, network) in enumerate(networks.items(), 7001):
            beacons = Beacons(
                network, Identity.new(), port, hear(name), interface="127.0.0.1", group=group, every_s=0.5
            )
            stack.callback(beacons.close)
        assert told.wait(30)
    assert {*heard["first"]} == {"127.0.0.1:7002"}
    assert {*heard["second"]} == {"127.0.0.1:7001"}
    assert not heard["stranger"]


def test_addresses_are_kept_and_forgotten(tmp_path: Path) -> None:
    now = [1e9]
    book = PeerBook(tmp_path / "peers.json", clock=lambda: now[0])
    book.name(["127.0.0.1:1"])
    book.hear("127.0.0.1:2")
    book.hear("no address")
    book.meet("127.0.0.1:3", "ed25519:x")
    assert book.addresses()[0] == "127.0.0.1:1"
    assert book.told() == ["127.0.0.1:3"], "only those that were met lately are told to others"
    assert book.has_untried()
    book.disown("127.0.0.1:2")
    book.hear("127.0.0.1:2")
    book.fail("127.0.0.1:1")
    assert not book.has_untried()
    assert book.is_unreachable("127.0.0.1:1", "ed25519:y")
    assert book.is_unreachable("127.0.0.1:3", "ed25519:y"), "another member is there"
    assert not book.is_unreachable("127.0.0.1:3", "ed25519:x")
    assert not book.is_unreachable("127.0.0.1:4", "ed25519:x"), "that is not known yet"
    now[0] += 40 * 24 * 3600
    book.save()
    assert PeerBook(tmp_path / "peers.json").addresses() == ["127.0.0.1:1"]
    (tmp_path / "peers.json").write_bytes(b"{]")
    assert PeerBook(tmp_path / "peers.json").addresses() == []
    with pytest.raises(InvalidInputError, match="write host:port"):
        book.name(["nonsense"])
